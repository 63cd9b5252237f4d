"""The operators of random models: each function draws its operands from a builder (random_graphs.py) and adds what it stands for."""
import numpy as np
import onnx

from random_graphs import BOOL, F32, F64, I32, I64, INTEGERS, Builder, Rejected


def unary(b):
    op = b.choose(["Relu", "Tanh", "Sigmoid", "Erf", "Abs", "Neg", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "HardSigmoid", "HardSwish",
                   "Mish", "Gelu", "Sin", "Cos", "Atan", "Identity", "Celu"])
    b.add(op, b.pick(), exact=op in ("Relu", "Abs", "Neg", "Identity"))


def domain_unary(b):
    x = b.pick()
    op = b.choose(["Sqrt", "Log", "Reciprocal", "Exp", "Asin"])
    if op in ("Exp", "Asin"):
        b.add(op, b.add("Tanh", x, keep=False) if op == "Exp" else b.add("Clip", x, b.constant(np.float32(-0.9)), b.constant(np.float32(0.9))))
    else:
        b.add(op, b.add("Add", b.add("Abs", x), b.constant(np.float32(0.5))))


def stepped(b):
    b.add(b.choose(["Floor", "Ceil", "Round", "Sign"]), b.pick(exact=True), exact=True)


def clip(b):
    x = b.pick((F32, I32, I64))
    low, high = b.constant(np.array(-1, x.dtype)), b.constant(np.array(2, x.dtype))
    b.add("Clip", x, low if b.chance(0.7) else None, high, exact=True)


def binary(b):
    x = b.pick()
    y = b.partner(x)
    op = b.choose(["Add", "Sub", "Mul", "Max", "Min", "Div", "Pow", "PRelu"])
    if op == "Div":
        y = b.add("Add", b.add("Abs", y, keep=False), b.constant(np.float32(0.7)))
    if op == "Pow":
        x, y = b.add("Add", b.add("Abs", x), b.constant(np.float32(0.5))), b.constant(np.float32(b.choose([2, 0.5, 3, -1, 1.7])))
    if op == "PRelu":
        y = b.constant(b.array(F32, [1 if b.chance(0.5) else e for e in x.shape[1:]]))
        b.add(op, x, y)
        return
    b.add(op, *((x, y) if b.chance(0.5) or op in ("Div", "Pow") else (y, x)), exact=op in ("Max", "Min"))


def several(b):
    x = b.pick()
    b.add(b.choose(["Sum", "Max", "Min", "Mean"]), *[x, b.partner(x), b.partner(x)][:int(b.rng.integers(1, 4))])


