"""Whole models that importers trip over: functions inside functions, values of outer graphs, odd names and shapes, every encoding of a
tensor, files of any size. The expected values are those of onnxruntime or of the onnx package's reference evaluator."""
import os
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import harness

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
N = helper.make_node
IMPORTS = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]


def save(model, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def compile_and_run(ogc, model, tmp_path, inputs):
    return ogc.run(ogc.compile(save(model, tmp_path), tmp_path / "m.ogc"), inputs)


def agrees(ogc, model, tmp_path, inputs, expected=None):
    """The outputs of the compiled model, after comparing them with those of the reference evaluator (or onnxruntime's, if given)."""
    if expected is None:
        names = [output.name for output in model.graph.output]
        expected = dict(zip(names, ReferenceEvaluator(model).run(None, inputs)))
    outputs = compile_and_run(ogc, model, tmp_path, inputs)
    harness.check_outputs(outputs, {name: np.asarray(value) for name, value in expected.items()}, 1e-6)
    return outputs


def refusal(ogc, model, tmp_path, *words):
    with pytest.raises(harness.OgcError) as caught:
        ogc("compile", save(model, tmp_path), "-o", tmp_path / "m.ogc", "--target", "cpu", timeout=60)
    message = caught.value.message
    assert caught.value.code == 1, message
    assert all(line.startswith("error: ") for line in message.splitlines()), message
    for word in words:
        assert word in message, message
    return message


def body(name, nodes, inputs, outputs, initializers=()):
    infos = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    return helper.make_graph(nodes, name, *infos, initializer=list(initializers))


# -------------------------------------------------------------------------------------------------------------- functions

def call(name, inputs, outputs, references=(), overload="", **attributes):
    """A call of a local function; `references` are (attribute, parameter of the function around, kind)."""
    node = N(name, inputs, outputs, domain="local", overload=overload, **attributes)
    for attribute, parameter, kind in references:
        node.attribute.add(name=attribute, ref_attr_name=parameter, type=kind)
    return node


def parameter(kind, field, name, output):
    node = N("Constant", [], [output])
    node.attribute.add(name=field, ref_attr_name=name, type=kind)
    return node


def with_functions(nodes, functions, shape=(3,), outputs=("y",), initializers=None):
    model = harness.make_model(nodes, {"x": (F32, shape)}, {name: (F32, None) for name in outputs}, initializers, domains=["local"])
    model.functions.extend(functions)
    return model


X3 = np.array([1, -2, 3], np.float32)


def test_parameters_through_three_functions(ogc, tmp_path):
    """A parameter is renamed at each level; another one is given at the innermost call only; an operator takes one as its own attribute."""
    scaled = helper.make_function("local", "Scaled", ["a"], ["b"],
                                  [parameter(AttributeProto.FLOAT, "value_float", "factor", "f"), N("Mul", ["a", "f"], ["b"])], IMPORTS, ["factor"])
    leaky = N("LeakyRelu", ["s"], ["l"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    middle = helper.make_function("local", "Middle", ["a"], ["b", "s"],
                                  [call("Scaled", ["a"], ["s"], [("factor", "inner", AttributeProto.FLOAT)]), leaky, call("Scaled", ["l"], ["b"], factor=10.0)],
                                  IMPORTS, ["inner", "slope"])
    outer = helper.make_function("local", "Outer", ["a"], ["b", "c"],
                                 [call("Middle", ["a"], ["b", "c"], [("inner", "outermost", AttributeProto.FLOAT), ("slope", "slope", AttributeProto.FLOAT)])],
                                 IMPORTS, ["outermost", "slope"])
    nodes = [call("Outer", ["x"], ["p", "q"], outermost=2.0, slope=0.5), call("Outer", ["p"], ["y", ""], outermost=-1.0, slope=0.25), N("Neg", ["q"], ["z"])]
    model = with_functions(nodes, [scaled, middle, outer], outputs=("y", "z"))
    outputs = agrees(ogc, model, tmp_path, {"x": X3}, harness.reference(model, {"x": X3}))
    np.testing.assert_array_equal(outputs["z"], -2 * X3)


def test_lists_and_tensors_as_parameters(ogc, tmp_path):
    transpose = N("Transpose", ["a"], ["t"])
    transpose.attribute.add(name="perm", ref_attr_name="order", type=AttributeProto.INTS)
    body = [transpose, parameter(AttributeProto.TENSOR, "value", "weights", "w"), N("Add", ["t", "w"], ["b"])]
    function = helper.make_function("local", "Turned", ["a"], ["b"], body, IMPORTS, ["order", "weights"])
    weights = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2))
    model = with_functions([call("Turned", ["x"], ["y"], order=[1, 0], weights=weights)], [function], (2, 3))
    agrees(ogc, model, tmp_path, {"x": np.ones((2, 3), np.float32)})


def test_overloads_that_call_each_other(ogc, tmp_path):
    """The same name three times: an overload that calls another, and the one without a name."""
    functions = [helper.make_function("local", "f", ["a"], ["b"], [N("Neg", ["a"], ["b"])], IMPORTS),
                 helper.make_function("local", "f", ["a"], ["b"], [call("f", ["a"], ["t"], overload="twice"), N("Abs", ["t"], ["b"])], IMPORTS, overload="size"),
                 helper.make_function("local", "f", ["a"], ["b"], [N("Add", ["a", "a"], ["b"])], IMPORTS, overload="twice")]
    nodes = [call("f", ["x"], ["p"], overload="size"), call("f", ["p"], ["q"]), call("f", ["q"], ["y"], overload="twice")]
    outputs = compile_and_run(ogc, with_functions(nodes, functions), tmp_path, {"x": X3})
    np.testing.assert_array_equal(outputs["y"], -4 * np.abs(X3))
    refusal(ogc, with_functions([call("f", ["x"], ["y"], overload="half")], functions), tmp_path, "local.f node 'y'", "unknown operator", "overload 'half'")


def test_functions_of_another_opset(ogc, tmp_path):
    """A function imports its own opset: Softmax of 11 flattens, that of 21 does not."""
    old = helper.make_function("local", "Old", ["a"], ["b"], [N("Softmax", ["a"], ["b"])], [helper.make_opsetid("", 11)])
    model = with_functions([call("Old", ["x"], ["p"]), N("Softmax", ["p"], ["y"], axis=1)], [old], (2, 3, 4))
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    flat = np.exp(x.reshape(2, 12))
    p = (flat / flat.sum(1, keepdims=True)).reshape(x.shape)
    agrees(ogc, model, tmp_path, {"x": x}, {"y": np.exp(p) / np.exp(p).sum(1, keepdims=True)})


def test_functions_that_hide_an_operator(ogc, tmp_path):
    """A function of the model comes before the operator of its name."""
    own = helper.make_function("", "Relu", ["a"], ["b"], [N("Neg", ["a"], ["b"])], IMPORTS)
    np.testing.assert_array_equal(compile_and_run(ogc, with_functions([N("Relu", ["x"], ["y"])], [own]), tmp_path, {"x": X3})["y"], -X3)


def test_calls_that_are_wrong(ogc, tmp_path):
    """More inputs, outputs or attributes than the function has, and a function that is there twice."""
    function = helper.make_function("local", "f", ["a"], ["b"], [N("Neg", ["a"], ["b"])], IMPORTS)
    refusal(ogc, with_functions([call("f", ["x", "x"], ["y"])], [function]), tmp_path, "local.f node 'y'", "2 inputs", "at most 1")
    refusal(ogc, with_functions([call("f", ["x"], ["y", "z"])], [function]), tmp_path, "local.f node 'y'", "2 outputs", "at most 1")
    refusal(ogc, with_functions([call("f", ["x"], ["y"], factor=2.0)], [function]), tmp_path, "local.f node 'y'", "attribute 'factor'", "not known")
    refusal(ogc, with_functions([call("f", ["x"], ["y"])], [function, function]), tmp_path, "function 'f' of domain 'local'", "defined twice")
    twice = helper.make_function("local", "g", ["a", "a"], ["b"], [N("Neg", ["a"], ["b"])], IMPORTS)
    refusal(ogc, with_functions([call("g", ["x", "x"], ["y"])], [twice]), tmp_path, "local.g node 'y'", "two inputs 'a'")


def nested(depth):
    functions = [helper.make_function("local", f"f{i}", ["a"], ["b"], [call(f"f{i + 1}", ["a"], ["b"])], IMPORTS) for i in range(depth)]
    return with_functions([call("f0", ["x"], ["y"])], functions + [helper.make_function("local", f"f{depth}", ["a"], ["b"], [N("Neg", ["a"], ["b"])], IMPORTS)])


def test_deep_functions(ogc, tmp_path):
    """As deep as anybody nests them; deeper is refused, not a stack overflow."""
    np.testing.assert_array_equal(compile_and_run(ogc, nested(50), tmp_path, {"x": X3})["y"], -X3)
    refusal(ogc, nested(20_000), tmp_path, "nested deeper than")


def test_functions_that_multiply(ogc, tmp_path):
    """Thirty functions that call the next one twice describe 2^30 nodes."""
    functions = [helper.make_function("local", f"f{i}", ["a"], ["b"], [call(f"f{i + 1}", ["a"], ["t"]), call(f"f{i + 1}", ["t"], ["b"])], IMPORTS)
                 for i in range(30)]
    functions.append(helper.make_function("local", "f30", ["a"], ["b"], [N("Neg", ["a"], ["b"])], IMPORTS))
    started = time.monotonic()
    refusal(ogc, with_functions([call("f0", ["x"], ["y"])], functions), tmp_path, "nodes after inlining")
    assert time.monotonic() - started < 30


# ------------------------------------------------------------------------------------------------------------- outer graphs

def test_values_of_four_graphs_around(ogc, tmp_path):
    """The innermost body reads a value of the model, of the loop around, of the branch around that, and an initializer of each."""
    def constant(name, value):
        return helper.make_tensor(name, F32, [], [value])
    inner = body("inner", [N("Add", ["x", "carried"], ["i0"]), N("Add", ["i0", "w_model"], ["i1"]), N("Add", ["i1", "w_loop"], ["i2"]),
                           N("Add", ["i2", "from_branch"], ["i3"]), N("Mul", ["i3", "w_branch"], ["deep"])], [], [("deep", F32, None)])
    other = body("other", [N("Identity", ["carried"], ["shallow"])], [], [("shallow", F32, None)])
    branch = body("branch", [N("Neg", ["carried"], ["from_branch"]), N("If", ["yes"], ["chosen"], then_branch=inner, else_branch=other)], [],
                  [("chosen", F32, None)], [constant("w_branch", 0.5)])
    empty = body("empty", [N("Identity", ["x"], ["same"])], [], [("same", F32, None)])
    loop = body("loop", [N("Identity", ["go"], ["on"]), N("If", ["yes"], ["next"], then_branch=branch, else_branch=empty)],
                [("i", I64, ()), ("go", BOOL, ()), ("carried", F32, (3,))], [("on", BOOL, ()), ("next", F32, (3,)), ("next", F32, (3,))], [constant("w_loop", 7)])
    model = harness.make_model([N("Loop", ["n", "", "start"], ["last", "all"], body=loop)], {"x": (F32, (3,)), "start": (F32, (3,))},
                               {"last": (F32, None), "all": (F32, None)}, {"n": np.int64(3), "yes": np.array(True), "w_model": np.float32(2)})
    inputs = {"x": X3, "start": np.array([0.5, 1, 2], np.float32)}
    agrees(ogc, model, tmp_path, inputs, harness.reference(model, inputs))


def test_bodies_inside_of_functions(ogc, tmp_path):
    """A body inside of a function reads the function's inputs and parameters, and nothing of the caller."""
    then = body("then", [parameter(AttributeProto.FLOAT, "value_float", "factor", "f"), N("Mul", ["a", "f"], ["t"])], [], [("t", F32, None)])
    otherwise = body("else", [N("Identity", ["a"], ["e"])], [], [("e", F32, None)])
    function = helper.make_function("local", "f", ["a", "c"], ["b"], [N("If", ["c"], ["b"], then_branch=then, else_branch=otherwise)], IMPORTS, ["factor"])
    flags = {"yes": np.array(True), "no": np.array(False)}
    nodes = [call("f", ["x", "yes"], ["p"], factor=3.0), call("f", ["x", "no"], ["q"], factor=5.0), N("Add", ["p", "q"], ["y"])]
    agrees(ogc, with_functions(nodes, [function], initializers=flags), tmp_path, {"x": X3})
    leaking = helper.make_function("local", "f", ["a"], ["b"], [N("Add", ["a", "x"], ["b"])], IMPORTS)
    refusal(ogc, with_functions([call("f", ["x"], ["y"])], [leaking]), tmp_path, "Add node 'f/b'", "'x' is not defined")


@pytest.mark.parametrize("value", [True, False])
def test_names_of_bodies_may_repeat(ogc, tmp_path, value):
    """Two branches, and the graph after them, use the same name for different values."""
    branches = {f"{name}_branch": body(name, [N(op, ["x"], ["t"]), N("Add", ["t", "c"], ["out"])], [], [("out", F32, None)], [helper.make_tensor("c", F32, [], [number])])
                for name, op, number in (("then", "Neg", 1), ("else", "Abs", 2))}
    nodes = [N("If", ["go"], ["r"], **branches), N("Exp", ["x"], ["t"]), N("Add", ["r", "t"], ["y"])]
    model = harness.make_model(nodes, {"x": (F32, (3,))}, {"y": (F32, None)}, {"go": np.array(value)})
    agrees(ogc, model, tmp_path, {"x": X3})


# ------------------------------------------------------------------------------------------------------- inputs and outputs

def test_outputs_of_every_kind(ogc, tmp_path):
    """An input, an initializer, a sparse one, a Constant, a node's result that others read, and two names for one value."""
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.array([5], np.float32), "s"), numpy_helper.from_array(np.array([1])), [3])
    nodes = [N("Constant", [], ["k"], value_floats=[1.0, 2.0]), N("Neg", ["x"], ["n"]), N("Abs", ["n"], ["m"]), N("Identity", ["n"], ["copy"])]
    outputs = {"x": (F32, (3,)), "w": (F32, (2,)), "s": (F32, (3,)), "k": (F32, (2,)), "n": (F32, (3,)), "m": (F32, (3,)), "copy": (F32, (3,))}
    model = harness.make_model(nodes, {"x": (F32, (3,))}, outputs, {"w": np.array([8, 9], np.float32)})
    model.graph.sparse_initializer.append(sparse)
    expected = {"x": X3, "w": [8, 9], "s": [0, 5, 0], "k": [1, 2], "n": -X3, "m": np.abs(X3), "copy": -X3}
    agrees(ogc, model, tmp_path, {"x": X3}, {name: np.array(value, np.float32) for name, value in expected.items()})


