"""`ogc bench --roofline`: bytes, operations and times of each node, and what `inspect --nodes` says of them."""
import json

import numpy as np
import pytest
from onnx import TensorProto, helper

import harness

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


@pytest.fixture(scope="module")
def bundle(ogc, tmp_path_factory):
    """Eight rows of a table of a thousand, a product with a bias, and a softmax."""
    folder = tmp_path_factory.mktemp("roofline")
    rng = np.random.default_rng(0)
    weights = {"table": rng.standard_normal((1000, 64), np.float32), "w": rng.standard_normal((64, 96), np.float32), "b": rng.standard_normal(96, np.float32)}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"], name="look up"), helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
             helper.make_node("Add", ["m", "b"], ["s"], name="bias"), helper.make_node("Softmax", ["s"], ["y"], name="soft")]
    model = harness.make_model(nodes, {"ids": (I64, (8,))}, {"y": (F32, (8, 96))}, weights)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return ogc.compile(folder / "m.onnx", folder / "m.ogc", target="cpu", precision="tf32")


def roofline(ogc, bundle, *options):
    return json.loads(ogc("bench", bundle, "--roofline", "--json", *options))


def test_counts_of_nodes(ogc, bundle):
    report = roofline(ogc, bundle)
    nodes = {node["onnx"]: node for node in report["nodes"]}
    (gather,) = (node for names, node in nodes.items() if "look up" in names)
    (product,) = (node for names, node in nodes.items() if "product" in names)
    assert gather["weight_bytes"] == 8 * 64 * 4 and gather["kind"] == "pointwise"
    assert product["product_operations"] == 2 * 8 * 64 * 96 and product["product_type"] == "tf32" and product["kind"] == "matmul"
    # The weight is packed into panels of whole columns.
    assert product["weight_bytes"] >= (64 * 96 + 96) * 4 and product["read_bytes"] == 8 * 64 * 4 and product["written_bytes"] == 8 * 96 * 4
    assert report["method"] == "each node by itself" and all(node["time_us"] > 0 for node in report["nodes"])
    assert sum(kind["nodes"] for kind in report["kinds"]) == len(report["nodes"])
    assert "floor_us" not in report


def test_floors_follow_the_options(ogc, bundle):
    report = roofline(ogc, bundle, "--bandwidth", 1, "--peak", "tf32", 0.001, "--replays", 5)
    for node in report["nodes"]:
        moved = node["weight_bytes"] + node["read_bytes"] + node["written_bytes"]
        floor = max(moved * 1e-3, node["product_operations"] * 1e-3)
        assert node["floor_us"] == pytest.approx(floor)
        assert node["bound"] == ("operations" if node["kind"] == "matmul" else "bytes")
        assert node["lost_us"] == pytest.approx(node["time_us"] - floor)
    lost = [node["lost_us"] for node in report["nodes"]]
    assert lost == sorted(lost, reverse=True)
    assert report["floor_us"] == pytest.approx(sum(node["floor_us"] for node in report["nodes"]))
    assert 0 < report["model_floor_us"] < report["floor_us"]


def test_tables(ogc, bundle):
    text = ogc("bench", bundle, "--roofline", "--bandwidth", 100, "--top", 1)
    assert "floor of its nodes" in text and "nodes that lose less" in text and "weight MB" in text
    assert "nothing is known of this device" in ogc("bench", bundle, "--roofline")
    assert "operations of products in tf32" in ogc("inspect", bundle, "--nodes")


def test_wrong_options(ogc, bundle):
    with pytest.raises(harness.OgcError, match="products are not done in 'int3'"):
        ogc("bench", bundle, "--roofline", "--peak", "int3", 1)
    for options in (["--roofline", "--load"], ["--bandwidth", "5"], ["--roofline", "--replays", "1"], ["--roofline", "--bandwidth", "-1"]):
        with pytest.raises(harness.OgcError) as error:
            ogc("bench", bundle, *options)
        assert error.value.code == 2
