"""Single operators against onnxruntime: the operators of the models that ogc is made for, over shapes, attributes and absent inputs."""
import zlib

import numpy as np
import onnx
import pytest

import harness

F32, F16, I64, I32, BOOL = np.float32, np.float16, np.int64, np.int32, np.bool_


def f(*shape, dtype=F32):
    """Normally distributed numbers."""
    return np.random.default_rng(zlib.crc32(repr(shape).encode())).standard_normal(shape).astype(dtype)


def positive(*shape):
    return np.abs(f(*shape)) + F32(0.1)


def i(*shape, low=-9, high=10, dtype=I64):
    return np.random.default_rng(zlib.crc32(repr(shape).encode())).integers(low, high, shape).astype(dtype)


def b(*shape):
    return f(*shape) > 0


def ints(*values):
    return np.array(values, I64)


CASES = []


def case(op, *inputs, name="", constants=(), outputs=1, opset=21, **attributes):
    """Adds a case; inputs with an index in `constants` become initializers."""
    parameter = pytest.param(op, inputs, constants, outputs, opset, attributes, id=f"{op} {name}".strip())
    CASES.append(parameter)


# Element-wise: broadcasts in both directions, scalars, special values.
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 88.0, -104.0, 1e-20, 3e38], F32)
for op in ("Add", "Sub", "Mul", "Div", "Pow"):
    left = positive(2, 3, 4) if op == "Pow" else f(2, 3, 4)
    case(op, left, f(2, 3, 4), name="same")
    case(op, left, f(3, 1), name="broadcast")
    case(op, f(4) if op != "Pow" else positive(4), f(2, 3, 1), name="both")
    case(op, left, F32(2.0), name="scalar", constants=[1])
for op in ("Add", "Sub", "Mul"):
    case(op, i(5, 7), i(7), name="int64")
    case(op, f(4, 5, dtype=F16), f(5, dtype=F16), name="fp16")
case("Div", i(5, 7), i(7, low=1), name="int64")
case("Mod", i(5, 7), i(7, low=1), name="int64")
for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Neg", "Abs", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "HardSwish", "HardSigmoid", "Softplus",
           "Identity", "Sign", "Elu", "LeakyRelu", "Selu", "Cos", "Sin"):
    case(op, f(3, 5))
    if op not in ("Cos", "Sin"):
        case(op, SPECIAL, name="special values")
case("Log", positive(3, 5))
case("Gelu", f(3, 50), name="erf")
case("Gelu", f(3, 50), name="tanh", approximate="tanh")
case("Clip", f(3, 5), F32(-0.5), F32(0.5), constants=[1, 2])
case("Clip", f(3, 5), None, F32(0.5), name="no minimum", constants=[2])
case("PRelu", f(2, 3, 4), f(3, 1), constants=[1])
case("Max", f(2, 3), f(3), f(1, 1), name="three")
case("Min", f(2, 3), f(2, 1), name="two")
case("Sum", f(2, 3), f(3), f(2, 1), name="three")
case("Where", b(2, 3, 1), f(2, 1, 4), f(3, 4))
case("And", b(2, 3), b(3))
case("Or", b(2, 3), b(3))
case("Not", b(2, 3))
case("IsNaN", SPECIAL)
for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
    case(op, i(5, 7, low=0, high=3), i(7, low=0, high=3), name="int64")
    case(op, SPECIAL.reshape(3, 5), SPECIAL[::-1].copy().reshape(3, 5), name="special values")
for source, to in ((f(3, 5), "INT64"), (f(3, 5), "FLOAT16"), (f(3, 5, dtype=F16), "FLOAT"), (i(3, 5), "FLOAT"), (b(3, 5), "FLOAT"), (i(3, 5), "BOOL"),
                   (f(3, 5), "BOOL"), (i(3, 5), "INT32"), (i(3, 5, low=0, dtype=np.uint8), "FLOAT")):
    case("Cast", source, name=f"{source.dtype} to {to}", to=onnx.TensorProto.DataType.Value(to))