def test_a_model_of_initializers_only(ogc, tmp_path):
    """No inputs and no nodes."""
    model = harness.make_model([], {}, {"w": (F32, (2,)), "s": (I64, ())}, {"w": np.array([8, 9], np.float32), "s": np.int64(-3)})
    agrees(ogc, model, tmp_path, {}, {"w": np.array([8, 9], np.float32), "s": np.array(-3)})


def test_initializers_listed_as_inputs(ogc, tmp_path):
    """All of them, dense and sparse, in another order; of a shape that says less than the tensor's."""
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.array([5], np.float32), "s"), numpy_helper.from_array(np.array([1])), [3])
    inputs = {"s": (F32, ("n",)), "w": (F32, None), "x": (F32, (3,))}
    model = harness.make_model([N("Add", ["x", "w"], ["t"]), N("Add", ["t", "s"], ["y"])], inputs, {"y": (F32, (3,)), "w": (F32, (3,))},
                               {"w": np.array([1, 2, 3], np.float32)}, opset=11, ir_version=3)
    model.graph.sparse_initializer.append(sparse)
    agrees(ogc, model, tmp_path, {"x": X3}, {"y": X3 + np.array([1, 7, 3], np.float32), "w": np.array([1, 2, 3], np.float32)})


# ------------------------------------------------------------------------------------------------------------------- names

