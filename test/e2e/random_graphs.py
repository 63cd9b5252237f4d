"""Random models of many operators, the same for the same seed: how a graph grows. random_operators.py has the operators, test_random_graphs.py the tests."""
import numpy as np
import onnx
from onnx import helper

import harness

F32, F64, I32, I64, BOOL = (np.dtype(name) for name in ("float32", "float64", "int32", "int64", "bool"))
INTEGERS = (I32, I64)
MAX_ELEMENTS = 20000


class Rejected(Exception):
    """The operator that was drawn does not fit what there is."""


class Value:
    """`is_exact`: the same bits in every right implementation, so that what jumps (Floor, ArgMax, comparisons) may be computed of it."""

    def __init__(self, name, dtype, shape, is_exact, is_constant=False):
        self.name, self.dtype, self.shape, self.is_exact, self.is_constant = name, dtype, tuple(shape), is_exact, is_constant

    rank = property(lambda self: len(self.shape))


class Builder:
    """A graph under construction. With `rows`, the first dimension of every input is the named dimension `n`; shapes are those of n = rows."""

    def __init__(self, seed, rows=None, jumps=True, opset=21):
        self.rng, self.rows, self.jumps, self.opset = np.random.default_rng(seed), rows, jumps, opset
        self.nodes, self.constants, self.inputs, self.values, self.number = [], {}, {}, [], 0

    # Drawing

    def chance(self, probability):
        return self.rng.random() < probability

    def choose(self, options):
        return options[self.rng.integers(len(options))]

    def extent(self):
        return int(self.choose([1, 1, 2, 3, 3, 4, 5, 7, 8, 11, 13, 17]))

    def pick(self, dtypes=(F32,), rank=(0, 5), condition=None, exact=False):
        """A value, more often one of the last."""
        fitting = [v for v in self.values if v.dtype in dtypes and rank[0] <= v.rank <= rank[1] and (condition is None or condition(v))
                   and (not exact or v.is_exact and (self.jumps or v.dtype.kind != "f"))]
        if not fitting:
            raise Rejected
        return fitting[-1 - min(int(self.rng.exponential(3)), len(fitting) - 1)]

    def axis(self, value):
        if not value.rank:
            raise Rejected
        axis = int(self.rng.integers(value.rank))
        if self.rows and axis == 0 and self.chance(0.9):
            raise Rejected
        return axis - value.rank if self.chance(0.4) else axis

    def some_axes(self, value):
        axes = [d for d in range(value.rank) if self.chance(0.5)] or ([int(self.rng.integers(value.rank))] if value.rank else [])
        return [d - value.rank if self.chance(0.3) else d for d in axes]

    def array(self, dtype, shape, scale=1.0):
        if dtype == BOOL:
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            return self.rng.integers(-9, 10, shape).astype(dtype)
        return np.asarray(self.rng.standard_normal(shape) * scale, dtype)

    # Adding

    def name(self):
        self.number += 1
        return f"v{self.number}"

    def constant(self, array):
        array = np.asarray(array)
        name = self.name()
        self.constants[name] = array
        return Value(name, array.dtype, array.shape, True, True)

    def ints(self, values):
        return self.constant(np.array(values, np.int64))

    def input(self, dtype, shape):
        name = self.name()
        self.inputs[name] = (dtype, tuple(shape))
        self.values.append(Value(name, dtype, shape, True))
        return self.values[-1]

    def add(self, op, *inputs, outputs=1, exact=None, keep=True, **attributes):
        """Adds a node; the types and shapes of its results are those of the onnx package."""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(op, [v.name if v else "" for v in inputs], names, name=f"{op}_{self.number}", **attributes)
        given = {v.name: v for v in inputs if v}
        infos = {v.name: (helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for v in given.values() if not v.is_constant}
        fixed = {v.name: self.constants[v.name] for v in given.values() if v.is_constant}
        model = harness.make_model([node], infos, {}, fixed, self.opset)
        for name in names:
            model.graph.output.add().name = name
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        results = []
        is_exact = all(v.is_exact for v in given.values()) and bool(exact)
        for info in inferred.graph.output:
            tensor = info.type.tensor_type
            if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
                raise Rejected
            shape = [d.dim_value for d in tensor.shape.dim]
            if np.prod(shape, initial=1) > MAX_ELEMENTS or len(shape) > 6 or min(shape, default=1) < 1:
                raise Rejected
            results.append(Value(info.name, np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape, is_exact))
        self.nodes.append(node)
        if keep:
            self.values += results
        return results[0] if outputs == 1 else results

    def partner(self, value, dtype=None):
        """What broadcasts with a value: one of the graph's, or a constant."""
        dtype = dtype or value.dtype

        def fits(other):
            return all(a == b or a == 1 or b == 1 for a, b in zip(other.shape[::-1], value.shape[::-1]))
        if self.chance(0.6):
            try:
                return self.pick((dtype,), condition=lambda other: fits(other) and self.same_rows(value, other))
            except Rejected:
                pass
        shape = [1 if self.chance(0.4) or (self.rows and d == 0) else extent for d, extent in enumerate(value.shape)]
        shape = shape[int(self.rng.integers(len(shape) + 1)):] if self.chance(0.5) else shape
        return self.constant(self.array(dtype, shape))

    def same_rows(self, a, b):
        return not self.rows or (a.rank == b.rank and a.shape[:1] == b.shape[:1])

    def finish(self):
        read = {name for node in self.nodes for name in node.input}
        made = [v for v in self.values if v.name not in self.inputs]
        outputs = [v for v in made if v.name not in read or self.chance(0.1)]
        infos = {}
        for name, (dtype, shape) in self.inputs.items():
            infos[name] = (helper.np_dtype_to_tensor_dtype(dtype), ("n",) + shape[1:] if self.rows else shape)
        results = {v.name: (helper.np_dtype_to_tensor_dtype(v.dtype), None if self.rows else v.shape) for v in outputs}
        return harness.make_model(self.nodes, infos, results, self.constants, self.opset)
