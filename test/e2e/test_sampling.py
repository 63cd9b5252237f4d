"""Operators that sample, transform and draw: GridSample, RoiAlign, DeformConv, Resize, Fourier transforms, random numbers; f64 functions."""
import math

import numpy as np
import onnx
import onnx.reference
import pytest

import harness
from test_operators import F16, F32, I64, f, i, ints, positive

F64 = np.float64
GROUPS = {}  # many nodes are compiled as one model


def case(op, *inputs, name="", constants=(), outputs=1, opset=21, tolerance=1e-5, oracle="onnxruntime", group=None, **attributes):
    """Adds a case to a group; inputs with an index in `constants` become initializers."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    GROUPS.setdefault(f"{group or op} {opset} {oracle}", []).append((f"{op} {name}", op, inputs, constants, outputs, opset, tolerance, oracle, attributes))


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
    case("RoiAlign", f(2, 3, 9, 10), ROIS, ints(0, 1, 1, 0), name=f"{mode}, as many samples as pixels", opset=16, mode=mode, output_height=2, output_width=3,
         sampling_ratio=0, coordinate_transformation_mode="output_half_pixel")
case("RoiAlign", f(2, 3, 9, 10), ROIS, ints(0, 1, 1, 0), name="opset 10", opset=10, output_height=3, output_width=2, sampling_ratio=3)

REGIONS = np.array([[0, 0, 0, 7, 9], [1, 2, 3, 8, 5], [0, -4, 2, 30, 3], [1, 6, 6, 5, 5]], F32)
case("MaxRoiPool", f(2, 3, 9, 10), REGIONS, opset=16, pooled_shape=[3, 2], spatial_scale=0.5)
case("MaxRoiPool", f(2, 3, 9, 10), REGIONS, name="whole scale", opset=16, pooled_shape=[2, 2])
case("MaxUnpool", f(1, 2, 2, 3), ints(5, 7, 10, 12, 0, 35, 40, 24, 27, 36, 43, 46).reshape(1, 2, 2, 3), opset=11, kernel_shape=[2, 2], strides=[2, 2])
case("MaxUnpool", f(1, 1, 2, 2), ints(1, 3, 4, 6).reshape(1, 1, 2, 2), ints(1, 1, 4, 5), name="output_shape", opset=11, constants=[2], kernel_shape=[2, 2],
     strides=[1, 1], oracle="onnx")

case("DeformConv", f(2, 4, 6, 7), f(6, 2, 3, 2), f(2, 2 * 3 * 2 * 2, 4, 6), f(6), positive(2, 2 * 6, 4, 6), name="groups, mask", opset=19, groups=2,
     offset_group=2, oracle="onnx")
case("DeformConv", f(1, 3, 8, 8), f(4, 3, 3, 3), 2 * f(1, 18, 4, 4), name="strides", opset=19, strides=[2, 2], pads=[1, 1, 1, 1], oracle="onnx")
case("Col2Im", f(2, 3 * 6, 16), ints(5, 6), ints(2, 3), opset=18, constants=[1, 2])
case("Col2Im", f(1, 2 * 4, 9), ints(5, 5), ints(2, 2), name="strides and pads", opset=18, constants=[1, 2], strides=[2, 2], pads=[0, 1, 1, 0],
     oracle="onnx")

case("Resize", f(1, 2, 6, 7), np.array([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.3], F32), None, ints(1, 2, 4, 5), name="crop", constants=[1, 3], mode="linear",
     coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0)
case("Resize", f(1, 2, 6, 7), np.array([0, 0, 0.2, 0.1, 1, 1, 0.87, 0.95], F32), None, ints(1, 2, 6, 7), name="crop of the same size", constants=[1, 3],
     oracle="onnx", mode="linear", coordinate_transformation_mode="tf_crop_and_resize")
case("Resize", i(1, 2, 5, 6, low=0, high=255, dtype=np.uint8), None, np.array([1, 1, 2, 2], F32), name="uint8", constants=[2], mode="linear",
     coordinate_transformation_mode="asymmetric")

# Transforms: short, split, prime, and a prime that is long enough for a convolution.
for length in (1, 2, 7, 64, 257, 360, 1031, 4096):
    tolerance = 2e-6 if length < 1000 else 1e-5
    case("DFT", f(2, length, 1), name=f"real {length}", opset=17, tolerance=tolerance, axis=1, oracle="onnx")
    case("DFT", f(2, length, 2), name=f"inverse {length}", opset=17, tolerance=tolerance, axis=1, inverse=1, oracle="onnx")
    if length > 1:
        case("DFT", f(2, length, 1), name=f"one-sided {length}", opset=17, tolerance=tolerance, axis=1, onesided=1, oracle="onnx")
        case("DFT", f(2, length // 2 + 1, 2), I64(length), I64(1), name=f"inverse of one-sided {length}", opset=20, constants=[1, 2],
             tolerance=tolerance, onesided=1, inverse=1, oracle="irfft")
case("DFT", f(2, 6, 5, 2), I64(8), I64(1), name="padded", opset=20, constants=[1, 2], oracle="onnx")
case("DFT", f(2, 6, 5, 2).astype(F64), I64(4), I64(-2), name="cut, f64", opset=20, constants=[1, 2], tolerance=1e-12, oracle="onnx")
case("STFT", f(2, 128, 1), I64(8), positive(16), None, name="window", opset=17, constants=[1], onesided=1)
case("STFT", f(2, 100, 1), I64(10), None, I64(20), name="no window", opset=17, constants=[1, 3], onesided=0)
for window in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    for periodic in (0, 1):
        case(window, I64(20), name=f"{periodic}", opset=17, constants=[0], periodic=periodic)
case("MelWeightMatrix", I64(12), I64(64), I64(8000), F32(10), F32(3900), opset=17, constants=[0, 1, 2, 3, 4])

for groups, shape, filters in ((3, (2, 12, 7, 6), (9, 4, 3, 2)), (4, (1, 4, 9, 9), (8, 1, 3, 3)), (2, (2, 6, 15), (4, 3, 5)),
                               (2, (1, 4, 5, 6, 5), (6, 2, 3, 2, 2)), (1, (2, 3, 6, 7, 5), (4, 3, 3, 3, 2))):
    case("Conv", f(*shape), f(*filters), f(filters[0]), name=f"{groups} groups of {filters}", strides=[2] + [1] * (len(shape) - 3),
         pads=[1] * (len(shape) - 2) + [0] * (len(shape) - 2), groups=groups)
case("BatchNormalization", f(4, 3, 5), f(3), f(1, 3)[0], f(2, 3)[1], positive(3), name="training", outputs=3, opset=15, training_mode=1, oracle="onnx")
case("CenterCropPad", f(6, 7, 3), ints(4, 10), opset=18, constants=[1], axes=[0, 1])
for rows, length in ((5, 2), (7, 10), (3, 31)):
    case("Softmax", f(rows, length), name=f"short row {length}", group="rows")
    case("LayerNormalization", f(rows, length), f(length), f(1, length)[0], name=f"short row {length}", group="rows")
case("Softmax", f(3, 5, 4), name="short rows of another axis", group="rows", axis=1)

WIDE = np.array([-300.0, -20.5, -3.0, -1.0, -0.6, -1e-9, 0.0, 1e-9, 0.3, 0.999, 1.0, 2.5, 33.0, 300.0, np.inf, -np.inf, np.nan], F64)
for op in ("Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Sigmoid", "Softplus", "Sqrt"):
    case(op, WIDE, name="f64", opset=22, tolerance=1e-14, oracle="onnx", group="f64")
case("Pow", WIDE[:13].copy(), np.array([2.5], F64), name="f64", opset=22, tolerance=1e-14, oracle="onnx", group="f64")
case("Mod", WIDE[:13].copy(), np.array([0.7], F64), name="f64", opset=22, tolerance=1e-13, fmod=1, oracle="onnx", group="f64")
case("Softmax", f(4, 40).astype(F64), name="f64", tolerance=1e-14, group="rows")


def one_model(cases):
    """The nodes of all cases in one model; input i of case c is `c_xi`, output i `c_yi`."""
    nodes, infos, fixed, fed = [], {}, {}, {}
    for number, (_, op, inputs, constants, outputs, _, _, _, attributes) in enumerate(cases):
        names = ["" if x is None else f"c{number}_x{i}" for i, x in enumerate(inputs)]
        for i, (name, x) in enumerate(zip(names, inputs)):
            if x is not None:
                (fixed if i in constants else fed)[name] = x
        attributes = {"group" if key == "groups" else key: value for key, value in attributes.items()}  # `group` is the case's
        nodes.append(onnx.helper.make_node(op, names, [f"c{number}_y{i}" for i in range(outputs)], name=f"the_{op}_{number}", **attributes))
    infos = {name: (onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in fed.items()}
    model = harness.make_model(nodes, infos, {}, fixed, cases[0][5])
    for node in nodes:
        for name in node.output:
            model.graph.output.add().name = name
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True), fed


def irfft(cases):
    """numpy's inverse of one-sided transforms along axis 1."""
    results = {}
    for number, (_, _, inputs, *_) in enumerate(cases):
        x = inputs[0]
        results[f"c{number}_y0"] = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=int(inputs[1]), axis=1)[..., None].astype(x.dtype)
    return results