NAMES = ["größe", "输入 データ", "a\tb\"c\\d'", "🙂", "e\u0301 \u00e9", "%x{}$;&|`", "../../etc/x", "CON", "n" * 1000, " ", "0", "true"]


def test_odd_names(ogc, tmp_path):
    """Of inputs, values, nodes and outputs; they come back in `inspect` and in the results."""
    nodes, inputs, last = [], {}, None
    for i, name in enumerate(NAMES):
        inputs[name] = (F32, (2,))
        nodes.append(N("Add", [name, last or name], [f"out {name}"], name=name))
        last = f"out {name}"
    outputs = {f"out {name}": (F32, (2,)) for name in NAMES}
    values = {name: np.full(2, i + 1, np.float32) for i, name in enumerate(NAMES)}
    model = harness.make_model(nodes, inputs, outputs)
    agrees(ogc, model, tmp_path, values)
    facts = ogc.inspect(tmp_path / "m.ogc")["graphs"][0]
    assert [value["name"] for value in facts["inputs"]] == NAMES
    assert [value["name"] for value in facts["outputs"]] == list(outputs)


def test_names_that_are_not_text(ogc, tmp_path):
    """Bytes that are no UTF-8 are refused or shown escaped; nothing that reads our output may stumble over them."""
    model = harness.make_model([N("Neg", ["x"], ["yy"], name="nnnn")], {"x": (F32, (2,))}, {"yy": (F32, (2,))})
    data = model.SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data.replace(b"yy", b"\xff\xfe").replace(b"nnnn", b"\xc3\x28\xa0\xa1"))
    done = subprocess.run([ogc.program, "compile", path, "-o", tmp_path / "m.ogc", "--target", "cpu"], capture_output=True)
    if done.returncode:
        assert done.returncode == 1 and done.stderr.startswith(b"error: ") and done.stderr.decode()
    else:
        ogc.inspect(tmp_path / "m.ogc")


