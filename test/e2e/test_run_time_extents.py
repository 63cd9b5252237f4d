"""Outputs whose extents depend on the data: `run` returns the actual shape; readers carry the extent or are refused by name."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
rng = np.random.default_rng(0)
SPARSE = (rng.standard_normal((5, 7)) * (rng.random((5, 7)) > 0.6)).astype(np.float32)


def check(ogc, folder, nodes, feeds, outputs, initializers=None, opset=21):
    """Compares on every one of `feeds`, with one bundle."""
    infos = {name: (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in feeds[0].items()}
    model = harness.make_model(nodes, infos, outputs, initializers, opset)
    onnx.save(model, folder / "m.onnx")
    bundle = ogc.compile(folder / "m.onnx", folder / "m.ogc")
    for fed in feeds:
        harness.check_outputs(ogc.run(bundle, fed), harness.reference(model, fed), 1e-5)
    return bundle


@pytest.mark.parametrize("shape", [(6,), (5, 7), (2, 3, 40)], ids=str)
def test_nonzero(ogc, tmp_path, shape):
    feeds = [{"x": (rng.random(shape) > share).astype(np.float32)} for share in (0.5, 0.9, 2, -1)]
    bundle = check(ogc, tmp_path, [helper.make_node("NonZero", ["x"], ["y"])], feeds, {"y": (INT64, [len(shape), None])})
    described = ogc.inspect(bundle)["graphs"][0]["outputs"][0]
    assert described["run_time_dim"] == 1 and described["shape"] == [len(shape), int(np.prod(shape))]
    ogc.verify(bundle, "--random-orders", 3, "--poison")


def test_nonzero_feeds_gathers(ogc, tmp_path):
    """The usual way to pick elements: transposed indices, gathered values, arithmetic on them."""
    nodes = [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Transpose", ["i"], ["it"]), helper.make_node("GatherND", ["x", "it"], ["v"]),
             helper.make_node("Mul", ["v", "two"], ["y"]), helper.make_node("Gather", ["i", "zero"], ["rows"], axis=0), helper.make_node("Gather", ["table", "rows"], ["z"])]
    check(ogc, tmp_path, nodes, [{"x": SPARSE}, {"x": np.zeros_like(SPARSE)}], {"it": (INT64, [None, 2]), "y": (FLOAT, [None]), "z": (FLOAT, [None, 3])},
          {"two": np.float32(2), "zero": np.int64(0), "table": rng.standard_normal((5, 3)).astype(np.float32)})


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(ogc, tmp_path, axis):
    length = SPARSE.size if axis is None else SPARSE.shape[axis] - 1  # a condition may be shorter
    attributes = {} if axis is None else {"axis": axis}
    feeds = [{"x": SPARSE, "c": rng.random(length) > share} for share in (0.4, 2)]
    check(ogc, tmp_path, [helper.make_node("Compress", ["x", "c"], ["y"], **attributes)], feeds, {"y": (FLOAT, None)})


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("size", [3, 40])
def test_unique(ogc, tmp_path, axis, is_sorted, size):
    attributes = {"sorted": is_sorted, **({} if axis is None else {"axis": axis})}
    feeds = [{"x": rng.integers(0, high, (size, 2)).astype(np.float32)} for high in (2, 100)]
    outputs = {"y": (FLOAT, None), "i": (INT64, [None]), "inverse": (INT64, [None]), "counts": (INT64, [None])}
    check(ogc, tmp_path, [helper.make_node("Unique", ["x"], list(outputs), **attributes)], feeds, outputs)


def boxes(count, batch=2):
    corner, size = rng.random((batch, count, 2)) * 4, rng.random((batch, count, 2)) + 0.5
    return np.concatenate([corner, corner + size], -1).astype(np.float32)


@pytest.mark.parametrize("centered", [0, 1])
@pytest.mark.parametrize("limits", [{"k": np.array([3], np.int64)}, {"k": np.array([100], np.int64), "t": np.array([0.5], np.float32), "s": np.array([0.4], np.float32)}], ids=["3", "all"])
def test_non_max_suppression(ogc, tmp_path, centered, limits):
    node = helper.make_node("NonMaxSuppression", ["b", "p", *limits], ["y"], center_point_box=centered)
    feeds = [{"b": boxes(50), "p": rng.random((2, 3, 50)).astype(np.float32)}]
    check(ogc, tmp_path, [node], feeds, {"y": (INT64, [None, 3])}, limits)


def test_topk_of_computed_k(ogc, tmp_path):
    feeds = [{"x": SPARSE + 0.01 * np.arange(35, dtype=np.float32).reshape(5, 7), "k": np.array([k], np.int64)} for k in (3, 0, 7)]
    check(ogc, tmp_path, [helper.make_node("TopK", ["x", "k"], ["y", "i"])], feeds, {"y": (FLOAT, [5, None]), "i": (INT64, [5, None])})


RESHAPES = {"unsqueezed in front": ("Unsqueeze", [0], 1), "unsqueezed around": ("Unsqueeze", [0, -1], 1), "squeezed": ("Squeeze", [1], 1), "flattened": ("Flatten", 1, 1),
            "left to be computed": ("Reshape", [1, 1, -1], 1), "copied": ("Reshape", [0, 1, 1, -1], 1), "rows of another number": ("Reshape", [-1, 1, 2], 2)}


@pytest.mark.parametrize("case", RESHAPES)
def test_dimensions_of_the_same_size_as_the_bound(ogc, tmp_path, case):
    """Which dimension has the extent is a matter of axes, not of sizes."""
    op, value, rows = RESHAPES[case]
    x = rng.standard_normal((rows, 1, rows)).astype(np.float32)
    nodes = [helper.make_node("Compress", ["x", "c"], ["z"], axis=0), helper.make_node(op, ["z"], ["y"], axis=value) if op == "Flatten" else helper.make_node(op, ["z", "v"], ["y"])]
    feeds = [{"x": x, "c": np.arange(rows) < count} for count in range(rows + 1) if count or value not in ([1, 1, -1], [0, 1, 1, -1])]  # onnxruntime computes no size of no elements
    check(ogc, tmp_path, nodes, feeds, {"y": (FLOAT, None)}, {} if op == "Flatten" else {"v": np.array(value)})


@pytest.mark.parametrize("op, value", [("Reshape", [2, -1]), ("Reshape", [2, 2]), ("Squeeze", None), ("Squeeze", [0])])
def test_dimensions_that_only_have_the_size_of_the_bound(ogc, tmp_path, op, value):
    """Other rows of another number would lie there when fewer are chosen."""
    x = np.ones((1, 2) if op == "Squeeze" else (2, 2), np.float32)
    nodes = [helper.make_node("Compress", ["x", "c"], ["z"], axis=0), helper.make_node(op, ["z"] + (["v"] if value else []), ["y"], name="n")]
    with pytest.raises(harness.OgcError, match=f"{op} node 'n': operand 0 has an extent in dimension 0") as error:
        check(ogc, tmp_path, nodes, [{"x": x, "c": np.array([True] * len(x))}], {"y": (FLOAT, None)}, {"v": np.array(value)} if value else {})
    assert error.value.code == 1


@pytest.mark.parametrize("op", ["ReduceSum", "Shape", "Softmax"])
def test_refused(ogc, tmp_path, op):
    nodes = [helper.make_node("NonZero", ["x"], ["i"], name="nz"), helper.make_node("Cast", ["i"], ["f"], to=FLOAT), helper.make_node(op, ["f"], ["y"], name="reader")]
    model = harness.make_model(nodes, {"x": (FLOAT, [3, 4])}, {"y": (INT64 if op == "Shape" else FLOAT, None)})
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(harness.OgcError) as error:
        ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    assert error.value.code == 1
    assert f"{op} node 'reader': operand 0 has an extent in dimension 1 that is known only at run time" in error.value.message


def test_inspect_shows_the_bound(ogc, tmp_path):
    bundle = check(ogc, tmp_path, [helper.make_node("NonZero", ["x"], ["y"])], [{"x": SPARSE}], {"y": (INT64, [2, None])})
    assert "<=35" in ogc("inspect", bundle)
