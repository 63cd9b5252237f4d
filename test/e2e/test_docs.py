"""Pages whose examples are executed show what the programs print."""
import subprocess
import sys

import pytest

import harness


@pytest.mark.parametrize("page", ["memory", "graphs", "updates"])
def test_examples_are_current(ogc, page):
    script, path = harness.ROOT / "scripts/run_examples.py", harness.ROOT / f"docs/{page}.md"
    done = subprocess.run([sys.executable, script, "--check", "--ogc", ogc.program, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