def onnx_reference(model, fed):
    with np.errstate(all="ignore"):
        names = [output.name for output in model.graph.output]
        return dict(zip(names, map(np.asarray, onnx.reference.ReferenceEvaluator(model).run(None, fed))))


@pytest.mark.parametrize("group", GROUPS)
def test_operators(ogc, tmp_path, group):
    cases = GROUPS[group]
    model, fed = one_model(cases)
    onnx.save(model, tmp_path / "m.onnx")
    actual = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)
    oracle = cases[0][7]
    expected = irfft(cases) if oracle == "irfft" else onnx_reference(model, fed) if oracle == "onnx" else harness.reference(model, fed)
    assert list(actual) == list(expected)
    wrong = []
    for number, (name, _, _, _, outputs, _, tolerance, *_) in enumerate(cases):
        for i in range(outputs):
            error = harness.relative_error(actual[f"c{number}_y{i}"], expected[f"c{number}_y{i}"])
            if not error <= tolerance:
                wrong.append(f"{name}, output {i}: relative error {error:.3g}, allowed {tolerance}")
    assert not wrong, "\n".join(wrong)


def test_erf_of_doubles(ogc, tmp_path):
    x = np.concatenate([np.linspace(-7, 7, 57), [np.inf, -np.inf, 1e-300]])
    model, fed = harness.single_node("Erf", [x])
    onnx.save(model, tmp_path / "m.onnx")
    y = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)["y0"]
    np.testing.assert_allclose(y, [math.erf(value) for value in x], rtol=1e-15)


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


def test_concat_of_parts_in_pieces(ogc, tmp_path):
    """Rows of a concatenation that are cut apart again, so that a part's index is made of digits of another extent."""
    x, z = f(2, 181, 2), f(2, 179, 2)
    nodes = [onnx.helper.make_node("Concat", ["x", "z"], ["c"], axis=1), onnx.helper.make_node("Reshape", ["c", "shape"], ["r"]),
             onnx.helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 1, 3])]
    model = harness.make_model(nodes, {"x": (1, x.shape), "z": (1, z.shape)}, {"y": (1, (2, 20, 18, 2))}, {"shape": ints(2, 18, 20, 2)})
    onnx.save(model, tmp_path / "m.onnx")
    y = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {"x": x, "z": z})["y"]
    np.testing.assert_array_equal(y, np.concatenate([x, z], 1).reshape(2, 18, 20, 2).transpose(0, 2, 1, 3))


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
