#!/usr/bin/env python3
"""Proves plan and edges on a GPU: replays give the bits that one chain of nodes gives, and states advance there as on the cpu.

usage: OGC_BUILD_DIR=... OGC_SHARED=... plan_test.py [--seconds 60]     as scripts/gpu_env.sh sets them up
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
import test_cached_attention  # noqa: E402
import test_state  # noqa: E402

MODELS = "resnet50,mobilenet_v3_large,vit_b_16,bert_base,gpt2"
PRECISION, TOLERANCE = "fp16", 2e-2
WAYS = {"default": [], "serial": ["--serial"], "full": ["--no-pdl"]}


def outputs_of(ogc, bundle, inputs, device):
    return {name: array.tobytes() for name, array in ogc.run(bundle, inputs, device=device).items()}


def check_model(ogc, folder, model, options):
    """Compares the default graph with the chain and, with --full, with full edges only; times are measured with --times."""
    inputs = harness.model_inputs(harness.shared_model(model))
    bundles = {way: folder / f"{model}-{way}.ogc" for way in WAYS if way != "full" or options.full}
    outputs = {way: outputs_of(ogc, path, inputs, options.device) for way, path in bundles.items()}
    same = {way: found == outputs["serial"] for way, found in outputs.items() if way != "serial"}
    start = time.time()
    ogc.verify(bundles["default"], "--replays", options.replays, "--poison", "--tolerance", TOLERANCE, device=options.device)
    seconds = time.time() - start
    times = {way: ogc.bench(path, device=options.device, iterations=200)["device_us"]["p50"] for way, path in bundles.items()} if options.times else {}
    (facts,) = ogc.inspect(bundles["default"])["graphs"]
    print(f"{model}: same bits as --serial: {same['default']}" + (f", full edges too: {same['full']}" if options.full else "") +
          f"; {options.replays} replays with equal bits in {seconds:.1f} s" + "".join(f"; {way} {us:.0f} us" for way, us in times.items()) +
          f"; edges {facts['edges']}, scratch {facts['arena']['peak_bytes']} of {facts['arena']['bound_bytes']}", flush=True)
    return all(same.values())


def check_library(ogc, folder, model, options):
    """Products by cuBLASLt, whose workspaces lie in the arena among buffers that live on."""
    bundle = folder / f"{model}-library.ogc"
    ogc("compile", harness.shared_model(model), "-o", bundle, "--target", options.target, "--precision", PRECISION, "--gemm", "cublaslt")
    ogc.verify(bundle, "--replays", 200, "--poison", "--tolerance", TOLERANCE, device=options.device)
    (facts,) = ogc.inspect(bundle)["graphs"]
    print(f"{model} with products by cuBLASLt: 200 replays with equal bits, as the cpu target; {facts['nodes']['gemm']} products, "
          f"scratch {facts['arena']['peak_bytes']} of {facts['arena']['bound_bytes']}", flush=True)
    return facts["nodes"]["gemm"] > 0


def check_states(ogc, folder, options):
    """64 steps of the decoder of the end-to-end tests equal onnxruntime step by step."""
    import onnx

    model, states, steps = test_state.decoder(), test_state.CACHES + ["pos"], 64
    onnx.save(model, folder / "decoder.onnx")
    ogc("compile", folder / "decoder.onnx", "-o", folder / "decoder.ogc", "--target", options.target, *test_state.state_options(states))
    x = np.random.default_rng(5).standard_normal((steps, 1, 1, test_state.HEADS * test_state.DIM)).astype(np.float32)
    expected = test_state.expected_steps(model, steps, {"x": x}, states)
    np.save(folder / "x.npy", x)
    ogc("run", folder / "decoder.ogc", "--device", options.device, "--steps", steps, "--output-dir", folder / "out", "--input", f"x={folder / 'x.npy'}")
    errors = {name: max(harness.relative_error(a, e) for a, e in zip(np.load(folder / "out" / f"{name}.npy"), expected[name])) for name in expected}
    positions = np.load(folder / "out" / "pos_next.npy").ravel().tolist()
    right = max(errors.values()) <= 1e-4 and positions == list(range(1, steps + 1))
    print(f"states: {steps} steps, largest relative error {max(errors.values()):.1e}, position advanced once a run: {positions[-3:]}: "
          f"{'right' if right else 'WRONG'}", flush=True)
    return right


# Attention of (batch, heads, key heads, queries, keys, head size, size of values), shape of its mask or None, is causal: each form of the templates, with
# sizes that are no multiples of tiles.
ATTENTION = [((1, 4, 2, 50, 300, 64, 64), None, 0), ((2, 4, 4, 200, 200, 64, 64), (1, 4, 200, 200), 0), ((1, 4, 4, 300, 301, 40, 40), (300, 301), 0),
             ((2, 4, 4, 300, 300, 32, 48), (2, 1, 1, 300), 0), ((11, 12, 12, 64, 128, 64, 64), (11, 1, 1, 128), 0), ((12, 12, 12, 64, 130, 40, 40), None, 1)]


def attention_models():
    """Name and model of every form of attention: with rotation and caches, and alone."""
    for name, form in test_cached_attention.FORMS.items():
        yield f"cached attention, {name}", test_cached_attention.model(form)
    for (b, h, hk, s, t, d, dv), mask, causal in ATTENTION:
        shapes = [(b, h, s, d), (b, hk, t, d), (b, hk, t, dv), *([mask] if mask else [])]
        model, _ = harness.single_node("Attention", [np.zeros(shape, np.float32) for shape in shapes], {"is_causal": causal}, opset=23)
        yield f"attention of {b}x{h}x{s}x{d}, {t} keys, mask {mask}", model


def check_attention(ogc, folder, name, model, options):
    """16 bits on the device equal the cpu target, and themselves in each replay."""
    import onnx

    for precision in ("fp16", "bf16"):
        path = folder / f"{name}-{precision}"
        onnx.save(model, f"{path}.onnx")
        ogc("compile", f"{path}.onnx", "-o", f"{path}.ogc", "--target", options.target, "--precision", precision)
        ogc.verify(f"{path}.ogc", "--replays", 20, "--poison", device=options.device)
    return True


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--replays", type=int, default=2000)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--target", default="sm_90,cpu")
    parser.add_argument("--seconds", type=float, default=600, help="what was not begun by then is left out, and said so")
    parser.add_argument("--library", default="bert_base", help="the model that is also compiled with products by cuBLASLt")
    parser.add_argument("--full", action="store_true", help="also compares with full edges only")
    parser.add_argument("--times", action="store_true", help="also measures, one model after the other")
    return parser.parse_args()


def main():
    options = parse_options()
    ogc, folder, models, begin = harness.Ogc(), Path(tempfile.mkdtemp()), options.models.split(","), time.time()
    results, left_out = {}, []

    def guarded(name, check):
        if time.time() - begin > options.seconds:
            left_out.append(name)
            return
        try:
            results[name] = check()
        except Exception as error:  # one failure must not hide the other results
            results[name] = False
            print(f"{name}: FAILED {str(error)[-1500:]}", flush=True)

    def compile_model(model, way):
        ogc("compile", harness.shared_model(model), "-o", folder / f"{model}-{way}.ogc", "--target", options.target, "--precision", PRECISION, *WAYS[way])
        return True

    def check_all(model):
        """Each model as soon as its bundles are ready; the default first, so that the chain finds its kernels in the cache."""
        for way in WAYS:
            if way != "full" or options.full:
                guarded(f"compile {model} {way}", lambda: compile_model(model, way))
        guarded(model, lambda: check_model(ogc, folder, model, options))
        if model == options.library:
            guarded(f"{model} by cuBLASLt", lambda: check_library(ogc, folder, model, options))

    with concurrent.futures.ThreadPoolExecutor(1 if options.times else max(1, (os.cpu_count() or 4) // 3)) as pool:
        list(pool.map(check_all, models))
        list(pool.map(lambda case: guarded(case[0], lambda: check_attention(ogc, folder, *case, options)), attention_models()))
    guarded("states", lambda: check_states(ogc, folder, options))
    failed = [name for name, right in results.items() if not right]
    print(f"{time.time() - begin:.0f} s: {len(results) - len(failed)} passed, {len(failed)} failed {failed}, {len(left_out)} left out for lack of time {left_out}")
    return 1 if failed or left_out else 0


if __name__ == "__main__":
    sys.exit(main())
