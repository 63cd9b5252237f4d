#!/usr/bin/env python3
"""Compares and times the models of the shared folder on a GPU; called by gpu_test.sh on a machine that has one.

For every model and precision: compiled here, right against onnxruntime on the CPU, 1,000 replays with the same bits (scratch poisoned before each),
one graph, time of a replay; then compute-sanitizer. Results go to gpu_results.md and gpu_results.json in --output.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test/e2e"), str(ROOT / "scripts")]

import gpu_calls  # noqa: E402
import harness  # noqa: E402
from gpu_calls import Case  # noqa: E402

# Largest relative L2 error of an output.
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "fp16": 2e-2, "bf16": 5e-2}
# A name behind "@" tells apart what is compiled of one file for different shapes.
SHAPES = {f"resnet50_dyn_bn@{batch}": (f"x={batch}x3x224x224", {"batch": batch}) for batch in (1, 4)}
MODELS = ["resnet50", "mobilenet_v3_large", "vit_b_16", "bert_base", "gpt2", *SHAPES]


class Session:
    def __init__(self, options, arch):
        self.options, self.arch, self.ogc = options, arch, harness.Ogc()
        self.work = Path(os.environ["OGC_BUILD_DIR"]) / "bundles"
        self.work.mkdir(parents=True, exist_ok=True)
        self.inputs, self.expected, self.ablation, self.refused, self.load, self.load_failures = {}, {}, [], "", [], []
        self.given, self.calls_expected, self.calls = {}, {}, []

    def bundle(self, case):
        return self.work / f"{case.model}-{case.precision}.ogc"

    def path(self, model):
        """The ONNX file: of the shared folder, or a light model of the onnx package, as it is (behind @) or with random weights."""
        name, _, variant = model.partition("@")
        if not name.startswith("light_"):
            return harness.shared_model(name)
        if variant == "shipped":
            return harness.LIGHT_FOLDER / f"{name}.onnx"
        path = self.work / f"{model}.onnx"
        return path if path.exists() else harness.light_model(model, self.work)

    def prepare(self, model):
        """Weights, inputs and the reference of a model."""
        path = self.path(model)
        self.inputs[model] = harness.model_inputs(path, SHAPES.get(model, ((), None))[1])
        self.expected[model] = harness.reference(path, self.inputs[model])

    def compile(self, case):
        start = datetime.datetime.now()
        try:
            self.ogc.compile(self.path(case.model), self.bundle(case), SHAPES.get(case.model, ((), None))[0],
                             target=f"{self.arch},cpu", precision=case.precision, **self.options.compile)
        except harness.OgcError as error:
            case.fail(f"compile: {error}")
        case.facts["compile_s"] = (datetime.datetime.now() - start).total_seconds()

    def check(self, case):
        """Values, replays, node counts and times."""
        bundle = self.bundle(case)
        (graph,) = self.ogc.inspect(bundle)["graphs"]
        case.facts["nodes"], case.facts["edges"] = graph["nodes"], graph["edges"]
        actual = self.ogc.run(bundle, self.inputs[case.model], device="cuda:0")
        errors = [harness.relative_error(actual[name], value) for name, value in self.expected[case.model].items()]
        case.facts["error"] = max(errors)
        if not case.facts["error"] <= TOLERANCE[case.precision]:
            case.fail(f"relative error {case.facts['error']:.2e}, allowed {TOLERANCE[case.precision]}")
        # The outputs of a model whose weights are all equal do not depend on its inputs.
        new_inputs = [] if case.model.endswith("@shipped") else ["--new-inputs"]
        self.ogc.verify(bundle, "--replays", self.options.replays, "--poison", *new_inputs, "--tolerance", TOLERANCE[case.precision], device="cuda:0")
        times = self.ogc.bench(bundle, device="cuda:0", iterations=self.options.iterations)
        case.facts.update({key: times[key] for key in ("device_us", "wall_us", "pipelined_us", "executable_nodes", "load_ms", "prepare_ms")
                           if key in times})

    def sanitize(self, case):
        """Runs once under compute-sanitizer's memory checker."""
        command = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9", self.ogc.program, "run", str(self.bundle(case)), "--device", "cuda:0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=480)
        case.facts["memcheck"] = "clean" if done.returncode == 0 else "errors"
        if done.returncode:
            case.fail("compute-sanitizer:\n" + (done.stdout + done.stderr)[-3000:])

    def guarded(self, step, case):
        """A step of a case; whatever goes wrong is noted, and the other cases go on."""
        try:
            step(case)
        except (harness.OgcError, AssertionError, subprocess.SubprocessError, OSError, KeyError, ValueError) as error:
            case.fail(str(error)[-3000:])


