"""Element types of at most 8 bits: as inputs, outputs and constants, moved, cast and quantized. The onnx package's reference is the oracle."""
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import harness

F32 = np.float32
SMALL = {name: (getattr(TensorProto, name.upper()), getattr(ml_dtypes, dtype)) for name, dtype in {
    "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu", "float4e2m1": "float4_e2m1fn", "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2"}.items()}
BITS = {"float4e2m1": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
FLOATS = [name for name in SMALL if name.startswith("float")]
INTEGERS = [name for name in SMALL if "int" in name]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 3.5, -2.5, 0.1, 0.3, 5.0, 6.0, 7.0, 9.0, 100.0, 240.0, 250.0, 448.0, 464.0, 465.0, 500.0, -500.0, 57344.0, 61439.0,
                    61440.0, 70000.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**-6, 2.0**-9, 2.0**-10, 3 * 2.0**-10, 2.0**-11, 2.0**-16, 2.0**-17, 1.5 * 2.0**-17, 2.0**-18,
                    1e-30, 0.015625, 0.01, 17.0, 18.0, 19.0, 20.0, 1.0625, 1.1875], F32)


def patterns(name):
    """Every bit pattern of a type."""
    count = 1 << BITS.get(name, 8)
    return np.arange(count, dtype=np.uint8).view(SMALL[name][1])


def stored(array):
    """How ogc writes an array: small floats as their bytes, small integers as numbers."""
    if array.dtype in (ml_dtypes.int4, ml_dtypes.int2):
        return array.astype(np.int8)
    if array.dtype in (ml_dtypes.uint4, ml_dtypes.uint2):
        return array.astype(np.uint8)
    if array.dtype.itemsize == 1 and array.dtype.kind not in "iub":
        return array.view(np.uint8)
    return array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array


def make(nodes, inputs, outputs, constants=None, opset=25):
    infos = [helper.make_tensor_value_info(name, kind, array.shape) for name, (kind, array) in inputs.items()]
    results = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in outputs.items()]
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "test", infos, results, initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)


def run(ogc, folder, model, inputs):
    onnx.save(model, folder / "m.onnx")
    return ogc.run(ogc.compile(folder / "m.onnx", folder / "m.ogc", target="sm_90,cpu"), {name: array for name, (_, array) in inputs.items()})


def check(actual, expected):
    """Bytes are equal; any NaN is as good as another."""
    for name, array in expected.items():
        mine, theirs = actual[name], stored(array)
        if array.dtype.kind != "i" and array.dtype.kind != "u" and array.dtype.kind != "b":
            number, other = mine.view(array.dtype).astype(F32), array.astype(F32)
            same = (mine == theirs) | (np.isnan(number) & np.isnan(other))
            assert same.all(), (name, mine[~same], theirs[~same], number[~same], other[~same])
        else:
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("saturate", [0, 1])
def test_cast_to_small(ogc, tmp_path, saturate, folded):
    """From f32; as a runtime input and folded at compile time."""
    names = [name for name in FLOATS if name != "float8e8m0"]
    nodes = [helper.make_node("Cast", ["x"], [name], to=SMALL[name][0], saturate=saturate) for name in names]
    inputs = {"x": (TensorProto.FLOAT, SPECIAL)}
    model = make(nodes, {} if folded else inputs, {name: (SMALL[name][0], SPECIAL.shape) for name in names}, {"x": SPECIAL} if folded else None)
    actual = run(ogc, tmp_path, model, {} if folded else inputs)
    expected = ReferenceEvaluator(model).run(None, {} if folded else {"x": SPECIAL})
    check(actual, dict(zip(names, expected)))


@pytest.mark.parametrize("source", ["FLOAT16", "BFLOAT16", "DOUBLE", "INT32"])
def test_cast_from_wide(ogc, tmp_path, source):
    kind = getattr(TensorProto, source)
    x = SPECIAL[np.isfinite(SPECIAL)].clip(-60000, 60000).astype(helper.tensor_dtype_to_np_dtype(kind))
    names = [name for name in SMALL if name != "float8e8m0" and (source == "INT32" or name in FLOATS)]
    nodes = [helper.make_node("Cast", ["x"], [name], to=SMALL[name][0]) for name in names]
    inputs = {"x": (kind, x)}
    model = make(nodes, inputs, {name: (SMALL[name][0], x.shape) for name in names})
    check(run(ogc, tmp_path, model, inputs), dict(zip(names, ReferenceEvaluator(model).run(None, {"x": x}))))


