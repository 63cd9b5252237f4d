"""Operators that sample, transform and draw: GridSample, RoiAlign, DeformConv, Resize, Fourier transforms, random numbers; f64 functions."""
import numpy as np
import onnx
import onnx.reference
import pytest

import harness
from test_operators import F16, F32, I64, f, i, ints, positive

F64 = np.float64
CASES = []


def case(op, *inputs, name="", constants=(), outputs=1, opset=21, tolerance=1e-5, oracle="onnxruntime", domain="", **attributes):
    parameter = pytest.param(op, inputs, constants, outputs, opset, tolerance, oracle, attributes, id=f"{op} {name}".strip())
    CASES.append(parameter)


def grid(*shape):
    """Sampling positions, some of them outside."""
    return (1.6 * np.random.default_rng(3).uniform(-1, 1, shape)).astype(F32)


for mode in ("nearest", "linear", "cubic"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (0, 1):
            case("GridSample", f(2, 3, 5, 6), grid(2, 4, 3, 2), name=f"{mode} {padding} {corners}", opset=20, mode=mode, padding_mode=padding,
                 align_corners=corners)
            if mode != "cubic":
                case("GridSample", f(1, 2, 3, 4, 5), grid(1, 2, 3, 4, 3), name=f"3-D {mode} {padding} {corners}", opset=20, mode=mode,
                     padding_mode=padding, align_corners=corners)
case("GridSample", f(1, 2, 4, 4), grid(1, 3, 3, 2), name="bilinear", opset=16, mode="bilinear")
case("GridSample", f(1, 2, 1, 1), grid(1, 3, 3, 2), name="one pixel", opset=16, mode="bilinear", padding_mode="reflection", align_corners=1)
for corners in (0, 1):
    case("AffineGrid", f(2, 2, 3), ints(2, 3, 4, 5), name=f"2-D {corners}", opset=20, constants=[1], align_corners=corners)
    case("AffineGrid", f(2, 3, 4), ints(2, 3, 4, 5, 6), name=f"3-D {corners}", opset=20, constants=[1], align_corners=corners)

ROIS = np.array([[0, 0, 4, 4], [1, 2, 7, 5], [-3, 1, 20, 9], [5, 5, 4, 4]], F32)
for mode in ("avg", "max"):
    case("RoiAlign", f(2, 3, 9, 10), ROIS, ints(0, 1, 1, 0), name=mode, opset=16, mode=mode, output_height=3, output_width=2, sampling_ratio=2,
         spatial_scale=0.5)
case("RoiAlign", f(2, 3, 9, 10), ROIS, ints(0, 1, 1, 0), name="opset 10", opset=10, output_height=3, output_width=2, sampling_ratio=3)

case("DeformConv", f(2, 4, 6, 7), f(6, 2, 3, 2), f(2, 2 * 3 * 2 * 2, 4, 6), f(6), positive(2, 2 * 6, 4, 6), name="groups, mask", opset=19, group=2,
     offset_group=2)
case("DeformConv", f(1, 3, 8, 8), f(4, 3, 3, 3), 2 * f(1, 18, 4, 4), name="strides", opset=19, strides=[2, 2], pads=[1, 1, 1, 1])
case("Col2Im", f(2, 3 * 6, 20), ints(5, 6), ints(2, 3), opset=18, constants=[1, 2])
case("Col2Im", f(1, 2 * 4, 9), ints(5, 5), ints(2, 2), name="strides and pads", opset=18, constants=[1, 2], strides=[2, 2], pads=[0, 1, 1, 0],
     oracle="onnx")

case("Resize", f(1, 2, 6, 7), np.array([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.3], F32), None, ints(1, 2, 4, 5), name="crop", constants=[1, 3], mode="linear",
     coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0)
case("Resize", f(1, 2, 6, 7), np.array([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.0], F32), None, ints(1, 2, 6, 7), name="crop of the same size", constants=[1, 3],
     mode="nearest", coordinate_transformation_mode="tf_crop_and_resize")
case("Resize", i(1, 2, 5, 6, low=0, high=255, dtype=np.uint8), None, np.array([1, 1, 2, 2], F32), name="uint8", constants=[2], mode="linear",
     coordinate_transformation_mode="asymmetric")

# Transforms: short, split, prime, and a prime that is long enough for a convolution.
for length in (1, 2, 7, 64, 257, 360, 1031, 4096):
    tolerance = 1e-5 if length < 1000 else 5e-5
    case("DFT", f(2, length, 1), name=f"real {length}", opset=17, tolerance=tolerance, axis=1)
    case("DFT", f(2, length, 2), name=f"inverse {length}", opset=17, tolerance=tolerance, axis=1, inverse=1)
    if length > 1:
        case("DFT", f(2, length, 1), name=f"one-sided {length}", opset=17, tolerance=tolerance, axis=1, onesided=1)
        case("DFT", f(2, length // 2 + 1, 2), ints(length)[0], I64(1), name=f"inverse of one-sided {length}", opset=20, constants=[1, 2],
             tolerance=tolerance, onesided=1, inverse=1, oracle="irfft")
case("DFT", f(2, 6, 5, 2), I64(8), I64(1), name="padded", opset=20, constants=[1, 2], oracle="onnx")
case("DFT", f(2, 6, 5, 2).astype(F64), I64(4), I64(-2), name="cut, f64", opset=20, constants=[1, 2], tolerance=1e-12, oracle="onnx")
case("STFT", f(2, 128, 1), I64(8), positive(16), None, name="window", opset=17, constants=[1], onesided=1)
case("STFT", f(2, 100, 1), I64(10), None, I64(20), name="no window", opset=17, constants=[1, 3], onesided=0)
for window in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    for periodic in (0, 1):
        case(window, I64(20), name=f"{periodic}", opset=17, constants=[0], periodic=periodic)
case("MelWeightMatrix", I64(12), I64(64), I64(8000), F32(10), F32(3900), opset=17, constants=[0, 1, 2, 3, 4])

case("BatchNormalization", f(4, 3, 5), f(3), f(1, 3)[0], f(2, 3)[1], positive(3), name="training", outputs=3, opset=15, training_mode=1, oracle="onnx")
case("CenterCropPad", f(6, 7, 3), ints(4, 10), opset=18, constants=[1], axes=[0, 1])
for rows, length in ((5, 2), (7, 10), (3, 31)):
    case("Softmax", f(rows, length), name=f"short row {length}")
    case("LayerNormalization", f(rows, length), f(length), f(1, length)[0], name=f"short row {length}")
case("Softmax", f(3, 5, 4), name="short rows of another axis", axis=1)

WIDE = np.array([-710.0, -20.5, -3.0, -1.0, -0.6, -1e-9, 0.0, 1e-9, 0.3, 0.999, 1.0, 2.5, 33.0, 709.0, np.inf, -np.inf, np.nan], F64)
for op in ("Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf", "Sigmoid", "Softplus",
           "Sqrt", "Gelu"):
    case(op, WIDE, name="f64", opset=22, tolerance=1e-14, oracle="onnx")
case("Pow", WIDE[:13].copy(), np.array([2.5], F64), name="f64", tolerance=1e-14, oracle="onnx")
case("Mod", WIDE[:13].copy(), np.array([0.7], F64), name="f64", tolerance=1e-13, fmod=1, oracle="onnx")
case("Softmax", f(4, 40).astype(F64), name="f64", tolerance=1e-14)


def irfft(inputs, attributes):
    x = inputs["x0"]
    return {"y0": np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=int(attributes["length"]), axis=1)[..., None].astype(x.dtype)}


@pytest.mark.parametrize("op, inputs, constants, outputs, opset, tolerance, oracle, attributes", CASES)
def test_operator(ogc, tmp_path, op, inputs, constants, outputs, opset, tolerance, oracle, attributes):
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    model, fed = harness.single_node(op, inputs, attributes, outputs, constants, opset)
    onnx.save(model, tmp_path / "m.onnx")
    actual = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)
    if oracle == "irfft":
        expected = irfft(fed, {"length": inputs[1]})
    elif oracle == "onnx":
        with np.errstate(all="ignore"):
            names = [output.name for output in model.graph.output]
            expected = dict(zip(names, map(np.asarray, onnx.reference.ReferenceEvaluator(model).run(None, fed))))
    else:
        expected = harness.reference(model, fed)
    harness.check_outputs(actual, expected, tolerance)