def test_nodes_without_names_or_with_the_same(ogc, tmp_path):
    nodes = [N("Neg", ["x"], ["a"]), N("Exp", ["a"], ["b"]), N("Neg", ["b"], ["c"], name="n"), N("Exp", ["c"], ["y"], name="n")]
    agrees(ogc, harness.make_model(nodes, {"x": (F32, (3,))}, {"y": (F32, None)}), tmp_path, {"x": X3})


def test_names_that_are_empty(ogc, tmp_path):
    """An empty name means an absent value: it names no input, initializer or output."""
    model = harness.make_model([N("Neg", ["x"], ["y"])], {"x": (F32, (2,)), "": (F32, (2,))}, {"y": (F32, (2,))})
    refusal(ogc, model, tmp_path, "input 1", "no name")
    model = harness.make_model([N("Neg", ["x"], ["y"])], {"x": (F32, (2,))}, {"y": (F32, (2,)), "": (F32, (2,))})
    refusal(ogc, model, tmp_path, "output 1", "no name")
    # Nothing can read it: it does no harm.
    model = harness.make_model([N("Neg", ["x"], ["y"])], {"x": (F32, (2,))}, {"y": (F32, (2,))}, {"": X3})
    agrees(ogc, model, tmp_path, {"x": X3[:2]}, {"y": -X3[:2]})


