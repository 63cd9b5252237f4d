"""docs/operators.md: what the compiler does with each operator's cases, written from the record of run.py."""
import collections
import re

INTRODUCTION = """# Operators

What `ogc` does with the backend node cases of the onnx package {onnx}: {total} cases, of which {counted} have numeric or bool tensors only. The others
({left_out}) are not counted. Each counted case is compiled and run three times: as it is, with all inputs as initializers (folded) and with every
second one; the three must give the same bits. `test/conformance/run.py` runs the cases and writes this page, and `scripts/test.sh` fails when a case
that was right is not, or when this page is stale; `test/conformance/status.txt` has the result of each case.

Right means as the package's own runner: |actual - expected| <= 1e-7 + 1e-3 |expected| (bfloat16 2^-6, two units in the last place; here also float16,
2^-9), integers and bools exact; within 1e-6 where the expected zeros of {absolute} cases are not exact. Cases whose expected values are numpy's random numbers ({laws}) are checked for type, shape and the kind of values. A case whose inputs decide shapes (axes, sizes, counts)
is refused as it is, and right when the compiler is given their values: `ogc compile --value 'axes=[0, 2]'`.

| | right | right with values given | refused | wrong | crashed | of |
|---|---|---|---|---|---|---|
{summary}
"""


def refusal_kind(reason):
    """The reason without what differs from node to node."""
    text = re.sub(r"^.*? node '.*?': ", "", reason)
    text = re.sub(r"'[^']*'", "'…'", text)
    text = re.sub(r"\[[-\d, ?]*\]|\b(?:[\d?]+x)+[a-z]+\d+\b", "…", text)
    return re.sub(r"(?<![A-Za-z_])-?\d+(\.\d+)?(e[-+]?\d+)?", "N", text)


def counts_row(title, values, known):
    values = [value for value in values if value != "-"]
    counts = collections.Counter(values)
    return f"| {title} | " + " | ".join(str(sum(counts[key] for key in keys)) for keys in known) + f" | {len(values)} |"


def variant_cell(statuses):
    """How the folded variants of an operator's cases compare with the plain ones."""
    counts = collections.Counter(status.results[column] for status in statuses for column in ("folded", "half") if status.results["cpu"] in ("right", "given"))
    counts.pop("-", None)
    others = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()) if what != "same")
    return "all same" if counts and not others else ", ".join(filter(None, [f"{counts['same']} same" if counts["same"] else "", others])) or "–"


def column_cell(statuses, column):
    counts = collections.Counter(status.results[column] for status in statuses)
    if set(counts) == {"-"}:
        return "–"
    extra = ", ".join(f"{counts[what]} {what}" for what in ("wrong", "crashed", "missing") if counts[what])
    given = f"{counts['given']} with values given" if counts["given"] else ""
    notes = ", ".join(filter(None, [given, extra]))
    return f"{counts['right'] + counts['given']} of {len(statuses)}" + (f" ({notes})" if notes else "")


def operator_rows(groups):
    for operator in sorted(groups):
        statuses = groups[operator]
        reasons = collections.Counter(refusal_kind(status.reason) for status in statuses if status.results["cpu"] == "refused")
        refused = "; ".join(f"{count} {kind}" for kind, count in sorted(reasons.items()))
        yield f"| {operator} | {column_cell(statuses, 'cpu')} | {column_cell(statuses, 'cuda')} | {variant_cell(statuses)} | {refused.replace('|', chr(92) + '|')} |"


def markdown(data, statuses):
    """The page; `data` is the content of cases.json, `statuses` the record by case name."""
    counted = [case for case in data["cases"] if not case.get("left_out")]
    left_out = collections.Counter(case["left_out"] for case in data["cases"] if case.get("left_out"))
    groups = collections.defaultdict(list)
    for case in counted:
        if case["name"] in statuses:
            groups[case["operator"]].append(statuses[case["name"]])
    known = (("right",), ("given",), ("refused",), ("wrong", "missing"), ("crashed",))
    summary = [counts_row(title, [status.results[column] for status in statuses.values()], known)
               for title, column in (("cpu", "cpu"), ("H200 (`scripts/gpu_test.sh`)", "cuda"))]
    laws = sum(any("law" in output for output in case["outputs"]) for case in counted)
    text = INTRODUCTION.format(onnx=data["onnx"], total=len(data["cases"]), counted=len(counted), summary="\n".join(summary), laws=f"{laws} cases", absolute=sum(case["atol"] > 1e-7 for case in counted),
                               left_out=", ".join(f"{count} {kind}" for kind, count in sorted(left_out.items())))
    kinds = collections.Counter(refusal_kind(status.reason) for status in statuses.values() if status.results["cpu"] == "refused")
    lines = [text, "## Kinds of refusal on the cpu target", "", "| kind | cases |", "|---|---|"]
    lines += [f"| {kind.replace('|', chr(92) + '|')} | {count} |" for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))]
    lines += ["", "## Per operator", "", "Cases that the package expands from an operator's function body stand with the operator.", "",
              "| operator | cpu right | H200 right | variants, bits | refused |", "|---|---|---|---|---|"]
    return "\n".join(lines + list(operator_rows(groups))) + "\n"
