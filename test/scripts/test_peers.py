"""The comparison with peers: its table, its arguments, and the way from a bundle to a row, with a program in place of ogc."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import peer_models  # noqa: E402
import peer_table  # noqa: E402
import peer_worker  # noqa: E402
import peers  # noqa: E402


def times(p50):
    return {"us": {"p50": p50, "p90": p50 + 1}}


def test_rows_name_the_best_peer():
    row = peer_table.Row("resnet50", "fp16")
    assert row.best_peer() is None
    row.set("ogc", {**times(100), "nodes": 57})
    row.set("eager", {**times(400), "variant": "channels last"})
    row.set("inductor", times(250))
    row.set("onnxruntime", {"failure": "no provider"})
    row.floors = {"nodes": 50, "model": 20}
    assert row.best_peer() == ("inductor", 250)
    (line,) = list(peer_table.table([row], ["eager", "inductor", "onnxruntime", "ogc"]))[2:]
    assert line == "| resnet50 | fp16 | 100 / 101 | 57 | 400 / 401, channels last | 250 / 251 | failed | 2.50 | 50 (0.50) | 20 (0.20) |"


def test_rows_without_ogc_or_peers_have_no_ratio():
    rows = [peer_table.Row("gpt2", "fp16"), peer_table.Row("gpt2", "tf32")]
    rows[0].set("eager", times(5))
    rows[1].set("ogc", {"failure": "does not compile"})
    lines = list(peer_table.table(rows, ["eager", "ogc"]))
    assert lines[2] == "| gpt2 | fp16 | – | – | 5 / 6 | – | – | – |"
    assert lines[3] == "| gpt2 | tf32 | failed | – | – | – | – | – |"
    assert len({line.count("|") for line in lines}) == 1
    assert list(peer_table.failures(rows)) == ["- gpt2 tf32, ogc: does not compile"]


def test_the_file_is_replaced_whole(tmp_path):
    path = tmp_path / "t.md"
    peer_table.write_table([peer_table.Row("gpt2", "fp16")], {"device": "some GPU"}, ["ogc"], path)
    assert "- device: some GPU" in path.read_text() and os.listdir(tmp_path) == ["t.md"]


def test_summary_is_median_and_nearest_rank():
    assert peer_worker.summary(range(1, 11)) == {"p50": 5.5, "p90": 9}
    assert peer_worker.summary([3.0]) == {"p50": 3.0, "p90": 3.0}


def test_arguments():
    options = peers.parse_options(["--models", "gpt2,resnet50@8", "--precisions", "fp16", "--compile", "--no-pdl --serial"])
    assert (options.models, options.precisions, options.peers) == (["gpt2", "resnet50@8"], ["fp16"], peers.PEERS)
    assert options.compile == ["--no-pdl", "--serial"]
    for wrong in (["--models", "gpt3"], ["--peers", ""], ["--precisions", "fp16,fp8"]):
        with pytest.raises(SystemExit):
            peers.parse_options(wrong)


def test_every_model_has_its_file():
    models = Path(os.environ.get("OGC_SHARED") or ROOT / "../shared") / "models"
    if not models.is_dir():
        pytest.skip("needs the models of ../shared")
    for model in peer_models.MODELS.values():
        assert (models / f"{model.file}.onnx").exists()


FAKE_OGC = """#!{python}
import json, sys
if "compile" in sys.argv:
    sys.exit("error: no such thing" if "--bad" in sys.argv else 0)
print(json.dumps({{"floor_us": 30, "model_floor_us": 12}} if "--roofline" in sys.argv else {{"device_us": {{"p50": 60, "p90": 61, "p99": 70}}, "nodes": 9}}))
"""


@pytest.mark.parametrize("option, text", [("", "| gpt2 | fp16 | 60 / 61 | 9 | – | 30 (0.50) | 12 (0.20) |"),
                                          ("--bad", "- gpt2 fp16, ogc: RuntimeError: error: no such thing")])
def test_a_run_with_ogc_alone(tmp_path, option, text):
    for program in ("ogc", "ogc-rt"):
        path = tmp_path / "bin" / program
        path.parent.mkdir(exist_ok=True)
        path.write_text(FAKE_OGC.format(python=sys.executable))
        path.chmod(0o755)
    shared = tmp_path / "shared/models"
    shared.mkdir(parents=True)
    (shared / "gpt2.onnx").write_text("")
    (shared / "make_weights.py").write_text("import os, sys; os.makedirs(sys.argv[2])")
    environment = {**os.environ, "OGC_BUILD_DIR": str(tmp_path), "OGC_SHARED": str(tmp_path / "shared"), "OGC_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, ROOT / "bench/peers.py", "--models", "gpt2", "--precisions", "fp16", "--peers", "ogc", "--device", "cpu",
                           "--target", "cpu", f"--compile={option}", "--output", tmp_path / "t.md"], capture_output=True, text=True, env=environment)
    assert done.returncode == (1 if option else 0), done.stdout + done.stderr
    assert text in (tmp_path / "t.md").read_text()
