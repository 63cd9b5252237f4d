"""`ogc accuracy`: how far 16-bit models are from f32, and which values leave the range of float16."""
import json
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A product, a softmax of it, and a product whose result is above a hundred thousand, with a softmax too."""
    path = tmp_path_factory.mktemp("accuracy") / "m.onnx"
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((32, 48), np.float32), "large": np.full((48, 16), 1e5, np.float32) / 3}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Softmax", ["m"], ["s"], name="soft"),
             helper.make_node("Mul", ["s", "s"], ["q"], name="square"), helper.make_node("MatMul", ["s", "large"], ["l"], name="grows"),
             helper.make_node("Add", ["l", "l"], ["l2"], name="twice"), helper.make_node("Add", ["l2", "l2"], ["l4"], name="four times"),
             helper.make_node("Softmax", ["l4"], ["z"], name="end")]
    model = harness.make_model(nodes, {"x": (F32, (4, 32))}, {"s": (F32, (4, 48)), "z": (F32, (4, 16)), "q": (F32, (4, 48))}, weights)
    path.write_bytes(model.SerializeToString())
    return path


def accuracy(ogc, model, *options):
    done = subprocess.run([ogc.program, "accuracy", str(model), "--json", *map(str, options)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_errors_are_those_of_the_runs(ogc, model, tmp_path):
    x = np.random.default_rng(5).standard_normal((4, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    report, _ = accuracy(ogc, model, "--precision", "bf16", "--inputs", tmp_path, "--values")
    runs = [ogc.run(ogc.compile(model, tmp_path / f"{precision}.ogc", precision=precision), {"x": x}) for precision in ("fp32", "bf16")]
    for output in report["outputs"]:
        exact, actual = (run[output["name"]] for run in runs)
        assert output["relative_l2"] == pytest.approx(harness.relative_error(actual, exact), rel=1e-6)
        assert output["relative_l2"] > 1e-4 or output["name"] == "z"  # whose rows are of equal numbers
        assert output["largest_value"] == pytest.approx(np.abs(exact).max()) and output["dtype"] == "float32" and not output["overflows"]
    product = next(value for value in report["values"] if value["name"].startswith("product"))
    assert product["dtype"] == "bfloat16" and product["elements"] == 4 * 48
    assert all(value["relative_l2"] < 0.1 for value in report["values"])  # nothing is compared with something else
    errors = [value["relative_l2"] for value in report["values"]]
    assert errors == sorted(errors, reverse=True) and report["values_total"] == len(errors) and not report["overflowing_values"]


def test_overflow_names_the_nodes(ogc, model):
    report, warnings = accuracy(ogc, model, "--precision", "fp16")
    value = next(value for value in report["overflowing_values"] if "grows (MatMul)" in value["name"])
    assert value["dtype"] == "float16" and value["largest_value"] == pytest.approx(4e5 / 3, rel=1e-3) and value["range"] == 65504
    assert "warning: the value of" in warnings and "grows (MatMul)" in warnings and "float16 ends at 65504" in warnings
    # The softmax of infinities.
    assert "warning: output 'z' has infinities or NaN where fp32 has numbers" in warnings
    assert {output["name"]: output["overflows"] for output in report["outputs"]} == {"s": False, "z": True, "q": False}
    assert report["values"] == [] and report["values_total"] > 1


def test_inputs_that_overflow(ogc, model, tmp_path):
    np.save(tmp_path / "x.npy", np.full((4, 32), 1e5, np.float32))
    report, warnings = accuracy(ogc, model, "--input", f"x={tmp_path}/x.npy")
    assert [value["name"] for value in report["overflowing_inputs"]] == ["x"] and "warning: input 'x' reaches 100000" in warnings


def test_tables(ogc, model):
    text = ogc("accuracy", model, "--precision", "bf16", "--values", "--top", 1)
    assert "relative L2" in text and "stored by" in text and "values with smaller errors" in text
    assert "stored by" not in ogc("accuracy", model, "--precision", "bf16")


def test_what_is_wrong(ogc, model, tmp_path):
    for options, reason in ((["--precision", "tf32"], "computes products of tf32 exactly"), (["--inputs", tmp_path], "has no file for any input"),
                            (["--inputs", tmp_path / "absent"], "there is no folder"),
                            (["--graph", "other"], "there is no graph 'other'")):
        with pytest.raises(harness.OgcError, match=reason) as error:
            ogc("accuracy", model, *options)
        assert error.value.code == 1
    with pytest.raises(harness.OgcError) as error:
        ogc("accuracy", tmp_path / "missing.onnx")
    assert error.value.code == 1
