#!/usr/bin/env python3
"""Proves plan and edges on a GPU: replays give the bits that one chain of nodes gives, and states advance there as on the cpu.

usage: OGC_BUILD_DIR=... OGC_SHARED=... plan_test.py [--models a,b] [--replays 2000]     as scripts/gpu_test.sh sets them up
"""
import argparse
import concurrent.futures
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/e2e"))

import harness  # noqa: E402
import test_state  # noqa: E402

MODELS = "resnet50,mobilenet_v3_large,vit_b_16,bert_base,gpt2"
PRECISION, TOLERANCE = "fp16", 2e-2


def outputs_of(ogc, bundle, inputs):
    return {name: array.tobytes() for name, array in ogc.run(bundle, inputs, device="cuda:0").items()}


def check_model(ogc, folder, model, replays):
    """Compares the default graph, the chain, and full edges only."""
    inputs = harness.model_inputs(harness.shared_model(model))
    bundles = {way: folder / f"{model}-{way}.ogc" for way in ("default", "serial", "full")}
    expected = outputs_of(ogc, bundles["serial"], inputs)
    same = {way: outputs_of(ogc, bundles[way], inputs) == expected for way in ("default", "full")}
    start = time.time()
    ogc.verify(bundles["default"], "--replays", replays, "--poison", "--tolerance", TOLERANCE, device="cuda:0")
    seconds = time.time() - start
    times = {way: ogc.bench(path, device="cuda:0", iterations=200)["device_us"]["p50"] for way, path in bundles.items()}
    (facts,) = ogc.inspect(bundles["default"])["graphs"]
    print(f"{model}: same bits as --serial: {same['default']}, full edges too: {same['full']}; {replays} replays with equal bits in {seconds:.1f} s; "
          f"device us " + ", ".join(f"{way} {us:.0f}" for way, us in times.items()) +
          f"; edges {facts['edges']}, scratch {facts['arena']['peak_bytes']} of {facts['arena']['bound_bytes']}", flush=True)
    return all(same.values())


def check_states(ogc, folder):
    """64 steps of the decoder of the end-to-end tests equal onnxruntime step by step."""
    import onnx

    model, states, steps = test_state.decoder(), test_state.CACHES + ["pos"], 64
    onnx.save(model, folder / "decoder.onnx")
    ogc("compile", folder / "decoder.onnx", "-o", folder / "decoder.ogc", "--target", "sm_90,cpu", *test_state.state_options(states))
    x = np.random.default_rng(5).standard_normal((steps, 1, 1, test_state.HEADS * test_state.DIM)).astype(np.float32)
    expected = test_state.expected_steps(model, steps, {"x": x}, states)
    np.save(folder / "x.npy", x)
    ogc("run", folder / "decoder.ogc", "--device", "cuda:0", "--steps", steps, "--output-dir", folder / "out", "--input", f"x={folder / 'x.npy'}")
    errors = {name: max(harness.relative_error(a, e) for a, e in zip(np.load(folder / "out" / f"{name}.npy"), expected[name])) for name in expected}
    positions = np.load(folder / "out" / "pos_next.npy").ravel().tolist()
    right = max(errors.values()) <= 1e-4 and positions == list(range(1, steps + 1))
    print(f"states: {steps} steps, largest relative error {max(errors.values()):.1e}, position advanced once a run: {positions[-3:]}: "
          f"{'right' if right else 'WRONG'}", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--replays", type=int, default=2000)
    options = parser.parse_args()
    ogc, folder, models = harness.Ogc(), Path(tempfile.mkdtemp()), options.models.split(",")
    results = {}

    def guarded(name, check):
        try:
            results[name] = check()
        except Exception as error:  # one failure must not hide the other results
            results[name] = False
            print(f"{name}: FAILED {str(error)[-1500:]}", flush=True)

    def compile_model(model, way, flags):
        ogc("compile", harness.shared_model(model), "-o", folder / f"{model}-{way}.ogc", "--target", "sm_90,cpu", "--precision", PRECISION, *flags)

    guarded("states", lambda: check_states(ogc, folder))
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 4) // 4)) as pool:
        list(pool.map(harness.shared_model, models))
        # The default first, so that the chain finds its kernels in the cache.
        for ways in ([("default", [])], [("serial", ["--serial"]), ("full", ["--no-pdl"])]):
            list(pool.map(lambda job: guarded(f"compile {job[0]} {job[1][0]}", lambda: compile_model(job[0], *job[1]) or True),
                          [(model, way) for way in ways for model in models]))
    for model in models:
        guarded(model, lambda: check_model(ogc, folder, model, options.replays))
    failed = [name for name, right in results.items() if not right]
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
