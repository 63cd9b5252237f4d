"""Small cases from public bug reports of other projects, on what operators compute. The values are those of the ONNX definition; where it
leaves one open, the value is our policy (docs/numerics.md). Each case runs with its operands given at run time and, but for those that
fix the shape, as constants that the compiler folds: both must give the same bits."""
import numpy as np
import pytest
from onnx import TensorProto, helper

import harness

F32, F16, I64, BOOL = np.float32, np.float16, np.int64, np.bool_
NAN, INF = np.nan, np.inf


def f32(*values):
    return np.array(values, F32)


def i64(*values):
    return np.array(values, I64)


def build(op, inputs, attributes, outputs, opset, fixed):
    """One node; inputs in `fixed` are initializers, None is an absent one. `outputs` are the element types, None for an unnamed one."""
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    results = ["" if kind is None else f"y{i}" for i, kind in enumerate(outputs)]
    node = helper.make_node(op, names, results, name="the_node", **attributes)
    given = {name: value for name, value in zip(names, inputs) if name}
    fed = {name: value for i, (name, value) in enumerate(zip(names, inputs)) if name and i not in fixed}
    infos = {name: (helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in fed.items()}
    kinds = {name: (kind, None) for name, kind in zip(results, outputs) if name}
    return harness.make_model([node], infos, kinds, {name: value for name, value in given.items() if name not in fed}, opset), fed


def compute(ogc, tmp_path, op, inputs, attributes, outputs, opset, fixed):
    model, fed = build(op, inputs, attributes, outputs, opset, fixed)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return list(ogc.run(ogc.compile(path, tmp_path / "m.ogc"), fed).values())


def kind_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def check(ogc, tmp_path, op, inputs, expected, attributes=None, opset=18, fixed=(), tolerance=0.0, fold=True):
    """`fixed`: the inputs that are initializers in every form. Expected arrays give the types; None is an output without a name."""
    kinds = [None if value is None else kind_of(value) for value in expected]
    wanted = [value for value in expected if value is not None]
    runs = [compute(ogc, tmp_path, op, inputs, attributes or {}, kinds, opset, set(fixed))]
    if fold:
        runs.append(compute(ogc, tmp_path, op, inputs, attributes or {}, kinds, opset, set(range(len(inputs)))))
    for run in runs:
        for actual, value in zip(run, wanted, strict=True):
            assert actual.shape == value.shape and actual.dtype == value.dtype, (actual, value)
            np.testing.assert_allclose(actual.astype(np.float64), value.astype(np.float64), rtol=tolerance, atol=tolerance)
    assert len(runs) == 1 or all(a.tobytes() == b.tobytes() for a, b in zip(*runs)), "folding and running differ"


# ------------------------------------------------------------------------------------------------------ windows and resizing

@pytest.mark.parametrize("mode, value", [("pytorch_half_pixel", 1.0), ("half_pixel", 2.5), ("align_corners", 1.0)])
def test_resize_to_one_element(ogc, tmp_path, mode, value):
    """sonos/tract#2155"""
    check(ogc, tmp_path, "Resize", [f32(1, 2, 3, 4).reshape(1, 1, 1, 4), None, None, i64(1, 1, 1, 1)], [np.full((1, 1, 1, 1), value, F32)],
          {"mode": "linear", "coordinate_transformation_mode": mode}, 13, fixed=[3])


@pytest.mark.parametrize("op, attributes, value", [("AveragePool", {"count_include_pad": 0}, 1.5), ("AveragePool", {"count_include_pad": 1}, 1.0),
                                                   ("MaxPool", {}, 2.0)])
def test_ceil_mode_drops_windows_in_the_padding(ogc, tmp_path, op, attributes, value):
    """onnx/onnx#4958, microsoft/onnxruntime#16351"""
    check(ogc, tmp_path, op, [f32(1, 2).reshape(1, 1, 2)], [np.full((1, 1, 1), value, F32)],
          {"kernel_shape": [3], "strides": [3], "pads": [1, 1], "ceil_mode": 1, **attributes}, 22)


def test_dilated_max_pool_with_indices(ogc, tmp_path):
    """microsoft/onnxruntime#29637: indices count in the unpadded tensor."""
    attributes = {"kernel_shape": [2], "strides": [1], "dilations": [2], "pads": [1, 1]}
    x = f32(1, 9, 2, 8, 3, 7, 4, 6, 5)
    check(ogc, tmp_path, "MaxPool", [x.reshape(1, 1, 9)], [f32(9, 2, 9, 3, 8, 4, 7, 5, 6).reshape(1, 1, 9), i64(1, 2, 1, 4, 3, 6, 5, 8, 7).reshape(1, 1, 9)],
          attributes, 12)


def test_max_pool_indices_over_batch_and_channels(ogc, tmp_path):
    x = np.tile(f32(1, 9, 2, 8, 3, 7, 4, 6, 5), 4).reshape(2, 2, 1, 9)
    values = np.tile(f32(9, 2, 9, 3, 8, 4, 7, 5, 6), 4).reshape(2, 2, 1, 9)
    indices = (np.tile(i64(1, 2, 1, 4, 3, 6, 5, 8, 7), 4).reshape(4, 9) + 9 * np.arange(4)[:, None]).reshape(2, 2, 1, 9)
    check(ogc, tmp_path, "MaxPool", [x], [values, indices], {"kernel_shape": [1, 2], "dilations": [1, 2], "pads": [0, 1, 0, 1]}, 12)


@pytest.mark.parametrize("attributes, values", [
    ({}, [1, 10, 102, 20, 203, 30, 300]), ({"output_padding": [1]}, [1, 10, 102, 20, 203, 30, 300, 0]),
    ({"auto_pad": "SAME_UPPER"}, [1, 10, 102, 20, 203, 30]), ({"auto_pad": "SAME_LOWER"}, [10, 102, 20, 203, 30, 300]),
    ({"auto_pad": "SAME_UPPER", "output_padding": [1]}, [10, 102, 20, 203, 30, 300])], ids=str)
def test_transposed_convolution_padding(ogc, tmp_path, attributes, values):
    """onnx/onnx#2788, microsoft/onnxruntime#4086"""
    check(ogc, tmp_path, "ConvTranspose", [f32(1, 2, 3).reshape(1, 1, 3), f32(1, 10, 100).reshape(1, 1, 3)], [f32(*values).reshape(1, 1, -1)],
          {"strides": [2], **attributes})


@pytest.mark.parametrize("mode, inputs, expected", [
    ("reflect", [f32(1, 1.2, 2.3, 3.4, 4.5, 5.7).reshape(3, 2), i64(0, 2, 0, 0)],
     f32(1, 1.2, 1, 1.2, 2.3, 3.4, 2.3, 3.4, 4.5, 5.7, 4.5, 5.7).reshape(3, 4)),
    ("reflect", [f32(1, 2, 3), i64(5, 0)], f32(2, 1, 2, 3, 2, 1, 2, 3)),
    ("constant", [f32(0, 1, 2, 3, 4, 5).reshape(2, 3), i64(1, -1), np.array(9, F32), i64(-1)], f32(9, 0, 1, 9, 3, 4).reshape(2, 3)),
], ids=["reflect", "far", "crop"])
def test_padding(ogc, tmp_path, mode, inputs, expected):
    """microsoft/onnxruntime#20801, #16401, #8265, #11828"""
    check(ogc, tmp_path, "Pad", inputs, [expected], {"mode": mode}, fixed=range(1, len(inputs)))


def test_reflection_of_a_cropped_tensor(ogc, tmp_path):
    """Cropping and reflecting at once: the definition does not say which comes first. We refuse, or reflect within what is left."""
    try:
        (y,) = compute(ogc, tmp_path, "Pad", [f32(0, 1, 2, 3, 4), i64(-4, 4)], {"mode": "reflect"}, [TensorProto.FLOAT], 18, {1})
    except harness.OgcError as error:
        assert error.code == 1 and "Pad" in error.message and "'the_node" in error.message
    else:
        assert y.tolist() in ([4, 4, 4, 4, 4], [4, 3, 2, 1, 0])


# -------------------------------------------------------------------------------------------------------------- reductions

@pytest.mark.parametrize("op, expected", [("ReduceSumSquare", [1, 4, 9]), ("ReduceL1", [1, 2, 3]), ("ReduceSum", [1, -2, 3])])
def test_reduction_along_no_axes(ogc, tmp_path, op, expected):
    """microsoft/onnxruntime#26288, #19147"""
    check(ogc, tmp_path, op, [f32(1, -2, 3)], [f32(*expected)], {"noop_with_empty_axes": 1})


def test_reduction_along_all_axes(ogc, tmp_path):
    check(ogc, tmp_path, "ReduceSum", [f32(1, -2, 3), i64()], [f32(2)], {"noop_with_empty_axes": 0}, fixed=[1])


@pytest.mark.parametrize("op, value", [("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -INF)])
def test_reduction_of_nothing(ogc, tmp_path, op, value):
    """microsoft/onnxruntime#18588"""
    check(ogc, tmp_path, op, [np.zeros((2, 0), F32), i64(1)], [f32(value, value)], {"keepdims": 0}, fixed=[1])


def test_reduction_to_nothing(ogc, tmp_path):
    check(ogc, tmp_path, "ReduceSum", [np.zeros((0, 0), F32), i64(0)], [np.zeros((0,), F32)], {"keepdims": 0}, fixed=[1])


# ------------------------------------------------------------------------------------------------------- types and integers

@pytest.mark.parametrize("x, expected", [
    (f32(-0.0, 0.5, NAN), np.array([False, True, True])), (np.array([1e300, -1e300]), f32(INF, -INF)),
    # Out of range: undefined by ONNX; ours saturates, NaN gives 0.
    (f32(300, NAN, INF, -INF, 50, -50), np.array([127, 0, 127, -128, 50, -50], np.int8)), (f32(-1, 4e9), np.array([0, 4000000000], np.uint32)),
    (np.array([200, -200, 128], np.int16), np.array([-56, 56, -128], np.int8)), (i64(2**40 + 7), np.array([7], np.int32)),
], ids=["bool", "f64", "i8", "ui32", "wrap", "wrap64"])
def test_casts(ogc, tmp_path, x, expected):
    """apache/tvm#19542, microsoft/onnxruntime#25207: integers wrap, floats saturate, folded or not."""
    check(ogc, tmp_path, "Cast", [x], [expected], {"to": kind_of(expected)}, 19)


@pytest.mark.parametrize("saturate, expected", [(1, [448, 448, 1]), (0, [NAN, NAN, 1])])
def test_casts_to_float8(ogc, tmp_path, saturate, expected):
    nodes = [helper.make_node("Cast", ["x"], ["t"], to=TensorProto.FLOAT8E4M3FN, saturate=saturate), helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)]
    model = harness.make_model(nodes, {"x": (TensorProto.FLOAT, (3,))}, {"y": (TensorProto.FLOAT, (3,))}, opset=19)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    actual = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {"x": f32(500, INF, 1)})["y"]
    np.testing.assert_array_equal(actual, f32(*expected))


def all_forms(ogc, tmp_path, op, a, b, expected, attributes=None, opset=18):
    """Both operands at run time, one constant, both constant."""
    for fixed in ((), (0,), (1,), (0, 1)):
        (actual,) = compute(ogc, tmp_path, op, [a, b], attributes or {}, [kind_of(expected)], opset, set(fixed))
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected, err_msg=f"{op} with constants {fixed}")


def test_mod_of_integers(ogc, tmp_path):
    """apache/tvm#20170: the sign of the divisor."""
    all_forms(ogc, tmp_path, "Mod", i64(-5, 5, -5, 5), i64(3, -3, -3, 3), i64(1, -1, -2, 2), {"fmod": 0})


def test_mod_of_floats(ogc, tmp_path):
    all_forms(ogc, tmp_path, "Mod", f32(-5.5, 5.5), f32(3, -3), f32(-2.5, 2.5), {"fmod": 1})


def test_integer_division_truncates(ogc, tmp_path):
    """openvinotoolkit/openvino#5173, microsoft/onnxruntime#26997"""
    all_forms(ogc, tmp_path, "Div", i64(8, -8, 7, -7), i64(-3, 3, -2, 2), i64(-2, -2, -3, -3))


@pytest.mark.parametrize("op, inputs, expected", [
    ("Pow", [i64(3), i64(39)], i64(4052555153018976267)), ("Pow", [i64(2), f32(0.5)], i64(1)),
    ("Clip", [i64(2**32 + 5, -2**40, 7), np.array(-100), np.array(100)], i64(100, -100, 7)), ("Add", [i64(2**40), i64(1)], i64(2**40 + 1)),
    ("ArgMax", [i64(2**40, 2**40 + 1)], i64(1)),
], ids=lambda value: value if isinstance(value, str) else "")
def test_integers_keep_their_bits(ogc, tmp_path, op, inputs, expected):
    """tinygrad/tinygrad#13605, microsoft/onnxscript#2213"""
    check(ogc, tmp_path, op, inputs, [expected], {})


# ---------------------------------------------------------------------------------------------------------- normalization

def test_batch_normalization_uses_its_statistics(ogc, tmp_path):
    """apache/tvm#18703"""
    x = f32(1, 3, 5, 7).reshape(2, 1, 2)
    check(ogc, tmp_path, "BatchNormalization", [x, f32(1), f32(0), f32(10), f32(4)], [f32(-4.5, -3.5, -2.5, -1.5).reshape(2, 1, 2)], {"epsilon": 0.0}, 15,
          tolerance=1e-6)


def test_batch_normalization_in_training(ogc, tmp_path):
    """Statistics of the batch and running ones; a compiler of inference may also refuse the mode by name."""
    x = f32(1, 3, 5, 7).reshape(2, 1, 2)
    kinds = [TensorProto.FLOAT] * 3
    try:
        y, mean, variance = compute(ogc, tmp_path, "BatchNormalization", [x, f32(1), f32(0), f32(10), f32(4)],
                                    {"training_mode": 1, "momentum": 0.9, "epsilon": 1e-5}, kinds, 15, set())
    except harness.OgcError as error:
        assert error.code == 1 and "training_mode" in error.message and "BatchNormalization" in error.message
        return
    np.testing.assert_allclose(y, (x - 4) / np.sqrt(5 + 1e-5), rtol=1e-5)
    np.testing.assert_allclose([mean[0], variance[0]], [9.4, 4.1], rtol=1e-6)


def test_layer_normalization_of_halves(ogc, tmp_path):
    """NVIDIA/TensorRT#2564: squares are summed in f32."""
    x = np.array([[300, -300, 300, -300]], F16)
    check(ogc, tmp_path, "LayerNormalization", [x, np.array([1], F16)], [np.array([[1, -1, 1, -1]], F16), f32(0).reshape(1, 1), f32(1 / 300).reshape(1, 1)],
          {"axis": -1}, 17, tolerance=1e-3)
    big = np.where(np.arange(4096) % 2, -8000, 8000).astype(F16)[None]
    check(ogc, tmp_path, "LayerNormalization", [big, np.ones(4096, F16)], [np.sign(big)], {"axis": -1}, 17, tolerance=1e-3)


def test_layer_normalization_from_an_axis(ogc, tmp_path):
    x = f32(1, 3, 5, 7).reshape(1, 2, 2)
    y = f32(-1.34164, -.447213, .447213, 1.34164).reshape(1, 2, 2)
    check(ogc, tmp_path, "LayerNormalization", [x, np.ones((2, 2), F32)], [y, np.full((1, 1, 1), 4, F32)], {"axis": 1}, 17, tolerance=1e-5)


def test_softmax_of_large_halves(ogc, tmp_path):
    check(ogc, tmp_path, "Softmax", [np.array([60000, 60000, 0], F16)], [np.array([.5, .5, 0], F16)], {}, 13)


# ----------------------------------------------------------------------------------------------------- einsum, order, indices

@pytest.mark.parametrize("equation, inputs, expected", [
    ("iij->ij", [np.arange(8, dtype=F32).reshape(2, 2, 2)], f32(0, 1, 6, 7).reshape(2, 2)),
    ("iij->i", [np.arange(8, dtype=F32).reshape(2, 2, 2)], f32(1, 13)),
    ("ii->", [f32(1, 2, 3, 4).reshape(2, 2)], np.array(5, F32)), ("ii", [f32(1, 2, 3, 4).reshape(2, 2)], np.array(5, F32)),
    ("...ij,...jk", [np.arange(4, dtype=F32).reshape(2, 1, 1, 2), np.arange(6, dtype=F32).reshape(1, 3, 2, 1)],
     np.einsum("...ij,...jk", np.arange(4).reshape(2, 1, 1, 2), np.arange(6).reshape(1, 3, 2, 1)).astype(F32)),
], ids=lambda value: value if isinstance(value, str) else "")
def test_einsum(ogc, tmp_path, equation, inputs, expected):
    """tinygrad/tinygrad#18229, llvm/torch-mlir#3618, robertknight/rten#303"""
    check(ogc, tmp_path, "Einsum", inputs, [expected], {"equation": equation}, 12)


def test_einsum_of_ranks_that_do_not_fit(ogc, tmp_path):
    """onnx/onnx#8207"""
    with pytest.raises(harness.OgcError) as caught:
        compute(ogc, tmp_path, "Einsum", [np.ones((2, 2), F32), np.ones((2,), F32)], {"equation": "...ij,...jk->...ik"}, [TensorProto.FLOAT], 12, set())
    assert caught.value.code == 1 and "Einsum" in caught.value.message


@pytest.mark.parametrize("dtype", [F32, np.uint8, I64], ids=str)
@pytest.mark.parametrize("k", range(1, 6))
def test_top_k_of_equal_values(ogc, tmp_path, dtype, k):
    """onnx/onnx#6593: the lower index comes first."""
    x = np.array([1, 2, 5, 4, 5], dtype)
    check(ogc, tmp_path, "TopK", [x, i64(k)], [x[[2, 4, 3, 1, 0]][:k], i64(2, 4, 3, 1, 0)[:k]], {}, 11 if dtype != np.uint8 else 24, fixed=[1], fold=k == 2)


def test_top_k_of_nan(ogc, tmp_path):
    """Indices are real ones."""
    values, indices = compute(ogc, tmp_path, "TopK", [f32(1, NAN, 3), i64(2)], {}, [TensorProto.FLOAT, TensorProto.INT64], 11, {1})
    assert len(set(indices)) == 2 and all(0 <= index < 3 for index in indices)
    np.testing.assert_array_equal(values, f32(1, NAN, 3)[indices])


@pytest.mark.parametrize("op, inputs, attributes, expected, fixed", [
    ("ArgMax", [f32(3, 1, 3)], {"select_last_index": 1}, i64(2), ()),
    ("CumSum", [f32(1, 2, 3, 4), np.array(0)], {"exclusive": 1, "reverse": 1}, f32(9, 7, 4, 0), (1,)),
    ("ScatterND", [np.zeros(3, F32), i64(1, 1, 1).reshape(3, 1), f32(1, 2, 4)], {"reduction": "add"}, f32(0, 7, 0), ()),
    ("Gather", [f32(10, 20, 30), i64(-1, 0, -3)], {}, f32(30, 10, 10), ()),
], ids=lambda value: value if isinstance(value, str) else "")
def test_indices(ogc, tmp_path, op, inputs, attributes, expected, fixed):
    """apache/tvm#18969, #18135, microsoft/onnxruntime#19540, NVIDIA/TensorRT#4774"""
    check(ogc, tmp_path, op, inputs, [expected], attributes, 16, fixed=fixed)


def test_gather_outside_reads_inside(ogc, tmp_path):
    """Indices beyond the extent are clamped: never a read out of bounds."""
    check(ogc, tmp_path, "Gather", [f32(10, 20, 30), i64(3, -4, 2**40, -2**40)], [f32(30, 10, 30, 10)], {}, 16)


def test_recurrent_with_lengths(ogc, tmp_path):
    """onnx/onnx-tensorflow#342: the reverse direction begins at the end of each sequence."""
    x = f32(1, 10, 2, 20, 3, 30).reshape(3, 2, 1)
    ones = np.ones((2, 1, 1), F32)
    y = np.zeros((3, 2, 2, 1), F32)
    y[:, 0, 0, 0], y[:, 0, 1, 0], y[:, 1, 0, 0], y[:, 1, 1, 0] = [1, 3, 6], [10, 30, 0], [6, 5, 3], [30, 20, 0]
    last = f32(6, 30, 6, 30).reshape(2, 2, 1)
    check(ogc, tmp_path, "RNN", [x, ones, ones, np.zeros((2, 2), F32), np.array([3, 2], np.int32)], [y, last],
          {"hidden_size": 1, "direction": "bidirectional", "activations": ["Relu", "Relu"]}, 14, fixed=[1, 2, 3, 4], fold=False)


# -------------------------------------------------------------------------------------------------------------- rewrites

def rewrite(ogc, tmp_path, nodes, x, expected, constants=None):
    model = harness.make_model(nodes, {"x": (TensorProto.FLOAT, x.shape)}, {"y": (TensorProto.FLOAT, None)}, constants)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    np.testing.assert_array_equal(ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {"x": x})["y"], expected)


