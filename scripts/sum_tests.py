#!/usr/bin/env python3
"""Adds up test results: prints a line a suite and, last, one line "N passed, N failed, N skipped".

usage: sum_tests.py SUITE=EXIT_CODE[:JUNIT_XML] ...
A suite may be given several times. Without a file a suite is one test that its exit code decides. A suite that failed without naming a
failed test (a crash, no test collected) counts as one failure more. Exit code 1 when anything failed.
"""
import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    """(passed, failed, skipped) of a JUnit file, counted test by test since the writers' totals differ."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"} or case.get("status") == "fail":
            failed += 1
        elif "skipped" in outcomes or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def result(spec):
    """The suite's name and its three counts."""
    suite, _, rest = spec.partition("=")
    code, _, path = rest.partition(":")
    if not path:
        return suite, (int(code == "0"), int(code != "0"), 0)
    try:
        passed, failed, skipped = count(path)
    except (OSError, ElementTree.ParseError) as error:
        print(f"{suite}: no results ({error})")
        return suite, (0, 1, 0)
    if code != "0" and not failed:
        print(f"{suite}: exit code {code} without a failed test")
        failed = 1
    return suite, (passed, failed, skipped)


def main():
    suites = {}
    for spec in sys.argv[1:]:
        suite, counts = result(spec)
        suites[suite] = [a + b for a, b in zip(suites.get(suite, (0, 0, 0)), counts)]
    for suite, (passed, failed, skipped) in suites.items():
        print(f"{suite + ':':12}{passed:5} ok {failed:5} bad {skipped:5} left out")
    total = [sum(column) for column in zip(*suites.values())] or [0, 0, 0]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