def test_inputs_or_outputs_twice(ogc, tmp_path):
    model = harness.make_model([N("Neg", ["x"], ["y"])], {"x": (F32, (2,))}, {"y": (F32, (2,))})
    model.graph.input.append(model.graph.input[0])
    refusal(ogc, model, tmp_path, "input 'x' is defined twice")
    del model.graph.input[1]
    model.graph.output.append(model.graph.output[0])
    refusal(ogc, model, tmp_path, "output 'y' is listed twice")
    model = harness.make_model([N("Neg", ["x"], ["y"])], {"x": (F32, (2,))}, {"y": (F32, (2,))}, {"w": X3})
    model.graph.initializer.append(model.graph.initializer[0])
    refusal(ogc, model, tmp_path, "initializer 'w' is defined twice")
    model = harness.make_model([N("Neg", ["x"], ["x"], name="n")], {"x": (F32, (2,))}, {"x": (F32, (2,))})
    refusal(ogc, model, tmp_path, "Neg node 'n'", "'x' is defined twice")


# ------------------------------------------------------------------------------------------------------------------ shapes

def test_scalars_all_the_way(ogc, tmp_path):
    nodes = [N("Mul", ["x", "w"], ["a"]), N("Unsqueeze", ["a", "axes"], ["b"]), N("Concat", ["b", "b"], ["c"], axis=0), N("ReduceSum", ["c"], ["d"], keepdims=0),
             N("Shape", ["d"], ["e"]), N("Reshape", ["d", "e"], ["y"]), N("Transpose", ["x"], ["t"]), N("Expand", ["x", "e"], ["z"]), N("Size", ["x"], ["s"])]
    model = harness.make_model(nodes, {"x": (F32, ())}, {"y": (F32, ()), "t": (F32, ()), "z": (F32, ()), "s": (I64, ())},
                               {"w": np.float32(3), "axes": np.array([0])})
    agrees(ogc, model, tmp_path, {"x": np.array(2.5, np.float32)})


def test_tensors_without_elements(ogc, tmp_path):
    """They pass through, add nothing to a concatenation, and reduce to the neutral element."""
    nodes = [N("Add", ["x", "w"], ["a"]), N("Concat", ["a", "b", "a"], ["c"], axis=1), N("ReduceSum", ["x"], ["s"], keepdims=0), N("MatMul", ["x", "m"], ["p"]),
             N("MatMul", ["u", "x"], ["q"]), N("Softmax", ["x"], ["f"]), N("Transpose", ["x"], ["t"]), N("ReduceMax", ["u", "zero"], ["r"], keepdims=0),
             N("Reshape", ["x", "to"], ["o"], allowzero=1)]
    outputs = {name: (F32, None) for name in "acspqftro"}
    model = harness.make_model(nodes, {"x": (F32, (2, 0)), "b": (F32, (2, 3)), "u": (F32, (4, 2))}, outputs,
                               {"w": np.zeros((1, 0), np.float32), "m": np.zeros((0, 3), np.float32), "zero": np.array([1]), "to": np.array([0, 5])})
    rng = np.random.default_rng(0)
    inputs = {"x": np.zeros((2, 0), np.float32), "b": rng.standard_normal((2, 3)).astype(np.float32), "u": rng.standard_normal((4, 2)).astype(np.float32)}
    agrees(ogc, model, tmp_path, inputs)