def test_difference_of_a_sum(ogc, tmp_path):
    """iree-org/iree#20803: x - (x + 1) is -1; (200 - x) - 200 is -x (PINTO0309/onnx2tf#686)."""
    N = helper.make_node
    rewrite(ogc, tmp_path, [N("Add", ["x", "c"], ["t"]), N("Sub", ["x", "t"], ["y"])], f32(1, 5, -3), f32(-1, -1, -1), {"c": f32(1)})
    rewrite(ogc, tmp_path, [N("Sub", ["c", "x"], ["t"]), N("Sub", ["t", "c"], ["y"])], f32(1, 5, -3), f32(-1, -5, 3), {"c": f32(200)})


def test_order_of_joined_parts(ogc, tmp_path):
    """iree-org/iree#20819"""
    N = helper.make_node
    nodes = [N("Slice", ["x", "one", "end", "one"], ["a"]), N("Sub", ["a", "a"], ["b"]), N("Add", ["a", "b"], ["c"]), N("Concat", ["c", "b"], ["y"], axis=1)]
    rewrite(ogc, tmp_path, nodes, f32(0, 1, 2).reshape(1, 3), f32(1, 2, 0, 0).reshape(1, 4), {"one": i64(1), "end": i64(9)})


@pytest.mark.parametrize("length, parts, sizes", [(10, 3, [4, 4, 2]), (7, 3, [3, 3, 1])])
def test_uneven_split(ogc, tmp_path, length, parts, sizes):
    """apache/tvm#18751, microsoft/onnxruntime#19381"""
    x = np.arange(length, dtype=F32)
    check(ogc, tmp_path, "Split", [x], np.split(x, np.cumsum(sizes)[:-1]), {"num_outputs": parts})