def test_cast_to_small_integers(ogc, tmp_path):
    """Floats are truncated to int32, whose low bits count."""
    x = np.array([0, 0.9, -0.9, 1.5, -1.5, 3, 7, 8, 15, 16, -2, -8, -9, 1e9, -1e9, np.nan], F32)
    nodes = [helper.make_node("Cast", ["x"], [name], to=SMALL[name][0]) for name in INTEGERS]
    inputs = {"x": (TensorProto.FLOAT, x)}
    actual = run(ogc, tmp_path, make(nodes, inputs, {name: (SMALL[name][0], x.shape) for name in INTEGERS}), inputs)
    for name in INTEGERS:
        whole = np.trunc(np.nan_to_num(x)).astype(np.float64).clip(-(2**31), 2**31 - 1).astype(np.int64)
        bits, signed = BITS[name], not name.startswith("u")
        low = whole & ((1 << bits) - 1)
        np.testing.assert_array_equal(actual[name], np.where(signed & (low >> (bits - 1) == 1), low - (1 << bits), low))


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_cast_to_powers(ogc, tmp_path, mode):
    x = np.array([1, 1.1, 1.5, 1.6, 2, 3, 4, 5, 0.3, 0.75, 2.0**-126, 2.0**127, 1.9 * 2.0**127, 1e-3, np.nan], F32)
    inputs = {"x": (TensorProto.FLOAT, x)}
    model = make([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, round_mode=mode)], inputs, {"y": (TensorProto.FLOAT8E8M0, x.shape)})
    check(run(ogc, tmp_path, model, inputs), {"y": ReferenceEvaluator(model).run(None, {"x": x})[0]})


@pytest.mark.parametrize("folded", [False, True])
def test_cast_from_small(ogc, tmp_path, folded):
    """Every pattern of every type."""
    inputs = {name: (SMALL[name][0], patterns(name)) for name in SMALL}
    nodes = [helper.make_node("Cast", [name], [f"{name}_{to}"], to=to) for name in SMALL for to in (TensorProto.FLOAT, TensorProto.FLOAT16)]
    nodes += [helper.make_node("Cast", [name], [f"{name}_{TensorProto.INT32}"], to=TensorProto.INT32) for name in INTEGERS]
    outputs = {node.output[0]: (node.attribute[0].i, inputs[node.input[0]][1].shape) for node in nodes}
    model = make(nodes, {} if folded else inputs, outputs, {name: array for name, (_, array) in inputs.items()} if folded else None)
    actual = run(ogc, tmp_path, model, {} if folded else inputs)
    for node in nodes:
        dtype = helper.tensor_dtype_to_np_dtype(node.attribute[0].i)
        expected = inputs[node.input[0]][1].astype(F32).astype(dtype)
        np.testing.assert_array_equal(actual[node.output[0]], expected, err_msg=node.output[0])


@pytest.mark.parametrize("name", SMALL)
def test_moves(ogc, tmp_path, name):
    """Inputs, constants and outputs keep their bytes through operators that only move."""
    kind, x = SMALL[name][0], np.resize(patterns(name), (4, 6))
    inputs, constants = {"x": (kind, x)}, {"c": x[::-1].copy(), "shape": np.array([3, 8]), "pads": np.array([0, 1, 0, 0])}
    nodes = [helper.make_node("Identity", ["c"], ["identity"]), helper.make_node("Reshape", ["x", "shape"], ["reshape"]),
             helper.make_node("Transpose", ["x"], ["transpose"], perm=[1, 0]), helper.make_node("Unsqueeze", ["x", "axes"], ["unsqueeze"]),
             helper.make_node("Pad", ["x", "pads", "zero"], ["pad"])]
    constants |= {"axes": np.array([0]), "zero": x.ravel()[1:2].reshape(())}
    expected = {"identity": constants["c"], "reshape": x.reshape(3, 8), "transpose": x.T.copy(), "unsqueeze": x[None],
                "pad": np.concatenate([np.full((4, 1), constants["zero"]), x], 1)}
    if name == "float8e8m0":  # the schema of Pad leaves it out
        nodes, expected = nodes[:-1], {key: value for key, value in expected.items() if key != "pad"}
    model = make(nodes, inputs, {key: (kind, value.shape) for key, value in expected.items()}, constants)
    actual = run(ogc, tmp_path, model, inputs)
    for key, value in expected.items():
        np.testing.assert_array_equal(actual[key], stored(value), err_msg=key)


@pytest.mark.parametrize("name", ["uint8", "int8", "uint16", "int16", *[name for name in SMALL if name != "float8e8m0"]])
@pytest.mark.parametrize("form", ["tensor", "axis", "block"])
def test_quantize(ogc, tmp_path, name, form):
    kind, dtype = SMALL.get(name) or (getattr(TensorProto, name.upper()), np.dtype(name))
    x = (np.random.default_rng(1).standard_normal((4, 12)) * 20).astype(F32)
    shape = {"tensor": (), "axis": (4,), "block": (4, 3)}[form]
    scale = np.abs(np.random.default_rng(2).standard_normal(shape)).astype(F32) + F32(0.5)
    zero = np.zeros(shape, dtype) if name.startswith("float") else np.resize(np.array([1, 0, 1], np.int8).astype(dtype), shape)
    attributes = {"tensor": {}, "axis": {"axis": 0}, "block": {"axis": 1, "block_size": 4}}[form]
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], **attributes), helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], **attributes)]
    inputs = {"x": (TensorProto.FLOAT, x)}
    model = make(nodes, inputs, {"q": (kind, x.shape), "y": (TensorProto.FLOAT, x.shape)}, {"scale": scale, "zero": zero})
    actual = run(ogc, tmp_path, model, inputs)
    expected = dict(zip(["q", "y"], ReferenceEvaluator(model).run(None, {"x": x})))
    check({"q": actual["q"]}, {"q": expected["q"]})
    np.testing.assert_allclose(actual["y"], expected["y"], rtol=1e-6)


