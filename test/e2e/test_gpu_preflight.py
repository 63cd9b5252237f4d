"""The model that the scripts for a GPU try first compiles, and is right on the cpu target."""
import importlib.util

import onnx

import harness


def test_model(ogc, tmp_path):
    spec = importlib.util.spec_from_file_location("gpu_preflight", harness.ROOT / "scripts/gpu_preflight.py")
    preflight = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(preflight)
    onnx.save(preflight.model(), tmp_path / "m.onnx")
    inputs = harness.model_inputs(tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(tmp_path / "m.onnx", inputs), 1e-5)
