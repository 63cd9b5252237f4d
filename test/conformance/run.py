#!/usr/bin/env python3
"""Runs the onnx package's node cases through the compiler and the runtime and compares with what is on record.

The record is status.txt here, a line a case; docs/operators.md is written from it. Without options the cases are run on the cpu target, plain, with all
inputs as initializers and with every second one, and the record is rewritten (--check: compared instead; a case that was right and is not, a wrong
result, a crash or a stale record fail).
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import xml.sax.saxutils
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cases  # noqa: E402
import table  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
STATUS = Path(__file__).parent / "status.txt"
OPERATORS = ROOT / "docs/operators.md"
DRIVER = ROOT / os.environ.get("OGC_BUILD_DIR", "build") / "bin/ogc-conformance"
VARIANTS = ("plain", "folded", "half", "nonsense")


class Status:
    """A case on record: `results` maps "cpu", "folded", "half" and "cuda" to right, given (right once the values of small integer inputs were given to the
    compiler), refused, wrong or crashed, and for the variants of the cpu target also to same or differs; "-" where there is nothing. `reason` is the
    compiler's on the cpu target."""

    COLUMNS = ("cpu", "folded", "half", "cuda")

    def __init__(self, results=None, reason=""):
        self.results, self.reason = {column: "-" for column in self.COLUMNS} | (results or {}), reason

    def line(self, name):
        return " ".join([name, *(self.results[column] for column in self.COLUMNS), *([self.reason] if self.reason else [])])

    @classmethod
    def parse(cls, line):
        name, *fields = line.rstrip("\n").split(" ", len(cls.COLUMNS) + 1)
        return name, cls(dict(zip(cls.COLUMNS, fields)), *fields[len(cls.COLUMNS):])


def read_status(path=STATUS):
    if not path.exists():
        return {}
    return dict(Status.parse(line) for line in path.read_text().splitlines() if line and not line.startswith("#"))


def write_status(statuses, path=STATUS):
    lines = ["# case, then what it gave: cpu, folded, half, cuda; and why it is refused. Written by run.py; see docs/operators.md."]
    path.write_text("\n".join(lines + [statuses[name].line(name) for name in sorted(statuses)]) + "\n")


def read_report(path):
    """{(case, variant): line} of a report of ogc-conformance."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return {(line["case"], line["variant"]): line for line in lines}


def statuses_of(report):
    """What a report of the cpu target says of each case."""
    found = {}
    for (name, variant), line in sorted(report.items(), key=lambda item: VARIANTS.index(item[0][1])):
        status = found.setdefault(name, Status())
        if variant == "nonsense":
            continue
        if variant == "plain":
            status.results["cpu"] = line["status"]
        else:
            plain = report.get((name, "plain"), {})
            both = line["status"] == "right" and plain.get("status") in ("right", "given")
            status.results[variant] = ("same" if line["bits"] == plain["bits"] else "differs") if both else line["status"]
        if variant == "plain" or not status.reason:
            status.reason = "" if line["status"] == "right" else (line["message"].splitlines() or [""])[0]
    return found


def accepted_nonsense(report):
    """Lines for models with a string attribute that means nothing, and were compiled nevertheless."""
    return [f"{name}: a string attribute without a meaning is {line['status']}, expected refused" for (name, variant), line in sorted(report.items())
            if variant == "nonsense" and line["status"] != "refused"]


def compare(old, new):
    """One line a case for what is worse than on record, or bad on its own; and for what the record lacks."""
    worse, stale = [], []
    for name, status in sorted(new.items()):
        before = old.get(name, Status())
        for column in ("cpu", "folded", "half"):
            now, then = status.results[column], before.results[column]
            if now in ("wrong", "crashed", "missing") or (then in ("right", "same", "given") and now not in (then, "right", "same")):
                worse.append(f"{name}: {column} is {now}, on record {then}: {status.reason}")
            elif now != then or (now in ("refused", "given") and status.reason != before.reason):
                stale.append(f"{name}: {column} is {now} ({status.reason}), on record {then} ({before.reason})")
    return worse, stale


def run_driver(folder, options, report):
    command = [DRIVER, folder, "-o", report, "--jobs", options.jobs, "--filter", options.filter, "--variants", ",".join(VARIANTS), "--target", options.target]
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL)


def write_junit(path, statuses, worse):
    """Each case in each variant is a test: refused as on record counts as skipped."""
    bad = collections.defaultdict(list)
    for line in worse:
        bad[line.split(":")[0]].append(line)
    with open(path, "w") as file:
        file.write("<testsuite name='conformance'>\n")
        for name, status in sorted(statuses.items()):
            for column in ("cpu", "folded", "half"):
                if status.results[column] == "-":
                    continue
                lines = [line for line in bad[name] if f": {column} is " in line]
                outcome = (f"<failure>{xml.sax.saxutils.escape(lines[0])}</failure>" if lines
                           else "<skipped/>" if status.results[column] in ("refused", "differs") else "")
                file.write(f"<testcase classname='{column}' name='{name}'>{outcome}</testcase>\n")
        file.write("</testsuite>\n")


def merge_cuda(statuses, path):
    """Takes the column of the GPU from a report of ogc-conformance --device cuda:0 over carried bundles."""
    for (name, variant), line in read_report(path).items():
        if variant == "plain" and name in statuses:
            statuses[name].results["cuda"] = line["status"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the record, change nothing")
    parser.add_argument("--filter", default="", help="regular expression of case names; the record of others is kept")
    parser.add_argument("--jobs", default=os.cpu_count(), type=int)
    parser.add_argument("--target", default="cpu", help="targets to compile for, e.g. sm_90,cpu")
    parser.add_argument("--report", help="take this report instead of running the cases")
    parser.add_argument("--cuda-report", help="take the column of the GPU from this report")
    parser.add_argument("--junitxml", help="results file")
    return parser.parse_args()


def main():
    options = parse_arguments()
    folder = cases.folder()
    old = read_status()
    with tempfile.TemporaryDirectory(prefix="ogc-conformance-") as temporary:
        report = options.report or os.path.join(temporary, "report.json")
        if not options.report:
            run_driver(folder, options, report)
        lines = read_report(report)
    new = statuses_of(lines)
    worse, stale = compare(old, new)
    worse += accepted_nonsense(lines)
    for name, status in new.items():
        status.results["cuda"] = old.get(name, Status()).results["cuda"]
    merged = ({name: status for name, status in old.items() if name not in new} if options.filter else {}) | new
    if options.cuda_report:
        merge_cuda(merged, options.cuda_report)
    counts = collections.Counter(status.results["cpu"] for status in new.values())
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    for line in worse:
        print("worse:", line)
    if options.junitxml:
        write_junit(options.junitxml, new, worse)
    text = table.markdown(json.loads((folder / "cases.json").read_text()), merged)
    if not options.check:
        write_status(merged)
        OPERATORS.write_text(text)
        return 0
    for line in stale:
        print("stale:", line)
    if OPERATORS.read_text() != text:
        stale.append("docs/operators.md")
        print("stale: docs/operators.md; write it with test/conformance/run.py")
    return 1 if worse or stale else 0


if __name__ == "__main__":
    sys.exit(main())
