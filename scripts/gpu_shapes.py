#!/usr/bin/env python3
"""One bundle with many graph IDs of bert_base_dyn on a device: every ID and some padded calls against onnxruntime, then random calls.

Every ID runs in an order of its own, chosen by the shapes of its inputs; calls with 3 and 5 rows run in larger graphs. Then random IDs are called in one
context; each must give the bits that its graph gives alone, and these are compared with the cpu target.
"""
import argparse
import concurrent.futures
import itertools
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/e2e"))

import harness  # noqa: E402

MODEL = "bert_base_dyn"
TOLERANCE = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 5e-2}


def architecture():
    done = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True, check=True)
    return "sm_" + done.stdout.split()[0].replace(".", "")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batches", default="1,2,4,8")
    parser.add_argument("--lengths", default="32,64,128,256,512")
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse_options()
    start = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - start:6.1f} s  {text}", flush=True)

    ogc, path = harness.Ogc(), harness.shared_model(MODEL)
    work = Path(os.environ.get("OGC_GPU_WORK", "/tmp/ogc-shapes"))
    work.mkdir(parents=True, exist_ok=True)
    bundle = work / "shapes.ogc"
    say("weights are ready")
    batches, lengths = ([int(size) for size in text.split(",")] for text in (options.batches, options.lengths))
    ids = list(itertools.product(batches, lengths))
    target = "cpu" if options.device == "cpu" else f"{architecture()},cpu"
    ogc.compile(path, bundle, f"batch={options.batches} seq={options.lengths}", target=target, precision=options.precision)
    facts = ogc.inspect(bundle)
    extra = facts["file_bytes"] - facts["weights_bytes"]
    largest = max(graph["arena"]["bound_bytes"] for graph in facts["graphs"])
    say(f"compiled {len(facts['graphs'])} graphs: {facts['kernels']} kernels, {facts['file_bytes'] / 1e6:.1f} MB, {extra / 1e6:.1f} MB beside the weights; "
        f"scratch {facts['sections']['scratch_bytes']} of a bound of {largest} bytes")
    failures = [] if extra <= 40e6 else ["the bundle has more than 40 MB beside its weights"]

    # A call with a row fewer than the largest batch runs padded.
    calls = ids + [(batch - 1, length) for batch, length in ids if batch > 2 and length == lengths[0]]
    random.Random(options.seed).shuffle(calls)
    inputs = {call: harness.model_inputs(path, dict(zip(("batch", "seq"), call)), seed=number) for number, call in enumerate(calls)}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        longest_first = sorted(calls, key=lambda call: -call[0] * call[1] * (call[1] + 1024))
        expected = dict(zip(longest_first, pool.map(lambda call: harness.reference(path, inputs[call]), longest_first)))
    say("references of onnxruntime are ready")
    worst = 0.0
    for call in calls:
        actual = ogc.run(bundle, inputs[call], device=options.device)
        error = max(harness.relative_error(actual[name], value) for name, value in expected[call].items())
        worst = max(worst, error)
        if not error <= TOLERANCE[options.precision]:
            failures.append(f"batch {call[0]}, seq {call[1]}: relative error {error:.2e}")
    say(f"{len(calls)} calls, {len(calls) - len(ids)} of them padded, against onnxruntime: largest relative error {worst:.2e}")
    try:
        say(ogc.verify(bundle, "--random-calls", options.calls, "--threads", os.cpu_count(), device=options.device).strip())
    except harness.OgcError as error:
        failures.append(str(error))
    for failure in failures:
        print(f"FAIL {failure}")
    print("passed" if not failures else f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
