#!/usr/bin/env python3
"""One bundle with 20 graph IDs of bert_base_dyn on a device: every ID and some padded calls against onnxruntime, then random calls.

Every ID runs in an order of its own, chosen by the shapes of its inputs; calls with a row fewer than a graph run in it filled up. Then random IDs are called
in one context whose pool holds four executable graphs; each must give the bits that its graph gives alone, and these are compared with the cpu target. With --one an ID is also compiled alone, so that times of compilation and sizes of weights can be compared.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/e2e"))

import harness  # noqa: E402

MODEL = "bert_base_dyn"
TOLERANCE = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 5e-2}
MOST_EXTRA_BYTES = 40e6


def architecture():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True, check=True)
        return "sm_" + done.stdout.split()[0].replace(".", "")
    except (OSError, subprocess.SubprocessError, IndexError):
        return "sm_90"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--target", help="targets to compile for; default: those that --device needs")
    parser.add_argument("--batches", default="1,2,4,8")
    parser.add_argument("--lengths", default="32,64,128,256,512")
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--pool", type=int, default=4, help="executable graphs that may exist during the random calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="what was not begun by then is left out, and said so")
    parser.add_argument("--costs", action="store_true", help="also measures loading, switching and rebinding")
    parser.add_argument("--one", action="store_true", help="also compiles the largest ID alone, and compares")
    return parser.parse_args()


class Proof:
    """What was found: `failures` are reasons in words."""

    def __init__(self, options):
        self.options, self.start, self.failures, self.left_out = options, time.monotonic(), [], []
        self.ogc, self.threads = harness.Ogc(), os.cpu_count() or 1
        self.work = Path(os.environ.get("OGC_GPU_WORK", "/tmp/ogc-shapes"))
        self.work.mkdir(parents=True, exist_ok=True)
        self.path = harness.shared_model(MODEL)
        self.batches, self.lengths = ([int(size) for size in text.split(",")] for text in (options.batches, options.lengths))
        self.ids = list(itertools.product(self.batches, self.lengths))
        self.bundle = self.work / "shapes.ogc"
        self.target = options.target or ("cpu" if options.device == "cpu" else f"{architecture()},cpu")

    def say(self, text):
        print(f"{time.monotonic() - self.start:6.1f} s  {text}", flush=True)

    def require(self, condition, reason):
        if not condition:
            self.failures.append(reason)
            print(f"FAIL {reason}", flush=True)

    def step(self, what, action):
        """Runs a part unless the time is over; whatever goes wrong is noted, and the other parts go on."""
        if time.monotonic() - self.start > self.options.seconds:
            self.left_out.append(what)
            return
        try:
            action()
        except Exception as error:
            self.require(False, f"{what}: {str(error)[-1500:]}")

    def compiled(self, bundle, shapes):
        """Compiles and returns the seconds of each phase."""
        done = subprocess.run([self.ogc.program, "compile", self.path, "-o", bundle, "--target", self.target, "--precision", self.options.precision,
                               "--shapes", shapes, "--timing"], capture_output=True, text=True, timeout=900)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return {phase: float(seconds) for phase, seconds in re.findall(r"^(\w+) +([0-9.]+) s$", done.stderr, re.MULTILINE)}

    def compile(self):
        seconds = self.compiled(self.bundle, f"batch={self.options.batches} seq={self.options.lengths}")
        facts = self.ogc.inspect(self.bundle)
        self.weights, extra = facts["weights_bytes"], facts["file_bytes"] - facts["weights_bytes"]
        largest, scratch = max(graph["arena"]["bound_bytes"] for graph in facts["graphs"]), facts["sections"]["scratch_bytes"]
        self.say(f"compiled {len(facts['graphs'])} graphs in {seconds['total']:.1f} s ({seconds['codegen']:.1f} s of code): {facts['kernels']} kernels, "
                 f"{facts['file_bytes'] / 1e6:.1f} MB, {extra / 1e6:.1f} MB beside the weights; scratch {scratch} of a bound of {largest} bytes")
        self.require(len(facts["graphs"]) == len(self.ids), f"{len(facts['graphs'])} graphs, expected {len(self.ids)}")
        self.require(extra <= MOST_EXTRA_BYTES, "the bundle has more than 40 MB beside its weights")
        self.require(scratch <= 1.02 * largest, "scratch is more than 1.02 times the bound of the largest ID")

    def planning_seconds(self, shapes):
        """Processor time of everything before code generation, which is one thread: other programs do not lengthen it much."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.ogc("compile", self.path, "--target", self.target, "--precision", self.options.precision, "--shapes", shapes, "--stop-after", "plan",
                 "-o", self.work / "plan.mlir")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def compile_one(self):
        """One ID alone has the same weights; planning all of them may take four times as long."""
        one, largest = self.work / "one.ogc", f"batch={self.batches[-1]} seq={self.lengths[-1]}"
        self.compiled(one, largest)
        seconds = [min(self.planning_seconds(shapes) for _ in range(2)) for shapes in (largest, f"batch={self.options.batches} seq={self.options.lengths}")]
        weights = self.ogc.inspect(one)["weights_bytes"]
        self.say(f"processor time before code generation: one ID {seconds[0]:.1f} s, all {seconds[1]:.1f} s ({seconds[1] / seconds[0]:.1f} times); "
                 f"weights {weights} and {self.weights} bytes")
        self.require(seconds[1] <= 4 * seconds[0], "planning takes more than four times that of one ID")
        # Beside the weights of the model there are small constants that depend on the shape.
        self.require(self.weights <= 1.001 * weights, "weights are not there once")

    def prepare(self):
        """Inputs of all calls, and what onnxruntime gives for them."""
        import onnxruntime

        # A call with a row fewer than a graph has runs in that graph.
        self.calls = self.ids + [(batch - 1, length) for batch, length in self.ids if batch > 2 and length == self.lengths[0]]
        random.Random(self.options.seed).shuffle(self.calls)
        self.inputs = {call: harness.model_inputs(self.path, dict(zip(("batch", "seq"), call)), seed=number) for number, call in enumerate(self.calls)}
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.log_severity_level = self.threads, 3
        session = onnxruntime.InferenceSession(str(self.path), settings, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        self.expected = {call: dict(zip(names, session.run(names, self.inputs[call]))) for call in self.calls}
        self.say("references of onnxruntime are ready")

    def error_of(self, call):
        actual = self.ogc.run(self.bundle, self.inputs[call], device=self.options.device)
        return max(harness.relative_error(actual[name], value) for name, value in self.expected[call].items())

    def compare(self):
        with concurrent.futures.ThreadPoolExecutor(min(8, self.threads)) as pool:
            errors = dict(zip(self.calls, pool.map(self.error_of, self.calls)))
        for (batch, length), error in errors.items():
            self.require(error <= TOLERANCE[self.options.precision], f"batch {batch}, seq {length}: relative error {error:.2e}")
        self.say(f"{len(errors)} calls, {len(errors) - len(self.ids)} of them padded, against onnxruntime: largest relative error {max(errors.values()):.2e}")

    def call_randomly(self):
        seconds = max(1, self.options.seconds - (time.monotonic() - self.start))
        flags = ["--random-calls", self.options.calls, "--threads", self.threads, "--pool", self.options.pool, "--seconds", round(seconds)]
        output = self.ogc.verify(self.bundle, *flags, device=self.options.device)
        for line in output.splitlines():
            self.say(line)
        if f" {self.options.calls} random calls" not in output:
            self.left_out.append("the rest of the random calls")

    def measure(self):
        costs = json.loads(self.ogc("bench", self.bundle, "--load", "--device", self.options.device, "--json"))
        self.say("costs: " + json.dumps(costs))


def main():
    options = parse_options()
    proof = Proof(options)
    proof.say("weights are ready")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # Beside each other where there are cores enough for both.
        prepared = pool.submit(proof.prepare) if proof.threads > 4 else None
        proof.step("compilation", proof.compile)
        if options.one:
            proof.step("compilation of one ID", proof.compile_one)
        proof.step("references", prepared.result if prepared else proof.prepare)
    if not proof.failures:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            calls = pool.submit(proof.step, "random calls", proof.call_randomly)
            proof.step("comparison", proof.compare)
            calls.result()
        if options.costs:
            proof.step("costs", proof.measure)
    if proof.left_out:
        print(f"left out for lack of time: {', '.join(proof.left_out)}")
    print("passed" if not proof.failures and not proof.left_out else f"{len(proof.failures)} failed, {len(proof.left_out)} left out")
    return 1 if proof.failures or proof.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