def draw(ogc, tmp_path, node, inputs=None, constants=None, opset=21, precision=None):
    """The outputs of one node that draws random numbers."""
    infos = {name: (onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in (inputs or {}).items()}
    model = harness.make_model([node], infos, {}, constants or {}, opset)
    for name in node.output:
        model.graph.output.add().name = name
    onnx.save(onnx.shape_inference.infer_shapes(model), tmp_path / "m.onnx")
    return ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), inputs or {})


@pytest.mark.parametrize("dtype", [onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16])
def test_uniform(ogc, tmp_path, dtype):
    node = onnx.helper.make_node("RandomUniform", [], ["y"], shape=[200, 500], low=-1.0, high=3.0, dtype=dtype)
    y = draw(ogc, tmp_path, node)["y"].astype(F64)
    assert y.min() >= -1 and y.max() <= 3
    assert abs(y.mean() - 1) < 0.02 and abs(y.var() - 16 / 12) < 0.02
    histogram, _ = np.histogram(y, bins=20, range=(-1, 3))
    assert ((histogram - 5000) ** 2 / 5000).sum() < 60  # chi-squared, 19 degrees of freedom
    assert abs(np.corrcoef(y.ravel()[:-1], y.ravel()[1:])[0, 1]) < 0.02


def test_normal(ogc, tmp_path):
    node = onnx.helper.make_node("RandomNormalLike", ["x"], ["y"], mean=2.0, scale=3.0, seed=7.0)
    x = np.zeros((300, 400), F32)
    y = draw(ogc, tmp_path, node, {"x": x})["y"]
    z = (y.astype(F64) - 2) / 3
    assert np.isfinite(y).all() and abs(z.mean()) < 0.02 and abs(z.var() - 1) < 0.02
    assert abs((z**3).mean()) < 0.05 and abs((z**4).mean() - 3) < 0.1
    assert abs((z < -1.96).mean() - 0.025) < 0.003
    np.testing.assert_array_equal(y, draw(ogc, tmp_path, node, {"x": x})["y"])  # a seed says it all
    other = onnx.helper.make_node("RandomNormalLike", ["x"], ["y"], mean=2.0, scale=3.0, seed=8.0)
    assert abs(np.corrcoef(y.ravel(), draw(ogc, tmp_path, other, {"x": x})["y"].ravel())[0, 1]) < 0.02