# Contractions: tails of every tile, vectors, batches, constant and computed right sides.
for m, k, n in ((1, 7, 5), (17, 33, 65), (64, 128, 96), (128, 64, 1), (1, 256, 1000), (3, 1, 3)):
    case("MatMul", f(m, k), f(k, n), name=f"{m}x{k}x{n}")
    case("MatMul", f(m, k), f(k, n), name=f"{m}x{k}x{n} constant", constants=[1])
case("MatMul", f(2, 3, 5, 7), f(7, 4), name="batch times matrix", constants=[1])
case("MatMul", f(2, 3, 5, 7), f(3, 7, 4), name="batch broadcast")
case("MatMul", f(1, 3, 5, 7), f(2, 1, 7, 4), name="batch broadcast both")
case("MatMul", f(7), f(7, 4), name="vector left")
case("MatMul", f(5, 7), f(7), name="vector right")
case("MatMul", f(7), f(7), name="dot product")
case("MatMul", f(20, 40, dtype=F16), f(40, 24, dtype=F16), name="fp16")
for a, t in ((0, 0), (0, 1), (1, 0), (1, 1)):
    case("Gemm", f(*((9, 6) if a else (6, 9))), f(*((5, 9) if t else (9, 5))), f(5), name=f"transA={a} transB={t}", transA=a, transB=t, constants=[1, 2])
case("Gemm", f(6, 9), f(9, 5), name="no C")
case("Gemm", f(6, 9), f(9, 5), f(6, 1), name="alpha, beta, C a column", alpha=0.5, beta=-2.0)
case("Gemm", f(6, 9), f(9, 5), F32(3), name="C a scalar")

# Convolution and pooling.
CONV = {"1x1": ((1, 8, 7, 7), (16, 8, 1, 1), {}), "1x1 stride 2": ((1, 8, 7, 7), (16, 8, 1, 1), dict(strides=[2, 2])),
        "3x3 pad": ((1, 3, 10, 11), (5, 3, 3, 3), dict(pads=[1, 1, 1, 1])), "7x7 stride 2": ((1, 3, 23, 23), (16, 3, 7, 7), dict(strides=[2, 2], pads=[3] * 4)),
        "uneven": ((2, 4, 9, 12), (6, 4, 3, 2), dict(strides=[2, 1], pads=[0, 1, 2, 0])), "dilated": ((1, 4, 12, 12), (6, 4, 3, 3), dict(dilations=[2, 3], pads=[2] * 4)),
        "groups": ((1, 6, 8, 8), (9, 2, 3, 3), dict(group=3, pads=[1] * 4)), "depthwise": ((1, 16, 9, 9), (16, 1, 3, 3), dict(group=16, pads=[1] * 4)),
        "depthwise stride 2": ((2, 20, 9, 9), (20, 1, 5, 5), dict(group=20, pads=[2] * 4, strides=[2, 2])),
        "depthwise multiplier": ((1, 4, 8, 8), (8, 1, 3, 3), dict(group=4)), "same upper": ((1, 3, 8, 9), (4, 3, 3, 3), dict(auto_pad="SAME_UPPER", strides=[2, 2])),
        "same lower": ((1, 3, 8, 9), (4, 3, 2, 2), dict(auto_pad="SAME_LOWER")), "one dimension": ((2, 4, 15), (6, 4, 5), dict(pads=[2, 2])),
        "patches": ((1, 3, 32, 32), (24, 3, 16, 16), dict(strides=[16, 16])), "5x1": ((1, 8, 20, 1), (16, 8, 5, 1), {})}
for name, (x, w, attributes) in CONV.items():
    case("Conv", f(*x), f(*w), f(w[0]), name=name, constants=[1, 2], **attributes)
# Windows that tile the input: a product of patches, in every rank; the last rows and columns may be left over.
for name, x, w in (("patches 1-D", (2, 3, 35), (5, 3, 8)), ("patches 2-D", (2, 3, 18, 21), (5, 3, 4, 4)), ("patches 3-D", (1, 3, 5, 6, 9), (4, 3, 2, 3, 3))):
    case("Conv", f(*x), f(*w), f(w[0]), name=name, constants=[1, 2], strides=list(w[2:]))
