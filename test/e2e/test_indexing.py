"""Sorts, scans, scatters, selections and sums of products against onnxruntime, on sizes that reach every way they are computed."""
import zlib

import numpy as np
import onnx
import pytest

import harness

F32, F16, F64, I64, I32 = np.float32, np.float16, np.float64, np.int64, np.int32


def rng(*key):
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def f(*shape, dtype=F32):
    return rng(shape).standard_normal(shape).astype(dtype)


def i(*shape, low=-9, high=10, dtype=I64):
    return rng(shape, low).integers(low, high, shape).astype(dtype)


def ints(*values):
    return np.array(values, I64)


CASES = []


def case(op, *inputs, name="", constants=(), outputs=1, opset=21, **attributes):
    CASES.append(pytest.param(op, inputs, constants, outputs, opset, attributes, id=f"{op} {name}".strip()))


# TopK: one thread, one chunk, several levels of merging, few and all elements kept, lines that are not last, equal elements.
for shape, axis, k in (((3, 7), -1, 3), ((2, 40), -1, 40), ((1, 1000), -1, 5), ((1, 1000), -1, 1000), ((5, 70, 3), 1, 33), ((3000,), 0, 17)):
    for largest in (0, 1):
        case("TopK", f(*shape), ints(k), name=f"{shape} axis {axis} k {k} largest {largest}", constants=[1], outputs=2, axis=axis, largest=largest)
case("TopK", i(2, 300, low=0, high=5), ints(100), name="equal elements", constants=[1], outputs=2)
case("TopK", f(2, 300, dtype=F16), ints(100), name="fp16", constants=[1], outputs=2)
case("TopK", f(2, 300), ints(0), name="nothing", constants=[1], outputs=2)
case("TopK", f(4, 9), name="k as attribute", outputs=2, opset=1, k=2)

# Scans: a thread a line, and chunks.
for shape, axis in (((3, 5), 1), ((2, 1000), 1), ((1000, 3), 0), ((5, 300, 4), -2)):
    for exclusive in (0, 1):
        for reverse in (0, 1):
            case("CumSum", f(*shape), I64(axis), name=f"{shape} axis {axis} exclusive {exclusive} reverse {reverse}", constants=[1],
                 exclusive=exclusive, reverse=reverse)
case("CumSum", i(3, 700), I32(1), name="int64", constants=[1])
case("CumSum", i(4, 5, 6), I64(-2), name="axis at run time")

# Scatters: pull form (few updates), lanes, sorted; with updates that meet.
for count in (3, 40, 700):
    case("ScatterElements", f(50), i(count, low=-50, high=50), f(count), name=f"vector {count} add", reduction="add")
    case("ScatterElements", i(50), i(count, low=-50, high=50), i(count), name=f"vector {count} max", reduction="max")
    case("ScatterND", i(50, 3), i(count, 1, low=-50, high=50), i(count, 3), name=f"rows {count} mul", reduction="mul")
    case("ScatterND", i(50), i(count, 1, low=-50, high=50), i(count), name=f"elements {count} min", reduction="min")
for count in (3, 40):
    case("ScatterElements", f(50), np.random.default_rng(1).permutation(50)[:count].astype(I64), f(count), name=f"vector {count} none")
    case("ScatterND", f(50, 300), np.random.default_rng(1).permutation(50)[:count, None].astype(I64), f(count, 300), name=f"rows {count} none")
case("ScatterElements", f(4, 50, 3), i(2, 30, 3, low=0, high=50), f(2, 30, 3), name="middle axis", axis=1, reduction="add")
case("ScatterElements", f(4, 600), i(4, 600, low=0, high=600), f(4, 600), name="few long lines", axis=1, reduction="add")
case("ScatterElements", f(9), i(5, low=0, high=9, dtype=I32), f(5), name="int32 indices", reduction="mul")
case("ScatterND", f(6, 7, 4), i(20, 2, low=-6, high=6), f(20, 4), name="two indices", reduction="add")
case("Scatter", f(3, 5), i(1, 2, low=0, high=3), f(1, 2), name="opset 9", opset=9)

for op in ("ArgMax", "ArgMin"):
    case(op, i(4, 30, low=0, high=4), name="last of equal", axis=1, select_last_index=1)
    case(op, f(4, 30, 2), name="dropped", axis=-2, keepdims=0)
case("Hardmax", i(3, 8, low=0, high=3).astype(F32), axis=1)
case("Hardmax", f(3, 4, 5), name="opset 11", axis=1, opset=11)
case("Hardmax", f(2, 40, 3), name="middle axis", axis=1)
case("Det", f(4, 4))
case("Det", f(2, 3, 1, 1), name="one by one")
case("Det", np.array([[0, 2], [3, 4]], F32), name="zero pivot")
case("Det", np.ones((3, 3), F32), name="singular")