def integers(b):
    x = b.pick(INTEGERS)
    op = b.choose(["Add", "Sub", "Mul", "Max", "Min", "Div", "Mod", "Abs", "Neg", "Sign", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
    if op in ("Abs", "Neg", "Sign", "BitwiseNot"):
        b.add(op, x, exact=True)
    elif op in ("Div", "Mod"):
        b.add(op, x, b.constant(np.array(b.choose([1, 2, 3, 7, -3]), x.dtype)), exact=True)
    else:
        b.add(op, x, b.partner(x), exact=True)


def booleans(b):
    x = b.pick((BOOL,))
    if b.chance(0.3):
        b.add("Not", x, exact=True)
    else:
        b.add(b.choose(["And", "Or", "Xor", "Equal"]), x, b.partner(x), exact=True)


def compare(b):
    x = b.pick((F32, I32, I64), exact=True)
    b.add(b.choose(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"]), x, b.constant(b.array(x.dtype, ())) if b.chance(0.5) else
          b.pick((x.dtype,), exact=True, condition=lambda y: y.shape == x.shape), exact=True)


def where(b):
    x = b.pick((F32, I32, I64))
    try:
        condition = b.pick((BOOL,), condition=lambda c: all(p == q or 1 in (p, q) for p, q in zip(c.shape[::-1], x.shape[::-1])) and b.same_rows(c, x))
    except Rejected:
        condition = b.constant(b.array(BOOL, x.shape[1:]))
    b.add("Where", condition, *((x, b.partner(x)) if b.chance(0.5) else (b.partner(x), x)), exact=True)


def cast(b):
    x = b.pick((F32, I32, I64, BOOL, F64))
    to = b.choose([F32, I32, I64, BOOL, F64])
    if x.dtype.kind == "f" and to.kind != "f" and not (x.is_exact and b.jumps):
        raise Rejected
    y = b.add("Cast", x, to=onnx.helper.np_dtype_to_tensor_dtype(to), exact=True)
    if to == F64 and b.chance(0.8):
        b.add("Cast", b.add("Mul", y, b.constant(np.float64(0.3))), to=onnx.TensorProto.FLOAT)


def matmul(b):
    x = b.pick(rank=(2 if b.rows else 1, 4))
    k = x.shape[-1]
    if b.chance(0.3):
        axes = list(range(x.rank))
        if x.rank < 2:
            raise Rejected
        axes[-2:] = axes[:-3:-1]
        y = b.add("Transpose", x, perm=axes, exact=True)
        b.add("Mul", b.add("MatMul", x, y, keep=b.chance(0.2)), b.constant(np.float32(1 / (k + 1))))
        return
    n = b.extent()
    shape = b.choose([[k, n], [k, n], [k], [*x.shape[:-2], k, n], [3, 1, k, n]])
    if b.rows and len(shape) > 2:
        shape = [k, n]
    w = b.constant(b.array(F32, shape, k ** -0.5))
    y = b.add("MatMul", x, w)
    if b.chance(0.5) and y.rank:
        b.add("Add", y, b.constant(b.array(F32, y.shape[-1:])))


def left_matmul(b):
    x = b.pick(rank=(3 if b.rows else 1, 4))
    k = x.shape[-2] if x.rank > 1 else x.shape[0]
    b.add("MatMul", b.constant(b.array(F32, [b.extent(), k] if b.chance(0.7) else [k], k ** -0.5)), x)


def gemm(b):
    x = b.pick(rank=(2, 2))
    trans_a, trans_b = int(b.chance(0.3) and not b.rows), int(b.chance(0.5))
    m, k = x.shape[::-1] if trans_a else x.shape
    n = b.extent()
    w = b.constant(b.array(F32, [n, k] if trans_b else [k, n], k ** -0.5))
    c = b.constant(b.array(F32, b.choose([[n], [1, n], [], [1], [1, 1]] + ([] if b.rows else [[m, 1], [m, n]])))) if b.chance(0.7) else None
    b.add("Gemm", x, w, *([c] if c else []), transA=trans_a, transB=trans_b, alpha=float(b.choose([1, 0.5])), beta=float(b.choose([1, 2])))


def einsum(b):
    x = b.pick(rank=(2, 3))
    k = x.shape[-1]
    w = b.constant(b.array(F32, [k, b.extent()], k ** -0.5))
    b.add("Einsum", x, w, equation="abk,kn->nab" if x.rank == 3 else "ak,kn->na")


def window(b, x, kernel_least=1):
    spatial = x.rank - 2
    kernel = [int(b.rng.integers(kernel_least, min(extent, 4) + 1)) if extent >= kernel_least else 1 for extent in x.shape[2:]]
    result = {"kernel_shape": kernel}
    if b.chance(0.5):
        result["strides"] = [int(b.rng.integers(1, 4)) for _ in range(spatial)]
    if b.chance(0.2):
        result["auto_pad"] = b.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif b.chance(0.6):
        result["pads"] = [int(b.rng.integers(0, k)) for k in kernel * 2]
    return result


def conv(b):
    x = b.pick(rank=(3, 5))
    channels = x.shape[1]
    groups = b.choose([g for g in range(1, channels + 1) if channels % g == 0]) if b.chance(0.4) else 1
    features = groups * b.choose([1, 2, 3, 5])
    attributes = window(b, x)
    if b.chance(0.2) and "auto_pad" not in attributes:
        attributes["dilations"] = [b.choose([1, 2]) if 2 * k - 1 <= extent else 1 for k, extent in zip(attributes["kernel_shape"], x.shape[2:])]
    w = b.array(F32, [features, channels // groups, *attributes["kernel_shape"]], (channels // groups * np.prod(attributes["kernel_shape"])) ** -0.5)
    bias = [b.constant(b.array(F32, [features]))] if b.chance(0.6) else []
    y = b.add("Conv", x, b.constant(w), *bias, group=groups, **attributes)
    if b.chance(0.3):
        batch_normalization(b, y)


def conv_transpose(b):
    x = b.pick(rank=(3, 4))
    features, kernel = b.choose([1, 2, 3]), [b.choose([1, 2, 3]) for _ in x.shape[2:]]
    w = b.array(F32, [x.shape[1], features, *kernel], (x.shape[1] * np.prod(kernel)) ** -0.5)
    b.add("ConvTranspose", x, b.constant(w), strides=[b.choose([1, 2]) for _ in kernel], pads=[int(b.rng.integers(0, k)) for k in kernel * 2])


def pool(b):
    x = b.pick(rank=(3, 5))
    op = b.choose(["MaxPool", "AveragePool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"])
    if op.startswith("Global"):
        b.add(op, x)
        return
    attributes = window(b, x)
    if op == "AveragePool":
        attributes["count_include_pad"] = int(b.chance(0.5))
    if op != "LpPool" and "auto_pad" not in attributes:
        attributes["ceil_mode"] = int(b.chance(0.3))
    b.add(op, x, exact=op == "MaxPool", **attributes)


def batch_normalization(b, x=None):
    x = x or b.pick(rank=(2, 4))
    c = [x.shape[1]]
    b.add("BatchNormalization", x, b.constant(b.array(F32, c)), b.constant(b.array(F32, c)), b.constant(b.array(F32, c, 0.3)),
          b.constant(np.abs(b.array(F32, c)) + np.float32(0.5)))


def normalization(b):
    op = b.choose(["LayerNormalization", "LayerNormalization", "InstanceNormalization", "LpNormalization", "MeanVarianceNormalization",
                   "GroupNormalization", "LRN"])
    x = b.pick(rank=(1, 4) if op[0] == "L" and op != "LRN" else (4, 4) if op in ("LRN", "MeanVarianceNormalization") else (3, 4))
    if op == "LayerNormalization":
        axis = int(b.rng.integers(1 if b.rows and x.rank > 1 else 0, x.rank))
        tail = x.shape[axis:]
        if np.prod(tail) < 3:
            raise Rejected  # a variance of nothing but rounding errors
        parts = [b.constant(b.array(F32, tail)), b.constant(b.array(F32, tail))][:int(b.rng.integers(1, 3))]
        b.add(op, x, *parts, axis=axis, epsilon=1e-2)
    elif op == "InstanceNormalization":
        b.add(op, x, b.constant(b.array(F32, x.shape[1:2])), b.constant(b.array(F32, x.shape[1:2])), epsilon=1e-2)
    elif op == "GroupNormalization":
        groups = b.choose([g for g in range(1, x.shape[1] + 1) if x.shape[1] % g == 0])
        b.add(op, x, b.constant(b.array(F32, x.shape[1:2])), b.constant(b.array(F32, x.shape[1:2])), num_groups=groups, epsilon=1e-2)
    elif op == "LpNormalization":
        y = b.add("Add", b.add("Abs", x), b.constant(np.float32(0.5)))
        b.add(op, y, axis=b.axis(y), p=b.choose([1, 2]))
    elif op == "LRN":
        b.add(op, x, size=b.choose([1, 3, 5]))
    else:
        y = b.add("Add", x, b.constant(b.array(F32, (7,) if x.shape[-1] == 7 else (1,))))
        if np.prod([y.shape[0], *y.shape[2:]]) < 4:
            raise Rejected
        b.add("Tanh", b.add("ReduceMean", y, keepdims=1))


def reduce(b):
    op = b.choose(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd"])
    x = b.pick((F32, I32, I64) if op in ("ReduceSum", "ReduceMax", "ReduceMin") else (F32,), rank=(0, 5))
    axes = b.some_axes(x)
    if b.rows and x.rank > 1:
        axes = [a for a in axes if a % x.rank] or [-1]
    if op in ("ReduceProd", "ReduceSumSquare"):
        x = b.add("Tanh", x)
    inputs = [x, b.ints(axes)] if axes and b.chance(0.85) else [x]
    attributes = {"noop_with_empty_axes": 1} if len(inputs) == 1 and b.chance(0.3) and op in ("ReduceSum", "ReduceMax") else {}
    b.add(op, *inputs, keepdims=int(b.chance(0.5)), exact=op in ("ReduceMax", "ReduceMin") or x.dtype.kind == "i", **attributes)


def arg(b):
    x = b.pick((F32, I32), rank=(1, 5), exact=True)
    b.add(b.choose(["ArgMax", "ArgMin"]), x, axis=b.axis(x), keepdims=int(b.chance(0.5)), select_last_index=int(b.chance(0.2)), exact=True)


def softmax(b):
    x = b.pick(rank=(1, 5))
    b.add(b.choose(["Softmax", "Softmax", "LogSoftmax"]), x, axis=b.axis(x))


def cumulate(b):
    x = b.pick((F32, I32, I64), rank=(1, 4))
    y = b.add("CumSum", x, b.constant(np.array(b.axis(x), np.int64)), exclusive=int(b.chance(0.3)), reverse=int(b.chance(0.3)),
              exact=x.dtype.kind == "i")
    if x.dtype == F32:
        b.add("Div", y, b.constant(np.float32(4)))


def top_k(b):
    x = b.pick((F32, I64), rank=(1, 4), exact=True)
    axis = b.axis(x)
    k = int(b.rng.integers(1, x.shape[axis] + 1))
    b.add("TopK", x, b.ints([k]), outputs=2, axis=axis, largest=int(b.chance(0.6)), sorted=1, exact=True)


ANY = (F32, I32, I64, BOOL)


def transpose(b):
    x = b.pick(ANY, rank=(1, 5))
    perm = [int(d) for d in b.rng.permutation(x.rank)]
    if b.rows and b.chance(0.9):
        perm = [0] + [d for d in perm if d]
    b.add("Transpose", x, perm=perm, exact=True)


def reshape(b):
    x = b.pick(ANY)
    kept = x.shape[:1] if b.rows else ()
    factors = []
    rest = int(np.prod(x.shape[len(kept):], initial=1))
    for p in (2, 3, 5, 7, 11, 13, 17):
        while rest % p == 0:
            factors.append(p)
            rest //= p
    factors += [rest] if rest > 1 else []
    shape = [1] * int(b.rng.integers(1 if factors else 0, 5 - len(kept)))
    for f in factors:
        shape[b.rng.integers(len(shape))] *= f
    shape = [0] * len(kept) + shape
    if len(shape) > len(kept) and b.chance(0.4):
        shape[int(b.rng.integers(len(kept), len(shape)))] = -1
    b.add("Reshape", x, b.ints(shape), exact=True)


def squeeze(b):
    x = b.pick(ANY)
    ones = [d for d, e in enumerate(x.shape) if e == 1]
    if ones and b.chance(0.6):
        b.add("Squeeze", x, b.ints([b.choose(ones)]), exact=True)
    elif x.rank < 5:
        b.add("Unsqueeze", x, b.ints([int(b.rng.integers(-x.rank - 1, x.rank + 1))]), exact=True)


def flatten(b):
    x = b.pick(ANY, rank=(1, 5))
    b.add("Flatten", x, axis=1 if b.rows else int(b.rng.integers(-x.rank, x.rank + 1)), exact=True)


def slice_of(b):
    x = b.pick(ANY, rank=(1, 5))
    axes, starts, ends, steps = [], [], [], []
    for d, extent in enumerate(x.shape):
        if extent == 1 or b.chance(0.5) or (b.rows and d == 0 and b.chance(0.9)):
            continue
        step = b.choose([1, 1, 1, 2, 3, -1, -2])
        low = int(b.rng.integers(0, extent - 1))
        high = int(b.rng.integers(low + 1, extent + 1))
        start, end = (low, high) if step > 0 else (high - 1, low - 1 if low else -(2 ** 40))
        if step > 0 and b.chance(0.3):
            start, end = start - extent, 2 ** 40
        axes, starts, ends, steps = [*axes, d], [*starts, start], [*ends, end], [*steps, step]
    if axes:
        b.add("Slice", x, b.ints(starts), b.ints(ends), b.ints(axes), b.ints(steps), exact=True)


def concat(b):
    x = b.pick(ANY, rank=(1, 5))
    axis = b.axis(x)
    if b.rows and axis % x.rank == 0:
        raise Rejected
    d = axis % x.rank
    parts = [x]
    for _ in range(int(b.rng.integers(1, 4))):
        if b.chance(0.7):
            parts.append(b.pick((x.dtype,), condition=lambda y: y.rank == x.rank and y.shape[:d] + y.shape[d + 1:] == x.shape[:d] + x.shape[d + 1:]))
        elif not b.rows:
            parts.append(b.constant(b.array(x.dtype, [*x.shape[:d], b.extent(), *x.shape[d + 1:]])))
    b.add("Concat", *[parts[i] for i in b.rng.permutation(len(parts))], axis=axis, exact=True)


def split(b):
    x = b.pick(ANY, rank=(1, 5))
    axis = b.axis(x)
    extent = x.shape[axis]
    if extent < 2:
        raise Rejected
    first = int(b.rng.integers(1, extent))
    sizes = [first, extent - first] if b.chance(0.6) or extent - first < 2 else [first, 1, extent - first - 1]
    b.add("Split", x, b.ints(sizes), outputs=len(sizes), axis=axis, exact=True)


def pad(b):
    x = b.pick((F32, I32, I64), rank=(1, 4))
    mode = b.choose(["constant", "constant", "reflect", "edge", "wrap"])
    most = [3 if mode in ("constant", "edge") else min(3, e - 1) for e in x.shape]
    least = [-1 if mode == "constant" and e > 3 else 0 for e in x.shape]
    if b.rows:
        most[0] = least[0] = 0
    pads = [int(b.rng.integers(low, high + 1)) for low, high in [*zip(least, most)] * 2]
    inputs = [x, b.ints(pads)]
    if mode == "constant" and b.chance(0.6):
        inputs.append(b.constant(np.array(2, x.dtype)))
    b.add("Pad", *inputs, mode=mode, exact=True)


def indices(b, extent, shape=None):
    """Indices into an extent: a constant, or integers of the graph brought into it."""
    if b.chance(0.5):
        shape = [b.extent() for _ in range(int(b.rng.integers(0, 3)))] if shape is None else shape
        return b.constant(b.rng.integers(-extent, extent, shape).astype(np.int64))
    x = b.pick((I64,), rank=(0, 3), condition=lambda v: shape is None or v.shape == tuple(shape))
    return b.add("Mod", x, b.constant(np.int64(extent)), exact=True)


def gather(b):
    x = b.pick(ANY, rank=(1, 4))
    axis = b.axis(x)
    b.add("Gather", x, indices(b, x.shape[axis]), axis=axis, exact=True)


def gather_elements(b):
    if b.rows:
        raise Rejected
    x = b.pick((F32, I64), rank=(1, 4))
    axis = b.axis(x)
    shape = [int(b.rng.integers(1, e + 1)) for e in x.shape]
    b.add("GatherElements", x, b.constant(b.rng.integers(-x.shape[axis], x.shape[axis], shape).astype(np.int64)), axis=axis, exact=True)


def gather_nd(b):
    if b.rows:
        raise Rejected
    x = b.pick(ANY, rank=(1, 4))
    depth = int(b.rng.integers(1, x.rank + 1))
    shape = [b.extent() for _ in range(int(b.rng.integers(0, 3)))]
    b.add("GatherND", x, b.constant(np.stack([b.rng.integers(-e, e, shape) for e in x.shape[:depth]], -1).astype(np.int64)), exact=True)


def scatter(b):
    if b.rows:
        raise Rejected
    x = b.pick((F32, I64), rank=(1, 4))
    if b.chance(0.5):
        axis = b.axis(x)
        shape = [int(b.rng.integers(1, e + 1)) for e in x.shape]
        reduction = b.choose(["none", "add", "max", "min"])
        index = np.broadcast_to(np.argsort(b.rng.random(x.shape[axis]))[:shape[axis]].reshape([-1 if d == axis % x.rank else 1 for d in range(x.rank)]),
                                shape) if reduction == "none" else b.rng.integers(0, x.shape[axis], shape)
        b.add("ScatterElements", x, b.constant(np.ascontiguousarray(index, np.int64)), b.constant(b.array(x.dtype, shape)), axis=axis, reduction=reduction)
    else:
        count = int(b.rng.integers(1, x.shape[0] + 1))
        index = b.rng.permutation(x.shape[0])[:count].reshape(-1, 1).astype(np.int64)
        b.add("ScatterND", x, b.constant(index), b.constant(b.array(x.dtype, (count, *x.shape[1:]))), reduction=b.choose(["none", "add"]), exact=False)


def expand(b):
    x = b.pick(ANY, rank=(0, 4))
    shape = [b.extent() if e == 1 and b.chance(0.6) and not (b.rows and d == 0) else e if b.chance(0.5) and not b.rows else 1 for d, e in enumerate(x.shape)]
    shape = ([b.extent()] if b.chance(0.3) and not b.rows else []) + shape
    b.add("Expand", x, b.ints(shape), exact=True)


def tile(b):
    x = b.pick(ANY, rank=(1, 4))
    b.add("Tile", x, b.ints([1 if b.rows and d == 0 else b.choose([1, 1, 2, 3]) for d in range(x.rank)]), exact=True)


def blocks(b):
    x = b.pick(rank=(4, 4))
    size = b.choose([2, 3])
    if x.shape[1] % (size * size) == 0:
        b.add("DepthToSpace", x, blocksize=size, mode=b.choose(["DCR", "CRD"]), exact=True)
    elif x.shape[2] % size == 0 and x.shape[3] % size == 0:
        b.add("SpaceToDepth", x, blocksize=size, exact=True)
    else:
        raise Rejected


def resize(b):
    x = b.pick(rank=(4, 4))
    sizes = [*x.shape[:2], b.extent(), b.extent()]
    mode = b.choose(["nearest", "linear"])
    scales = b.constant(np.array([1, 1, *(b.choose([0.5, 2, 3]) for _ in range(2))], np.float32))
    b.add("Resize", x, None, scales, mode=mode, coordinate_transformation_mode="asymmetric" if b.chance(0.5) else "half_pixel",
          **({"nearest_mode": "floor"} if mode == "nearest" else {})) if b.chance(0.5) or b.rows else \
        b.add("Resize", x, None, None, b.ints(sizes), mode="linear", coordinate_transformation_mode="half_pixel")


def trilu(b):
    b.add("Trilu", b.pick((F32, I64, BOOL), rank=(2, 4)), b.constant(np.int64(b.rng.integers(-3, 4))), upper=int(b.chance(0.5)), exact=True)


def one_hot(b):
    x = b.pick((I64,), rank=(0, 3))
    b.add("OneHot", x, b.ints([b.choose([3, 5])]), b.constant(np.array([-1, 2], np.float32)), axis=int(b.rng.integers(-x.rank - 1, x.rank + 1)), exact=True)


def size_of(b):
    x = b.pick(rank=(1, 5))
    y = b.add("Shape", x, keep=False, exact=True, **({"start": 0, "end": 1} if b.chance(0.5) else {}))
    if b.rows and b.chance(0.7):
        raise Rejected
    b.add("Cast", y, to=onnx.TensorProto.FLOAT, exact=True)


def attention_like(b):
    x = b.pick(rank=(3, 4))
    k = x.shape[-1]
    q, key, v = (b.add("MatMul", x, b.constant(b.array(F32, [k, n], k ** -0.5)), keep=False) for n in (8, 8, b.choose([5, 8])))
    axes = list(range(x.rank))
    axes[-2:] = axes[:-3:-1]
    scores = b.add("Mul", b.add("MatMul", q, b.add("Transpose", key, perm=axes, keep=False), keep=b.chance(0.2)), b.constant(np.float32(0.3)), keep=False)
    if b.chance(0.4):
        scores = b.add("Add", scores, b.constant(b.array(F32, scores.shape[-1:])), keep=False)
    b.add("MatMul", b.add("Softmax", scores, axis=-1, keep=b.chance(0.2)), v)


def manual_normalization(b):
    x = b.pick(rank=(2, 4))
    if x.shape[-1] < 3:
        raise Rejected
    mean = b.add("ReduceMean", x, b.ints([-1]), keepdims=1, keep=b.chance(0.2))
    centred = b.add("Sub", x, mean, keep=b.chance(0.3))
    square = b.add("Pow", centred, b.constant(np.float32(2)), keep=False) if b.chance(0.5) else b.add("Mul", centred, centred, keep=False)
    variance = b.add("Add", b.add("ReduceMean", square, b.ints([-1]), keepdims=1, keep=False), b.constant(np.float32(0.01)), keep=False)
    y = b.add("Div", centred, b.add("Sqrt", variance, keep=b.chance(0.2)))
    b.add("Add", b.add("Mul", y, b.constant(b.array(F32, x.shape[-1:]))), b.constant(b.array(F32, x.shape[-1:])))


OPERATORS = [unary, unary, unary, domain_unary, stepped, clip, binary, binary, binary, binary, several, integers, integers, booleans, compare, where, where,
             cast, cast, matmul, matmul, left_matmul, gemm, einsum, conv, conv, conv, conv_transpose, pool, pool, batch_normalization, normalization,
             normalization, reduce, reduce, arg, softmax, softmax, cumulate, top_k, transpose, transpose, reshape, reshape, reshape, squeeze, flatten, slice_of,
             slice_of, concat, concat, concat, split, split, pad, gather, gather_elements, gather_nd, scatter, expand, tile, blocks, resize, trilu, one_hot,
             size_of, attention_like, manual_normalization]


def build(seed, rows=None, jumps=True, only=None):
    """A model and the function that draws its inputs: `feed(n)` for n rows."""
    b = Builder(seed, rows, jumps)
    for _ in range(int(b.rng.integers(1, 4))):
        shape = [b.extent() for _ in range(int(b.rng.integers(1 if rows else 0, 6)))]
        while np.prod(shape, initial=1) > 4000:
            shape[int(np.argmax(shape))] = 3
        if rows:
            shape[0] = rows
        b.input(b.choose([F32, F32, F32, I64, I32, BOOL]) if b.inputs else F32, shape)
    wanted, tries = int(b.rng.integers(5, 31)), 0
    while len(b.nodes) < wanted and tries < 200:
        tries += 1
        count, values, number = len(b.nodes), len(b.values), b.number
        try:
            b.choose(only or OPERATORS)(b)
        except (Rejected, onnx.shape_inference.InferenceError):
            del b.nodes[count:], b.values[values:]
    model = b.finish()
    used = {name for node in model.graph.node for name in node.input}
    for tensor in [t for t in model.graph.initializer if t.name not in used]:
        model.graph.initializer.remove(tensor)

    def feed(n=None, seed=seed):
        rng = np.random.default_rng(seed + 1)
        result = {}
        for name, (dtype, shape) in b.inputs.items():
            shape = (n, *shape[1:]) if n else shape
            result[name] = np.asarray(rng.random(shape) < 0.5) if dtype == BOOL else rng.integers(-9, 10, shape).astype(dtype) if dtype.kind == "i" else \
                np.asarray(rng.standard_normal(shape), dtype)
        return result
    return model, feed