def test_streams(ogc, tmp_path):
    """Two nodes without seeds draw different numbers."""
    nodes = [onnx.helper.make_node("RandomUniform", [], [name], shape=[1000]) for name in ("a", "b")]
    model = harness.make_model(nodes, {}, {"a": (1, [1000]), "b": (1, [1000])})
    onnx.save(model, tmp_path / "m.onnx")
    y = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {})
    assert abs(np.corrcoef(y["a"], y["b"])[0, 1]) < 0.1


def test_multinomial(ogc, tmp_path):
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-30]], F32))
    node = onnx.helper.make_node("Multinomial", ["x"], ["y"], sample_size=20000)
    y = draw(ogc, tmp_path, node, {"x": logits})["y"]
    assert y.dtype == np.int32
    for row, expected in zip(y, ([0.1, 0.2, 0.7], [0.5, 0.5, 0])):
        assert np.abs(np.bincount(row, minlength=3) / 20000 - expected).max() < 0.015


def test_bernoulli(ogc, tmp_path):
    p = np.repeat(np.array([0.0, 0.25, 1.0], F32), 20000)
    y = draw(ogc, tmp_path, onnx.helper.make_node("Bernoulli", ["x"], ["y"]), {"x": p})["y"].reshape(3, -1)
    assert np.isin(y, (0, 1)).all() and y[0].max() == 0 and y[2].min() == 1 and abs(y[1].mean() - 0.25) < 0.015


@pytest.mark.parametrize("training", [np.array(True), "fed on", "fed off"])
def test_dropout(ogc, tmp_path, training):
    x, ratio = positive(100, 200), np.array(0.3, F32)
    node = onnx.helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"], seed=5)
    inputs, constants = {"x": x}, {"ratio": ratio}
    if isinstance(training, str):
        inputs["training"] = np.array(training == "fed on")
    else:
        constants["training"] = training
    result = draw(ogc, tmp_path, node, inputs, constants)
    y, mask = result["y"], result["mask"]
    if training == "fed off":
        assert mask.all() and np.array_equal(y, x)
        return
    assert mask.dtype == np.bool_ and abs(mask.mean() - 0.7) < 0.015
    np.testing.assert_allclose(y, np.where(mask, x / F32(0.7), 0), rtol=1e-6)