def refusal(session):
    """What a bundle for another architecture gives on this GPU: a line of text; the case fails unless ogc refuses it in one line with exit code 1."""
    other = "sm_80" if session.arch != "sm_80" else "sm_90"
    case = Case("light_squeezenet@shipped", "fp32")
    bundle = session.work / "other-architecture.ogc"
    session.ogc.compile(session.path(case.model), bundle, target=other)
    try:
        session.ogc.run(bundle, {}, device="cuda:0")
        case.fail(f"a bundle for {other} ran on {session.arch}")
    except harness.OgcError as error:
        if error.code != 1 or error.message.count("\n") != 1:
            case.fail(f"a bundle for {other}: {error}")
        return case, error.message.strip()
    return case, "not refused"


# Ways to compile that a table compares with the default, in fp16: what each lever gives.
VARIANTS = {"full edges": ["--no-pdl"], "one chain": ["--serial"], "products by cuBLASLt": ["--gemm", "cublaslt"], "rules without a table": ["--tuning", "none"],
            **{f"no {name}": ["--disable", name] for name in ("fold-batch-norm", "form-layer-norm", "form-gelu", "form-tensor-scatter", "form-attention", "propagate-layout", "narrow-panels", "pair-matmuls",
                                                              "merge-matmuls", "absorb-scales", "absorb-norms", "vector-chains", "fuse-epilogues", "place-concats", "place-slices", "update-in-place")}}


def compile_variant(session, model, flags):
    """The bundle of a variant, without weights (all together would fill the disk), or what ogc said instead."""
    bundle = session.work / ("variant-" + "".join(c if c.isalnum() else "_" for c in model + "".join(flags)) + ".ogc")
    try:
        session.ogc("compile", session.path(model), "-o", bundle, "--target", session.arch, "--precision", "fp16", "--weights", "none", *flags,
                    *([f"--shapes={SHAPES[model][0]}"] if model in SHAPES else []))
    except harness.OgcError as error:
        return str(error)
    return bundle


def time_variant(session, bundle):
    """The cell of a variant: its time and nodes, or what went wrong."""
    failed = "failed: {}".format
    if isinstance(bundle, str):
        return failed(bundle.strip().splitlines()[-1][:80])
    try:
        times = session.ogc.bench(bundle, device="cuda:0", iterations=session.options.iterations)
    except (harness.OgcError, KeyError, ValueError) as error:
        return failed(str(error).strip().splitlines()[-1][:80])
    return f"{times['device_us']['p50']:.0f} ({times.get('executable_nodes', '?')})"


def ablation(session, models):
    """Times of each variant; one row a model. Values are left to test/e2e/test_ablation.py. A model's variants are compiled side by side, then timed one
    after the other."""
    yield "| model, fp16 | default µs (nodes) | " + " | ".join(f"{name} µs (nodes)" for name in VARIANTS) + " |"
    yield "|---|---|" + "---|" * len(VARIANTS)
    for model in models:
        with concurrent.futures.ThreadPoolExecutor(2 * session.options.jobs) as pool:
            bundles = list(pool.map(lambda flags: compile_variant(session, model, flags), [[], *VARIANTS.values()]))
        cells = [time_variant(session, bundle) for bundle in bundles]
        yield f"| {model} | " + " | ".join(cells) + " |"


# One bundle of several graph IDs, for the costs of switching.
MANY_IDS = ("resnet50_dyn_bn", [f"b{batch}: x={batch}x3x224x224" for batch in (1, 2, 4, 8)])
LOAD_COLUMNS = [("first result ms", "first_result_ms", 0), ("open ms", "open_ms", 1), ("engine ms", "engine_ms", 1), ("context ms", "context_ms", 1),
                ("instantiate µs", "instantiate_us", 0), ("launch µs", "launch_us", 2), ("another in the pool µs", "switch_us", 2),
                ("update µs", "update_us", 0), ("update a node µs", "update_us_per_node", 2), ("rebind a node µs", "rebind_us_per_node", 2),
                ("nodes that use the input", "rebind_nodes", 0), ("weights MB", "weights_bytes", 1), ("arena MB", "arena_bytes", 1),
                ("exec MB", "exec_device_bytes", 2)]