# --------------------------------------------------------------------------------------------------------------- encodings

ALL_TYPES = [TensorProto.DataType.Name(kind) for kind in sorted(TensorProto.DataType.values())
             if kind not in (TensorProto.UNDEFINED, TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128)]


def example(kind):
    """Seven values that every type holds, an odd number so that the last byte of small types is not full; an 8-bit exponent has no more
    than powers of two."""
    if kind == TensorProto.FLOAT8E8M0:
        return [1, 2, 4, 0.5, 1, 8, 2]
    if kind == TensorProto.BOOL:
        return [1, 0, 0, 1, 1, 0, 1]
    if kind == TensorProto.UINT2:
        return [0, 1, 2, 3, 3, 0, 1]
    if kind == TensorProto.INT2:
        return [0, 1, -2, -1, 1, 0, -1]
    isSigned = not TensorProto.DataType.Name(kind).startswith("UINT")
    return [0, 1, 2, 3, 4, -1 if isSigned else 5, -2 if isSigned else 6]


@pytest.mark.parametrize("form", ["fields", "raw", "external", "sparse", "attribute"])
@pytest.mark.parametrize("name", ALL_TYPES)
def test_encodings_of_every_type(ogc, tmp_path, name, form):
    """As an initializer in its fields, as raw bytes, in another file, sparse, and as the value of a Constant."""
    kind = TensorProto.DataType.Value(name)
    values = example(kind)
    raw = helper.make_tensor("c", kind, [7], numpy_helper.from_array(np.array(values, helper.tensor_dtype_to_np_dtype(kind))).raw_data, raw=True)
    nodes, initializers, sparse = [N("Cast", ["c"], ["y"], to=F32)], [raw], []
    if form == "fields":
        initializers = [helper.make_tensor("c", kind, [7], values)]
        assert not initializers[0].HasField("raw_data")
    elif form == "external":
        (tmp_path / "w.bin").write_bytes(b"?" * 4096 + raw.raw_data)
        tensor = TensorProto(name="c", data_type=kind, dims=[7], data_location=TensorProto.EXTERNAL)
        for key, value in {"location": "w.bin", "offset": 4096, "length": len(raw.raw_data)}.items():
            tensor.external_data.add(key=key, value=str(value))
        initializers = [tensor]
    elif form == "sparse":
        if kind == TensorProto.FLOAT8E8M0:
            pytest.skip("the type has no zero")
        initializers, sparse = [], [helper.make_sparse_tensor(raw, numpy_helper.from_array(np.arange(1, 14, 2)), [14])]
        values = [value for pair in zip([0] * 7, values) for value in pair]
    elif form == "attribute":
        nodes, initializers = [N("Constant", [], ["c"], value=raw), *nodes], []
    model = harness.make_model(nodes, {"x": (F32, (1,))}, {"y": (F32, None)}, opset=25, ir_version=13)
    model.graph.initializer.extend(initializers)
    model.graph.sparse_initializer.extend(sparse)
    outputs = compile_and_run(ogc, model, tmp_path, {"x": np.zeros(1, np.float32)})
    np.testing.assert_array_equal(outputs["y"], np.array(values, np.float32))


def test_sparse_constant(ogc, tmp_path):
    values = numpy_helper.from_array(np.array([1.5, -2], np.float32))
    node = N("Constant", [], ["c"], sparse_value=helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([[0, 1], [1, 2]])), [2, 3]))
    model = harness.make_model([node, N("Add", ["x", "c"], ["y"])], {"x": (F32, (2, 3))}, {"y": (F32, None)})
    agrees(ogc, model, tmp_path, {"x": np.zeros((2, 3), np.float32)}, {"y": np.array([[0, 1.5, 0], [0, 0, -2]], np.float32)})


def test_fields_that_do_not_fit(ogc, tmp_path):
    """The data is in a field of another type, in two places, or has too many elements."""
    def model(tensor):
        made = harness.make_model([N("Neg", ["w"], ["y"])], {}, {"y": (F32, None)})
        made.graph.initializer.append(tensor)
        return made
    refusal(ogc, model(TensorProto(name="w", data_type=F32, dims=[2], int32_data=[1, 2])), tmp_path, "initializer 'w'", "0 bytes", "expected 8")
    refusal(ogc, model(TensorProto(name="w", data_type=F32, dims=[2], float_data=[1, 2, 3])), tmp_path, "initializer 'w'", "12 bytes", "expected 8")
    refusal(ogc, model(TensorProto(name="w", data_type=F32, dims=[2], raw_data=bytes(8), float_data=[1, 2])), tmp_path, "initializer 'w'", "both")


