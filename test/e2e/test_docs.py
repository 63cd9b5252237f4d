"""Pages whose examples are executed show what the programs print."""
import subprocess
import sys

import pytest

import harness


@pytest.mark.model
def test_plans_are_current():
    """The table of docs/memory.md, for models that compile in a second or two."""
    models = "resnet50,mobilenet_v3_large,mobilenet_v2_qdq,bert_tiny_legacy_dyn,llama_tiny_gqa,mlp_nbits4,lstm_gru"
    done = subprocess.run([sys.executable, harness.ROOT / "scripts/make_memory_table.py", "--check", "--models", models], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["memory", "graphs", "shapes", "updates"])
def test_examples_are_current(ogc, page):
    script, path = harness.ROOT / "scripts/run_examples.py", harness.ROOT / f"docs/{page}.md"
    done = subprocess.run([sys.executable, script, "--check", "--ogc", ogc.program, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
