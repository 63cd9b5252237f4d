"""Quantized models and language models of the shared folder: caches that grow from empty, caches of fixed size, quantized weights."""
import os

import numpy as np
import pytest

import harness

TARGETS = "sm_90,cpu"
pytestmark = pytest.mark.model


def test_quantized_mobilenet(ogc, bundles):
    """QuantizeLinear and DequantizeLinear around every operator: each value is exactly that of onnxruntime, or one step of its scale away."""
    bundle = bundles.get("mobilenet_v2_qdq", target=TARGETS)
    path = harness.shared_model("mobilenet_v2_qdq")
    for seed in range(3):
        inputs = harness.model_inputs(path, seed=seed)
        harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 1e-3)


@pytest.mark.parametrize("past, length", [(0, 1), (0, 5), (1, 1), (8, 1), (31, 2)])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_growing_cache(ogc, bundles, past, length, precision):
    """Keys and values are appended to the past, which is empty at first."""
    path, total = harness.shared_model("llama_tiny_gqa"), past + length
    caches = {name: (1, 2, past, 16) for name in ("k0", "v0", "k1", "v1")}
    sizes = {"input_ids": (1, length), "attention_mask": (1, total), **caches}
    shapes = ",".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in sizes.items())
    rng = np.random.default_rng(total)
    inputs = {"input_ids": rng.integers(0, 256, (1, length)), "attention_mask": np.ones((1, total), np.int64),
              **{name: rng.standard_normal(shape).astype(np.float32) for name, shape in caches.items()}}
    bundle = bundles.get("llama_tiny_gqa", shapes, target=TARGETS, precision=precision)
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 1e-5 if precision == "fp32" else 2e-2)


@pytest.mark.skipif(not os.environ.get("OGC_LARGE_MODELS"), reason="6 GB of weights, 10 GB of memory and 3 minutes: set OGC_LARGE_MODELS=1")
def test_decode_step(ogc, bundles):
    """One step of a 1B model in fp16: position 300 of 512, whose rotation angles must not be rounded to 16 bits."""
    path, position = harness.shared_model("llama1b_decode"), 300
    rng = np.random.default_rng(0)
    cache = (16, 1, 8, 512, 64)
    inputs = {"ids": np.array([[77]]), "pos": np.array([position]),
              "mask": np.where(np.arange(512) <= position, 0, -1e4).astype(np.float32).reshape(1, 1, 1, 512),
              "kc": rng.standard_normal(cache).astype(np.float32), "vc": rng.standard_normal(cache).astype(np.float32)}
    bundle = bundles.get("llama1b_decode", target=TARGETS, precision="fp16")
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 2e-2)