def test_more_than_two_gigabytes(ogc, tmp_path):
    """Weights at offsets beyond 2^31 and 2^32 of an external file, most of it a hole; what is not read is not loaded."""
    end = (5 << 30) + 4096
    where = {"a": 4096, "b": (1 << 31) + 4096, "c": (1 << 32) + 8192, "d": end - 16}
    with open(tmp_path / "w.bin", "wb") as file:
        for i, offset in enumerate(where.values()):
            file.seek(offset)
            file.write(np.full(4, 10**i, np.float32).tobytes())
    assert (tmp_path / "w.bin").stat().st_size == end
    if os.stat(tmp_path / "w.bin").st_blocks * 512 > 1 << 30:
        pytest.skip("the file system has no sparse files")

    def tensor(name, offset, dims, length):
        made = TensorProto(name=name, data_type=F32, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in {"location": "w.bin", "offset": offset, "length": length}.items():
            made.external_data.add(key=key, value=str(value))
        return made
    nodes = [N("Sum", ["x", *where], ["y"]), N("Gather", ["table", "rows"], ["z"])]
    model = harness.make_model(nodes, {"x": (F32, (4,))}, {"y": (F32, (4,)), "z": (F32, None)}, {"rows": np.array([0, 1])})
    model.graph.initializer.extend(tensor(name, offset, [4], 16) for name, offset in where.items())
    # 2.2 GB in one tensor that nothing reads, and 4 KiB of the same bytes that something does.
    model.graph.initializer.append(tensor("unread", 0, [550_000_000], 2_200_000_000))
    model.graph.initializer.append(tensor("table", 0, [2, 512], 4096))
    outputs = compile_and_run(ogc, model, tmp_path, {"x": np.zeros(4, np.float32)})
    np.testing.assert_array_equal(outputs["y"], np.full(4, 1111, np.float32))
    assert not outputs["z"].any()


def test_a_file_that_is_too_large(ogc, tmp_path):
    """Protobuf ends at 2 GiB: said so, not read."""
    with open(tmp_path / "m.onnx", "wb") as file:
        file.truncate((2 << 30) + 1)
    with pytest.raises(harness.OgcError) as caught:
        ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", timeout=60)
    assert caught.value.code == 1 and "external data" in caught.value.message


# ------------------------------------------------------------------------------------------------------------ long models

def shape_chain(length):
    """Each step computes the next shape from the one before, as exporters write it: Shape, Gather, Unsqueeze, Concat, Reshape."""
    nodes, value = [], "x"
    for i in range(length // 5):
        nodes += [N("Shape", [value], [f"s{i}"]), N("Gather", [f"s{i}", "one"], [f"g{i}"]), N("Unsqueeze", [f"g{i}", "axes"], [f"u{i}"]),
                  N("Concat", [f"u{i}", "minus"], [f"c{i}"], axis=0), N("Reshape", [value, f"c{i}"], [f"v{i}"])]
        value = f"v{i}"
    nodes.append(N("Neg", [value], ["y"]))
    return harness.make_model(nodes, {"x": (F32, ("a", "b"))}, {"y": (F32, None)}, {"one": np.int64(1), "axes": np.array([0]), "minus": np.array([-1])})


def test_shape_chains_take_linear_time(ogc, tmp_path):
    """4,000 nodes against 1,000, in processor time: four times as long, and as much again for what differs between runs."""
    short, long = (harness.compile_seconds(ogc, save(shape_chain(length), tmp_path), tmp_path, "x=2x6") for length in (1000, 4000))
    print(f"1,000 nodes: {short:.2f} s, 4,000 nodes: {long:.2f} s")
    assert long < 8 * short
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    outputs = ogc.run(tmp_path / "m.ogc", {"x": x})
    expected = harness.reference(shape_chain(4000), {"x": x})
    harness.check_outputs(outputs, expected, 0)


# ------------------------------------------------------------------------------------------- attributes that nothing reads

X4 = (1, 1, 4, 4)
MODES = {
    "Resize mode": (N("Resize", ["x", "", "s"], ["y"], name="n", mode="bilinear"), "bilinear"),
    "Resize nearest_mode": (N("Resize", ["x", "", "s"], ["y"], name="n", mode="nearest", nearest_mode="up"), "up"),
    "Resize coordinates": (N("Resize", ["x", "", "s"], ["y"], name="n", coordinate_transformation_mode="corners"), "corners"),
    "Resize policy": (N("Resize", ["x", "", "", "z"], ["y"], name="n", keep_aspect_ratio_policy="squash"), "squash"),
    "Pad mode": (N("Pad", ["x", "p"], ["y"], name="n", mode="mirror"), "mirror"),
    "GridSample mode": (N("GridSample", ["x", "g"], ["y"], name="n", mode="quadratic"), "quadratic"),
    "GridSample padding": (N("GridSample", ["x", "g"], ["y"], name="n", padding_mode="wrap"), "wrap"),
    "Conv auto_pad": (N("Conv", ["x", "w"], ["y"], name="n", auto_pad="SAME"), "SAME"),
    "MaxPool auto_pad": (N("MaxPool", ["x"], ["y"], name="n", kernel_shape=[2, 2], auto_pad="FULL"), "FULL"),
    "Gelu approximate": (N("Gelu", ["x"], ["y"], name="n", approximate="sigmoid"), "sigmoid"),
    "DepthToSpace mode": (N("DepthToSpace", ["x"], ["y"], name="n", blocksize=1, mode="RCD"), "RCD"),
    "ScatterElements reduction": (N("ScatterElements", ["x", "i", "x"], ["y"], name="n", reduction="mean"), "mean"),
    "ScatterND reduction": (N("ScatterND", ["x", "i", "x"], ["y"], name="n", reduction="mean"), "mean"),
    "LSTM direction": (N("LSTM", ["q", "lw", "lr"], ["", "y"], name="n", hidden_size=2, direction="backward"), "backward"),
    "LSTM activation": (N("LSTM", ["q", "lw", "lr"], ["", "y"], name="n", hidden_size=2, activations=["Sigmoid", "Tanh", "Sine"]), "sine"),
    "RoiAlign mode": (N("RoiAlign", ["x", "rois", "b"], ["y"], name="n", mode="min"), "min"),
    "loss reduction": (N("SoftmaxCrossEntropyLoss", ["l", "t"], ["y"], name="n", reduction="product"), "product"),
    "BitShift direction": (N("BitShift", ["u", "u"], ["y"], name="n", direction="UP"), "UP"),
    "Einsum equation": (N("Einsum", ["l", "l"], ["y"], name="n", equation="ij,jk-ik"), "equation"),
}


@pytest.mark.parametrize("name", MODES)
def test_modes_that_do_not_exist(ogc, tmp_path, name):
    node, word = MODES[name]
    f, i = np.float32, np.int64
    constants = {"s": np.array([1, 1, 2, 2], f), "z": np.array([1, 1, 8, 8]), "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "g": np.zeros((1, 2, 2, 2), f),
                 "w": np.ones((1, 1, 3, 3), f), "i": np.zeros(X4, i), "q": np.ones((3, 1, 2), f), "lw": np.ones((1, 8, 2), f), "lr": np.ones((1, 8, 2), f),
                 "rois": np.ones((1, 4), f), "b": np.zeros(1, i), "l": np.ones((2, 2), f), "t": np.zeros(2, i), "u": np.ones(2, np.uint8)}
    used = {name: value for name, value in constants.items() if name in node.input}
    refusal(ogc, harness.make_model([node], {"x": (F32, X4)}, {"y": (F32, None)}, used, 22), tmp_path, f"{node.op_type} node 'n'", word)


def test_attributes_that_do_not_exist(ogc, tmp_path):
    """On an operator, on one of another domain, on a control-flow operator, and a newer one on an old version."""
    for node, unknown, opset in ((N("Conv", ["x", "w"], ["y"], name="n", padding=1), "padding", 22), (N("Cast", ["x"], ["y"], name="n", to=F32, saturate=1), "saturate", 9),
                                 (N("Gelu", ["x"], ["y"], name="n", domain="com.microsoft", exact=1), "exact", 22),
                                 (N("ReduceSum", ["x"], ["y"], name="n", noop_with_empty_axes=0), "noop_with_empty_axes", 11)):
        model = harness.make_model([node], {"x": (F32, X4)}, {"y": (F32, None)}, {"w": np.ones((1, 1, 3, 3), np.float32)}, opset, domains=["com.microsoft"])
        refusal(ogc, model, tmp_path, "node 'n'", f"attribute '{unknown}'", "not known")
    branch = body("b", [], [], [("x", F32, None)])
    model = harness.make_model([N("If", ["c"], ["y"], name="n", then_branch=branch, else_branch=branch, otherwise=branch)], {"x": (F32, (2,))}, {"y": (F32, None)},
                               {"c": np.array(True)})
    refusal(ogc, model, tmp_path, "If node 'n'", "'otherwise'")