def load_costs(session, models):
    """What loading, switching and rebinding cost, by `ogc bench --load`; one row a bundle."""
    yield "| bundle, fp16 | nodes | " + " | ".join(title for title, _, _ in LOAD_COLUMNS) + " |"
    yield "|---|---|" + "---|" * len(LOAD_COLUMNS)
    rows = [(model, session.bundle(Case(model, "fp16")), []) for model in models]
    many = session.work / "many-ids.ogc"
    try:
        session.ogc.compile(session.path(MANY_IDS[0]), many, MANY_IDS[1], target=session.arch, precision="fp16")
        rows += [(f"{MANY_IDS[0]}, {len(MANY_IDS[1])} IDs, {way}", many, ["--switch-by", way]) for way in ("parameters", "update")]
    except harness.OgcError as error:
        session.load_failures.append(f"many IDs: {error}")
    for name, bundle, options in rows:
        try:
            costs = session.ogc.bench(bundle, "--load", *options, device="cuda:0", iterations=session.options.iterations)
        except harness.OgcError as error:
            session.load_failures.append(f"{name}: {error}")
            continue
        if costs.get("switch_us", 0) - costs["launch_us"] > 5:
            session.load_failures.append(f"{name}: another graph in the pool costs {costs['switch_us'] - costs['launch_us']:.1f} us more, allowed 5")
        if costs.get("rebind_us_per_node", 0) > 3:
            session.load_failures.append(f"{name}: rebinding costs {costs['rebind_us_per_node']:.1f} us a node, allowed 3")
        cells = [f"{costs[key] / (1e6 if key.endswith('bytes') else 1):.{digits}f}" if key in costs else "–" for _, key, digits in LOAD_COLUMNS]
        yield f"| {name} | {costs['nodes']} | " + " | ".join(cells) + " |"


def table(cases):
    """Markdown of the results."""
    yield "| model | precision | nodes | edges (full, programmatic) | device µs p50 / p90 | wall µs p50 | error | replays | memcheck |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for case in cases:
        facts = case.facts
        if "device_us" not in facts:
            yield f"| {case.model} | {case.precision} | failed: {case.failures[0].splitlines()[0] if case.failures else ''} |" + " |" * 6
            continue
        yield (f"| {case.model} | {case.precision} | {facts['nodes']['total']} | {facts['edges']['full']}, {facts['edges']['programmatic']} | "
               f"{facts['device_us']['p50']:.0f} / {facts['device_us']['p90']:.0f} | {facts['wall_us']['p50']:.0f} | "
               f"{facts['error']:.1e} | "
               f"{'same bits' if not case.failures else 'see below'} | {facts.get('memcheck', 'not run')} |")


