"""Quantized models and language models of the shared folder: caches that grow from empty, caches of fixed size, quantized weights."""
import os

import pytest

import harness
import model_calls

TARGETS = "sm_90,cpu"
pytestmark = pytest.mark.model


def test_quantized_mobilenet(ogc, bundles):
    """QuantizeLinear and DequantizeLinear around every operator: each value is exactly that of onnxruntime, or one step of its scale away."""
    bundle = bundles.get("mobilenet_v2_qdq", target=TARGETS)
    path = harness.shared_model("mobilenet_v2_qdq")
    for seed in range(3):
        inputs = harness.model_inputs(path, seed=seed)
        harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 1e-3)


@pytest.mark.parametrize("past, length", model_calls.GROWING)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_growing_cache(ogc, bundles, past, length, precision):
    """Keys and values are appended to the past, which is empty at first."""
    inputs = model_calls.growing_cache(past, length)
    bundle = bundles.get("llama_tiny_gqa", model_calls.shapes(inputs), target=TARGETS, precision=precision)
    expected = harness.reference(harness.shared_model("llama_tiny_gqa"), inputs)
    harness.check_outputs(ogc.run(bundle, inputs), expected, 1e-5 if precision == "fp32" else 2e-2)


@pytest.mark.skipif(not os.environ.get("OGC_LARGE_MODELS"), reason="6 GB of weights, 10 GB of memory and 3 minutes: set OGC_LARGE_MODELS=1")
def test_decode_step(ogc, bundles):
    """One step of a 1B model in fp16."""
    inputs = model_calls.decode_step()
    bundle = bundles.get("llama1b_decode", target=TARGETS, precision="fp16")
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(harness.shared_model("llama1b_decode"), inputs), 2e-2)
