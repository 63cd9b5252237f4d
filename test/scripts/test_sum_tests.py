"""The test summary counts every way in which the suites report."""
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/sum_tests.py"
JUNIT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><skipped/></testcase><testcase name="d" status="fail"/>
</testsuite></testsuites>"""


def run(*specs):
    done = subprocess.run([sys.executable, SCRIPT, *specs], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()[-1]


def test_counts(tmp_path):
    (tmp_path / "r.xml").write_text(JUNIT)
    assert run(f"lit=1:{tmp_path}/r.xml", "format=0") == (1, "2 passed, 2 failed, 1 skipped")


def test_crash_is_a_failure(tmp_path):
    (tmp_path / "r.xml").write_text('<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>')
    assert run(f"unit=0:{tmp_path}/r.xml") == (0, "1 passed, 0 failed, 0 skipped")
    assert run(f"unit=3:{tmp_path}/r.xml") == (1, "1 passed, 1 failed, 0 skipped")
    assert run(f"unit=0:{tmp_path}/missing.xml") == (1, "0 passed, 1 failed, 0 skipped")


def test_nothing_run_is_a_failure():
    assert run()[0] == 1