def test_integer_products(ogc, tmp_path):
    """Sums of many 8-bit products are exact; extreme values, zero points of rows and columns."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 256, (2, 5, 700)).astype(np.uint8), rng.integers(-128, 128, (700, 6)).astype(np.int8)
    a[0, 0], b[:, 0] = 255, -128
    x, w = rng.integers(0, 256, (1, 40, 7, 7)).astype(np.uint8), rng.integers(-128, 128, (6, 40, 3, 3)).astype(np.int8)
    nodes = [helper.make_node("MatMulInteger", ["a", "b", "az", "bz"], ["p"]), helper.make_node("ConvInteger", ["x", "w", "az", "wz"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("ConvInteger", ["x", "d", "az"], ["g"], group=40)]
    constants = {"b": b, "az": np.uint8(3), "bz": rng.integers(-9, 9, 6).astype(np.int8), "w": w, "wz": np.int8(0), "d": w[:5].reshape(40, 5, 3, 3)[:, :1].copy()}
    inputs = {"a": (TensorProto.UINT8, a), "x": (TensorProto.UINT8, x)}
    model = make(nodes, inputs, {"p": (TensorProto.INT32, (2, 5, 6)), "c": (TensorProto.INT32, (1, 6, 7, 7)), "g": (TensorProto.INT32, (1, 40, 5, 5))}, constants, opset=21)
    model.ir_version = 10
    fed = {"a": a, "x": x}
    actual, expected = run(ogc, tmp_path, model, inputs), harness.reference(model, fed)
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)


@pytest.mark.parametrize("per_channel", [False, True])
def test_quantized_products(ogc, tmp_path, per_channel):
    rng = np.random.default_rng(4)
    n = 6 if per_channel else ()
    scales = (np.abs(rng.standard_normal(n)) * 0.01 + 0.002).astype(F32)
    zeros = np.zeros(n, np.int8)
    x, w = rng.integers(0, 256, (1, 20, 9, 9)).astype(np.uint8), rng.integers(-128, 128, (6, 20, 3, 3)).astype(np.int8)
    a, b = rng.integers(0, 256, (5, 300)).astype(np.uint8), rng.integers(-128, 128, (300, 6)).astype(np.int8)
    nodes = [helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "bias"], ["c"], strides=[2, 2]),
             helper.make_node("QLinearMatMul", ["a", "xs", "xz", "b", "ws", "wz", "ys", "yz"], ["p"])]
    constants = {"xs": F32(0.02), "xz": np.uint8(120), "w": w, "ws": scales, "wz": zeros, "ys": F32(0.1), "yz": np.uint8(100), "b": b,
                 "bias": rng.integers(-9999, 9999, 6).astype(np.int32)}
    inputs = {"x": (TensorProto.UINT8, x), "a": (TensorProto.UINT8, a)}
    model = make(nodes, inputs, {"c": (TensorProto.UINT8, (1, 6, 4, 4)), "p": (TensorProto.UINT8, (5, 6))}, constants, opset=21)
    model.ir_version = 10
    actual, expected = run(ogc, tmp_path, model, inputs), harness.reference(model, {"x": x, "a": a})
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)


def test_dynamic_quantization(ogc, tmp_path):
    for number, x in enumerate([np.array([[0, 2, -3, -2.5, 1.34, 0.5]], F32), np.abs(np.array([[1, 2.1, 1.3]], F32)), np.zeros((1, 4), F32)]):
        inputs = {"x": (TensorProto.FLOAT, x)}
        outputs = {"q": (TensorProto.UINT8, x.shape), "scale": (TensorProto.FLOAT, ()), "zero": (TensorProto.UINT8, ())}
        model = make([helper.make_node("DynamicQuantizeLinear", ["x"], list(outputs))], inputs, outputs, opset=21)
        model.ir_version = 10
        folder = tmp_path / str(number)
        folder.mkdir()
        actual, expected = run(ogc, folder, model, inputs), harness.reference(model, {"x": x})
        for name, array in expected.items():
            np.testing.assert_array_equal(actual[name], array, err_msg=name)


def test_refused_by_name(ogc, tmp_path):
    """An operator that would compute with bytes says so."""
    x = np.resize(patterns("int4"), (4, 4))
    inputs = {"x": (TensorProto.INT4, x)}
    model = make([helper.make_node("Relu", ["x"], ["y"], name="r")], inputs, {"y": (TensorProto.INT4, x.shape)})
    with pytest.raises(harness.OgcError, match="Relu node 'r'"):
        run(ogc, tmp_path, model, inputs)
