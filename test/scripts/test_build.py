"""scripts/build.sh: what is compiled while sources change is compiled again."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CMAKE = """#!/bin/bash
echo "$*" >>"$LOG"
case "$*" in
  *clean*) ;;
  --build*) for change in $CHANGES; do [ "$(grep -c -- '--target all' "$LOG")" != "$change" ] || echo >>compiler/a.cpp; done; [ -z "$FAILS" ] ;;
  *) mkdir -p "${@: -1}" ;;
esac
"""


@pytest.fixture
def build(tmp_path):
    """Runs the script in a tree of one source, with a cmake that appends to it during the builds numbered in `changes`."""
    tree = tmp_path / "tree"
    for name in ("build.sh", "env.sh", "requirements.txt"):
        (tree / "scripts").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, tree / "scripts" / name)
    (tree / "compiler").mkdir()
    (tree / "compiler/a.cpp").write_text("int a;\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cmake").write_text(CMAKE)
    (tmp_path / "bin/cmake").chmod(0o755)
    log = tmp_path / "log"

    def run(changes="", fails=""):
        environment = {**os.environ, "OGC_CACHE_DIR": str(tmp_path / "cache"), "LOG": str(log), "CHANGES": changes, "FAILS": fails}
        environment.pop("OGC_BUILD_DIR", None)
        virtual = subprocess.run(["bash", "-c", f"source {tree}/scripts/env.sh && mkdir -p $OGC_VENV/bin && touch $OGC_VENV/.complete && ln -sf {tmp_path}/bin/cmake $OGC_VENV/bin/cmake"],
                                 env=environment)
        assert virtual.returncode == 0
        log.write_text("")
        done = subprocess.run([tree / "scripts/build.sh"], env=environment, capture_output=True, text=True)
        lines = log.read_text().splitlines()
        return done, sum("--target all" in line for line in lines), sum("--target clean" in line for line in lines)

    return run


def test_once(build):
    done, builds, cleans = build()
    assert (done.returncode, builds, cleans) == (0, 1, 0)


def test_again_when_sources_changed(build):
    done, builds, cleans = build(changes="1")
    assert (done.returncode, builds, cleans) == (0, 2, 1)
    assert "sources changed" in done.stderr


def test_gives_up_when_they_change_again(build):
    done, builds, cleans = build(changes="1 2")
    assert (done.returncode, builds, cleans) == (1, 2, 1)
    assert "error: sources changed during two builds" in done.stderr
    done, builds, cleans = build()  # the next one begins anew
    assert (done.returncode, builds, cleans) == (0, 1, 1)


def test_failed_build(build):
    done, builds, cleans = build(fails="yes")
    assert (done.returncode, builds, cleans) == (1, 1, 0)
    assert "the build failed" in done.stderr
    assert build()[1:] == (1, 0)