for equation, shapes in {"ij,jk->ik": [(5, 7), (7, 4)], "bij,bkj->bik": [(2, 5, 7), (2, 4, 7)], "bhqd,bhkd->bhqk": [(2, 3, 5, 8), (2, 3, 6, 8)],
                         "ij->ji": [(3, 4)], "ii->i": [(5, 5)], "ii": [(5, 5)], "...ii->...i": [(2, 4, 4)], "ij->": [(3, 4)], "i,i": [(6,), (6,)],
                         "i,j->ij": [(3,), (4,)], "...ij,...jk->...ik": [(2, 1, 3, 4), (1, 5, 4, 6)], "ij,jk,kl->il": [(3, 4), (4, 5), (5, 2)],
                         "b...d,d->b...": [(2, 3, 4, 5), (5,)], "ij,ij->ij": [(3, 4), (3, 4)], "ba,cb": [(3, 4), (5, 3)], "abc,cd,ae->bde": [(2, 3, 4), (4, 5), (2, 6)],
                         "bij, bjk -> bik": [(2, 3, 4), (2, 4, 5)], "ijk,ijl->kl": [(2, 3, 4), (2, 3, 5)]}.items():
    case("Einsum", *[f(*shape) for shape in shapes], name=equation, equation=equation)
    if len(shapes) == 2:
        case("Einsum", *[f(*shape) for shape in shapes], name=equation + " constant", equation=equation, constants=[1])
case("Einsum", f(5, 7, dtype=F16), f(7, 4, dtype=F16), name="fp16", equation="ij,jk->ik")
case("Einsum", f(5, 7, dtype=F64), f(7, 4, dtype=F64), name="fp64", equation="ij,jk->ik")


@pytest.mark.parametrize("op, inputs, constants, outputs, opset, attributes", CASES)
def test_operator(ogc, tmp_path, op, inputs, constants, outputs, opset, attributes):
    inputs = [np.asarray(x) for x in inputs]
    model, fed = harness.single_node(op, inputs, attributes, outputs, constants, opset)
    onnx.save(model, tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    half = any(x.dtype == F16 for x in inputs)
    harness.check_outputs(ogc.run(bundle, fed), harness.reference(model, fed), 2e-3 if half else 1e-5)


def test_topk_with_nan(ogc, tmp_path):
    """NaN counts as larger than every number, on both ends of the order."""
    x = np.array([[1, np.nan, -np.inf, 3, np.nan, np.inf]], F32)
    for largest, indices in ((1, [1, 4, 5, 3, 0, 2]), (0, [2, 0, 3, 5, 1, 4])):
        model, fed = harness.single_node("TopK", [x, ints(6)], {"largest": largest}, 2, [1])
        onnx.save(model, tmp_path / "m.onnx")
        assert ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)["y1"].tolist() == [indices]


@pytest.mark.parametrize("count", [4, 600])
def test_last_update_wins(ogc, tmp_path, count):
    """Without a reduction the last of the updates of one element stays."""
    data, indices, updates = f(20), i(count, low=0, high=20), f(count)
    model, fed = harness.single_node("ScatterElements", [data, indices, updates])
    onnx.save(model, tmp_path / "m.onnx")
    expected = data.copy()
    for index, update in zip(indices, updates):
        expected[index] = update
    np.testing.assert_array_equal(ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)["y0"], expected)


def test_cumprod(ogc, tmp_path):
    x = np.abs(f(3, 400)) + F32(0.5)
    model, fed = harness.single_node("CumProd", [x.astype(F64), I64(1)], {"reverse": 1}, 1, [1], opset=26)
    onnx.save(model, tmp_path / "m.onnx")
    expected = np.cumprod(x[:, ::-1].astype(F64), axis=1)[:, ::-1]
    np.testing.assert_allclose(ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)["y0"], expected, rtol=1e-9)


@pytest.mark.parametrize("op, inputs, attributes, message", [
    ("TopK", [f(3, 4), ints(5)], {}, "requested k"),
    ("Einsum", [f(3, 4), f(5, 2)], {"equation": "ij,jk->ik"}, "extents"),
    ("Einsum", [f(2, 1, 3, 4), f(5, 4, 6)], {"equation": "...ij,...jk->...ik"}, "Ellipsis"),
    ("Det", [f(3, 4)], {}, ""),
], ids=["TopK", "Einsum", "Einsum ellipses", "Det"])
def test_refused(ogc, tmp_path, op, inputs, attributes, message):
    outputs = ["y", "indices"] if op == "TopK" else ["y"]
    node = onnx.helper.make_node(op, [f"x{n}" for n in range(len(inputs))], outputs, name="the_node", **attributes)
    constants = {f"x{n}": x for n, x in enumerate(inputs) if x.dtype == I64}
    infos = {f"x{n}": (onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in enumerate(inputs) if x.dtype != I64}
    model = harness.make_model([node], infos, {"y": (1, None)}, constants)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(harness.OgcError) as error:
        ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    assert error.value.code == 1 and op in error.value.message and "the_node" in error.value.message and message in error.value.message
