"""The checks of test/conformance/run.py: what counts as worse and what as stale, and the record's format."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import run  # noqa: E402
import table  # noqa: E402


def line(case, variant, status, bits="1", message=""):
    return {"case": case, "variant": variant, "status": status, "bits": bits, "message": message}


def report(*lines):
    return {(entry["case"], entry["variant"]): entry for entry in lines}


def test_variants_must_give_the_bits_of_the_plain_case():
    statuses = run.statuses_of(report(line("a", "plain", "right"), line("a", "folded", "right"), line("a", "half", "right", bits="2")))
    assert statuses["a"].results == {"cpu": "right", "folded": "same", "half": "differs", "cuda": "-"}


def test_a_right_variant_of_a_refused_case_is_right():
    statuses = run.statuses_of(report(line("a", "plain", "refused", message="Foo node 'x': has no lowering\nmore"), line("a", "folded", "right")))
    assert statuses["a"].results["folded"] == "right"
    assert statuses["a"].reason == "Foo node 'x': has no lowering"


def status(cpu, **columns):
    return run.Status({"cpu": cpu} | columns, columns.pop("reason", ""))


def test_what_was_right_and_is_not_is_worse():
    for now in ("refused", "wrong", "crashed"):
        worse, _ = run.compare({"a": status("right")}, {"a": status(now)})
        assert worse, now
    worse, _ = run.compare({"a": status("right", half="same")}, {"a": status("right", half="differs")})
    assert worse


def test_wrong_and_crashed_are_worse_even_when_on_record():
    for now in ("wrong", "crashed"):
        worse, _ = run.compare({"a": status(now)}, {"a": status(now)})
        assert worse, now


def test_what_became_right_is_stale():
    worse, stale = run.compare({"a": status("refused")}, {"a": status("right")})
    assert not worse and stale
    worse, stale = run.compare({"a": status("refused")}, {"a": status("refused")})
    assert not worse and not stale


def test_record_is_read_as_it_is_written(tmp_path):
    statuses = {"b": run.Status({"cpu": "refused", "cuda": "right"}, "Foo node 'x y': has no lowering"), "a": run.Status({"cpu": "right"})}
    run.write_status(statuses, tmp_path / "status.txt")
    again = run.read_status(tmp_path / "status.txt")
    assert {name: (value.results, value.reason) for name, value in again.items()} == {n: (v.results, v.reason) for n, v in statuses.items()}


def test_kinds_of_refusal_leave_out_what_differs():
    kinds = {table.refusal_kind(reason) for reason in ("Foo node 'a': mode 'x' of [1, 2] at 3 is not supported", "Bar node 'b': mode 'y' of [4] at 17 is not supported")}
    assert kinds == {"mode '…' of … at N is not supported"}


def test_junit_counts_refusals_as_skipped(tmp_path):
    statuses = {"a": run.Status({"cpu": "right", "folded": "same"}), "b": run.Status({"cpu": "refused"}, "no"), "c": run.Status({"cpu": "wrong"}, "output")}
    path = tmp_path / "results.xml"
    run.write_junit(path, statuses, run.compare({}, statuses)[0])
    text = path.read_text()
    assert text.count("<testcase") == 4 and text.count("<skipped/>") == 1 and text.count("<failure>") == 1


def test_reports_are_lines_of_json(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("".join(json.dumps(line("a", variant, "right")) + "\n" for variant in ("plain", "half")))
    assert set(run.read_report(path)) == {("a", "plain"), ("a", "half")}