case("Conv", f(1, 3, 8, 8), f(4, 3, 3, 3), name="no bias", constants=[1])
case("Conv", f(1, 3, 8, 8), f(4, 3, 3, 3), f(4), name="computed weights")
case("Conv", f(1, 8, 8, 8, dtype=F16), f(4, 8, 3, 3, dtype=F16), f(4, dtype=F16), name="fp16", constants=[1, 2])
case("BatchNormalization", f(2, 5, 4, 4), f(5), f(6)[:5], f(7)[:5], positive(5), constants=[1, 2, 3, 4], epsilon=1e-3)
case("MaxPool", f(1, 3, 11, 12), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("MaxPool", f(1, 3, 11, 12), name="ceil", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)
case("MaxPool", f(1, 3, 12), name="one dimension, dilated", kernel_shape=[3], dilations=[2])
case("AveragePool", f(1, 3, 11, 12), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("AveragePool", f(1, 3, 11, 12), name="include pad", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
case("GlobalAveragePool", f(2, 5, 7, 6))
case("GlobalMaxPool", f(2, 5, 7, 6))
case("LRN", f(1, 9, 4, 4), size=5, alpha=0.01)

# Reductions and normalizations over rows.
for op in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare"):
    case(op, f(3, 4, 5), ints(1), name="middle", constants=[1])
    case(op, f(3, 4, 5), ints(-1, 0), name="two, dropped", constants=[1], keepdims=0)
    case(op, f(3, 4, 5), name="all")
case("ReduceSum", i(3, 4), ints(1), name="int64", constants=[1])
case("ReduceSum", f(3, 4), ints(), name="empty axes do nothing", constants=[1], noop_with_empty_axes=1)
case("ArgMax", f(3, 40), axis=1)
for shape, axis in (((4, 50), -1), ((2, 3, 7), 1), ((1, 1000), 1), ((2, 12, 16, 16), -1)):
    case("Softmax", f(*shape), name=f"{shape} axis {axis}", axis=axis)
case("Softmax", np.array([[-np.inf, 0, 1], [1e4, -1e4, 0]], F32), name="large values")
case("LogSoftmax", f(4, 50))
case("LayerNormalization", f(4, 7, 48), f(48), f(48), constants=[1, 2])
case("LayerNormalization", f(4, 7, 48), f(7, 48), name="two axes, no bias", axis=1, constants=[1])
case("LayerNormalization", f(4, 768, dtype=F16), f(768, dtype=F16), f(768, dtype=F16), name="fp16", constants=[1, 2])
case("InstanceNormalization", f(2, 3, 6, 6), f(3), f(3), constants=[1, 2])

# Shapes, slices and indices.
case("Reshape", f(2, 3, 4), ints(0, -1), constants=[1])
case("Reshape", f(2, 0, 4), ints(4, 0, 2), name="no element", constants=[1], allowzero=1)
case("Flatten", f(2, 3, 4), axis=2)
case("Squeeze", f(1, 3, 1), ints(0), constants=[1])
case("Unsqueeze", f(3, 4), ints(0, -1), constants=[1])
for permutation in ([1, 0, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2], [3, 2, 1, 0]):
    case("Transpose", f(2, 3, 4, 5), name=str(permutation), perm=permutation)
case("Expand", f(3, 1), ints(2, 1, 4), constants=[1])
case("Tile", f(2, 3), ints(2, 3), constants=[1])
case("Concat", f(2, 3), f(2, 1), f(2, 4), axis=1)
case("Split", f(6, 5), outputs=3, axis=0, num_outputs=3)
case("Split", f(6, 5), ints(1, 4), name="sizes", outputs=2, axis=1, constants=[1])
case("Slice", f(8, 9), ints(1, -3), ints(7, 100), ints(0, 1), ints(2, 1), constants=[1, 2, 3, 4])
case("Slice", f(5, 24), ints(0), ints(16), ints(1), name="front columns", constants=[1, 2, 3])
case("Slice", f(8, 9), ints(-1), ints(-100), ints(1), ints(-2), name="backwards", constants=[1, 2, 3, 4])
case("Slice", f(3, 8, 9, 5), ints(0, -1, 7, 2), ints(1, -100, 0, 1), ints(0, 2, 1, 3), ints(1, -2, -3, -1), name="backwards in parts", constants=[1, 2, 3, 4])
case("Slice", f(3, 5), ints(0, 2), ints(2, 3), ints(0, 1), ints(1, -1), name="backwards without elements", constants=[1, 2, 3, 4])
case("Pad", f(2, 3), ints(0, 1, 2, 0), F32(1.5), constants=[1, 2])
for mode in ("reflect", "edge"):
    case("Pad", f(4, 5), ints(1, 2, 1, 0), name=mode, constants=[1], mode=mode)
case("Gather", f(10, 4), i(2, 3, low=-10, high=10), axis=0)
case("Gather", f(3, 6), ints(1, -1), name="axis 1", axis=1, constants=[1])
case("Gather", f(3, 6), I64(2), name="scalar index", axis=1, constants=[1])
case("GatherElements", f(3, 6), i(3, 2, low=-6, high=6), axis=1)
case("GatherND", f(2, 3, 4), i(5, 2, low=0, high=2))
case("GatherND", f(2, 3, 4), i(2, 1, low=0, high=3), name="batch", batch_dims=1)
case("ScatterND", f(5, 4), ints(1, 3).reshape(2, 1), f(2, 4))
case("ScatterElements", f(3, 5), i(3, 1, low=0, high=5), f(3, 1), axis=1)
case("CumSum", f(3, 5), I64(1), constants=[1])
case("Range", I64(2), I64(17), I64(3), constants=[0, 1, 2])
case("ConstantOfShape", ints(2, 3), constants=[0])
case("Shape", f(2, 3, 4))
case("Trilu", f(4, 5), upper=0)
case("OneHot", i(2, 3, low=0, high=4), I64(4), np.array([0, 1], F32), constants=[1, 2])
case("DepthToSpace", f(1, 8, 2, 3), blocksize=2)
case("Dropout", f(2, 3))

# Older forms of operators that changed.
case("Softmax", f(2, 3, 4), name="opset 11", opset=11, axis=1)
case("ReduceMean", f(2, 3, 4), name="axes as attribute", opset=17, axes=[1])
case("Squeeze", f(1, 3, 1), name="axes as attribute", opset=11, axes=[0])
case("Unsqueeze", f(3, 4), name="axes as attribute", opset=11, axes=[0, 3])
case("Split", f(6, 5), name="sizes as attribute", opset=11, outputs=2, axis=0, split=[2, 4])
case("Clip", f(3, 5), name="limits as attributes", opset=6, min=-0.5, max=0.5)
case("Pad", f(2, 3), name="pads as attribute", opset=2, pads=[0, 1, 2, 0], value=1.5)
case("BatchNormalization", f(2, 5, 4, 4), f(5), f(6)[:5], f(7)[:5], positive(5), name="opset 9", opset=9, constants=[1, 2, 3, 4])


@pytest.mark.parametrize("op, inputs, constants, outputs, opset, attributes", CASES)
def test_operator(ogc, tmp_path, request, op, inputs, constants, outputs, opset, attributes):
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    model, fed = harness.single_node(op, inputs, attributes, outputs, constants, opset)
    onnx.save(model, tmp_path / "m.onnx")
    half = any(x is not None and x.dtype == F16 for x in inputs)
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    actual, expected = ogc.run(bundle, fed), harness.reference(model, fed)
    if "special values" in request.node.callspec.id:  # one by one: the largest would hide the others
        np.testing.assert_allclose(actual["y0"], expected["y0"], rtol=1e-5, atol=1e-6)
    harness.check_outputs(actual, expected, 2e-3 if half else 1e-5)