def write_report(session, cases, machine):
    good = sum(not case.failures for case in cases)
    lines = ["# Results on a GPU", "", "Written by `scripts/gpu_test.sh`; not edited by hand.", ""]
    lines += [f"- {key}: {value}" for key, value in machine.items()]
    lines += [f"- {session.options.replays} replays each, with scratch poisoned before each, compared bit by bit; errors are relative L2 errors against "
              "onnxruntime on the CPU; times are of one replay at batch 1, or at the batch behind @",
              f"- a bundle for another architecture: `{session.refused}`"]
    if cases:
        lines += ["", *table(cases), "", f"{good} of {len(cases)} cases right."]
    if session.calls:
        lines += ["", "## Other models, every call against onnxruntime", "", *gpu_calls.table(session.calls)]
    if session.ablation:
        lines += ["", "## What each lever gives", "", *session.ablation]
    if session.load:
        lines += ["", "## What loading, switching and rebinding cost", "", *session.load, "", *session.load_failures]
    for case in [*cases, *session.calls]:
        lines += ["", f"## {case.model} {case.precision} failed", "", "```", *case.failures, "```"] if case.failures else []
    output = Path(session.options.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{session.options.name}.md").write_text("\n".join(lines) + "\n")
    facts = [{"model": case.model, "precision": case.precision, "failures": case.failures, **case.facts} for case in cases]
    (output / f"{session.options.name}.json").write_text(json.dumps({"machine": machine, "cases": facts}, indent=1))


def report(session, cases, machine):
    """Writes the results and prints them; true when all are right."""
    write_report(session, cases, machine)
    print("\n".join([*table(cases), "", *gpu_calls.table(session.calls)]))
    done = [*cases, *session.calls]
    good, total = sum(not case.failures for case in done), len(done)
    print(f"{good} passed, {total - good} failed, 0 skipped")
    return good == total and not session.load_failures


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--precisions", default="fp32,tf32,fp16")
    parser.add_argument("--calls", default=",".join(gpu_calls.MODELS), help="models of which every call is compared, none of them timed in detail")
    parser.add_argument("--large", action="store_true", help="also the calls of models that need 10 GB of memory, in fp16")
    parser.add_argument("--replays", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--no-sanitizer", action="store_true")
    parser.add_argument("--ablation", default="", help="models of which variants in fp16 are compiled and timed")
    parser.add_argument("--load", action="store_true", help="also measure what loading, switching and rebinding cost (fp16)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 4) // 4), help="compilations at a time")
    parser.add_argument("--name", default="gpu_results", help="name of the files without ending")
    parser.add_argument("--output", default=ROOT / "docs", help="folder of gpu_results.md and gpu_results.json")
    parser.add_argument("--compile", default="", help="more options of ogc compile, as name=value,...")
    options = parser.parse_args()
    options.compile = dict(pair.split("=", 1) for pair in options.compile.split(",") if pair)
    return options


def main():
    options = parse_options()
    capability = harness.first_line("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    if capability == "unknown":
        sys.exit("error: no GPU found")
    session = Session(options, "sm_" + capability.replace(".", ""))
    commit = ROOT / "gpu/commit"
    machine = {"date": datetime.date.today().isoformat(), "commit": commit.read_text().strip() if commit.exists() else "unknown",
               "GPU, driver": harness.first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")}
    models, names = ([name for name in text.split(",") if name] for text in (options.models, options.calls))
    cases = session.cases = [Case(model, precision) for model in models for precision in options.precisions.split(",")]
    session.calls = list(gpu_calls.cases(session, names + gpu_calls.LARGE * options.large, options.precisions.split(","), TOLERANCE))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        prepared = [pool.submit(gpu_calls.prepare, session, name) for name in dict.fromkeys(calls.model for calls in reversed(session.calls))]
        list(pool.map(session.prepare, models))
        for future in prepared:
            future.result()
        print("weights and references are ready", flush=True)
        compiled = [pool.submit(session.guarded, gpu_calls.Calls.compile, calls) for calls in session.calls]
        list(pool.map(lambda case: session.guarded(session.compile, case), cases))
        for future in compiled:
            future.result()
    print("compiled", flush=True)
    refused, session.refused = refusal(session)
    if refused.failures:
        cases.append(refused)
    for calls in session.calls:
        if not calls.failures:
            session.guarded(gpu_calls.Calls.check, calls)
    for case in cases:
        if not case.failures:
            session.guarded(session.check, case)
            print(f"{case.model} {case.precision}: {case.facts.get('device_us', {}).get('p50', '-')} us", flush=True)
            write_report(session, cases, machine)  # what is known is not lost when time runs out
    if options.ablation:
        for row in ablation(session, options.ablation.split(",")):
            session.ablation.append(row)
            write_report(session, cases, machine)
        print("\n".join(session.ablation), flush=True)
    if options.load:
        session.load = list(load_costs(session, [case.model for case in cases if case.precision == "fp16" and not case.failures]))
        print("\n".join(session.load + session.load_failures), flush=True)
    write_report(session, cases, machine)
    if not options.no_sanitizer and shutil.which("compute-sanitizer"):
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda case: session.guarded(session.sanitize, case), [case for case in cases if "device_us" in case.facts]))
    return 0 if report(session, cases, machine) else 1


if __name__ == "__main__":
    sys.exit(main())
