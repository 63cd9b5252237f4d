"""Tuning tables: what `compile` reads, and the bundles that `tune` measures. Measuring itself needs a GPU (scripts/gpu_tune.sh)."""
import re

import numpy as np
import pytest

import harness


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A product whose problem is in the shipped table."""
    import onnx
    rng = np.random.default_rng(0)
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    weight = (rng.standard_normal((768, 768)) / 30).astype(np.float32)
    made = harness.make_model([node], {"x": (1, (128, 768))}, {"y": (1, (128, 768))}, {"w": weight})
    path = tmp_path_factory.mktemp("tuning") / "m.onnx"
    onnx.save(made, path)
    return path


PROBLEM = "gemm f16 1x128x768x768 panels a8"


def compiled_text(ogc, model, folder, *options):
    """The CUDA text of the model's kernels."""
    ogc("compile", model, "-o", folder / "m.ogc", "--target", "sm_90", "--precision", "fp16", "--dump-dir", folder / "dump", *options)
    return "".join(path.read_text() for path in sorted((folder / "dump").glob("*.cu")))


def tile(text):
    return tuple(int(re.search(rf"\b{name} = (\d+)", text)[1]) for name in ("BM", "BN", "Split", "Trigger"))


def test_a_table_decides(ogc, model, tmp_path):
    table = tmp_path / "t.txt"
    table.write_text(f"# mine\n{PROBLEM} = bm=32 bn=32 bk=64 wm=1 wn=2 wk=4 wide=0 stages=4 split=2 trigger=2 reserve=0\n")
    assert tile(compiled_text(ogc, model, tmp_path, "--tuning", table)) == (32, 32, 2, 2)


def test_the_shipped_table_decides_unless_told_otherwise(ogc, model, tmp_path):
    line = next(line for line in (harness.ROOT / "compiler/codegen/cuda/tuning/sm_90.txt").read_text().splitlines() if line.startswith(PROBLEM))
    knobs = dict(pair.split("=") for pair in line.split(" = ")[1].split())
    assert tile(compiled_text(ogc, model, tmp_path)) == tuple(int(knobs[name]) for name in ("bm", "bn", "split", "trigger"))
    assert tile(compiled_text(ogc, model, tmp_path, "--tuning", "none"))[3] == 1  # the rule for products: after the wait


def test_a_wrong_table_is_refused(ogc, model, tmp_path):
    table = tmp_path / "t.txt"
    table.write_text("gemm\na = x=1\na = x=2\n")
    with pytest.raises(harness.OgcError) as error:
        compiled_text(ogc, model, tmp_path, "--tuning", table)
    assert error.value.code == 1 and "t.txt:1: expected" in error.value.message and "t.txt:3: 'a' is there twice" in error.value.message
    with pytest.raises(harness.OgcError, match="cannot read the tuning file"):
        compiled_text(ogc, model, tmp_path, "--tuning", tmp_path / "missing.txt")


@pytest.mark.parametrize("options", [[], ["--stop-after", "import"]])
def test_a_table_that_no_target_uses_is_read(ogc, model, tmp_path, options):
    """The cpu target has no use for it, but a name that is wrong is an error of the user's."""
    (tmp_path / "t.txt").write_text("gemm\n")
    for name, reason in (("missing.txt", "cannot read the tuning file"), ("t.txt", "t.txt:1: expected")):
        with pytest.raises(harness.OgcError, match=reason) as error:
            ogc("compile", model, "-o", tmp_path / "m.ogc", "--target", "cpu", "--tuning", tmp_path / name, *options)
        assert error.value.code == 1 and error.value.message.count("\n") == 1
        assert not (tmp_path / "m.ogc").exists()


def test_candidates_are_for_one_cuda_target(ogc, model, tmp_path):
    for targets in ("cpu", "sm_80,sm_90"):
        with pytest.raises(harness.OgcError, match="tuning candidates are for one CUDA target"):
            ogc("compile", model, "-o", tmp_path / "m.ogc", "--target", targets, "--tuning-candidates")


def test_a_bundle_with_candidates_says_where_to_measure_them(ogc, model, tmp_path):
    text = compiled_text(ogc, model, tmp_path, "--tuning-candidates", "--weights", "none")
    assert text.count("_Config : ogc::GemmDefaults") > 20
    ogc("inspect", tmp_path / "m.ogc")
    with pytest.raises(harness.OgcError) as error:
        ogc("tune", tmp_path / "m.ogc", "--device", "cpu")
    assert error.value.code == 1 and error.value.message.count("\n") == 1
    compiled_text(ogc, model, tmp_path)
    with pytest.raises(harness.OgcError, match="no choices to measure: compile it with --tuning-candidates"):
        ogc("tune", tmp_path / "m.ogc")
