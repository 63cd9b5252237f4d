"""The models that the onnx package ships without weights ("light": every weight is a ConstantOfShape), as they are and with random weights."""
import numpy as np
import pytest

import harness

FOLDER = harness.LIGHT_FOLDER
MODELS = sorted(path.stem for path in FOLDER.glob("*.onnx"))
RANDOM = harness.LIGHT_MODELS


def test_the_package_has_them():
    assert len(MODELS) >= 9 and set(RANDOM) <= set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_as_shipped(ogc, tmp_path, name):
    path = FOLDER / f"{name}.onnx"
    inputs = harness.model_inputs(path)
    bundle = ogc.compile(path, tmp_path / "m.ogc")
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 1e-5)


@pytest.mark.parametrize("name", RANDOM)
def test_random_weights(ogc, tmp_path, name):
    path = harness.light_model(name, tmp_path)
    inputs = harness.model_inputs(path)
    expected = harness.reference(path, inputs)
    assert all(np.isfinite(value).all() and value.std() > 0 for value in expected.values())
    bundle = ogc.compile(path, tmp_path / "m.ogc")
    harness.check_outputs(ogc.run(bundle, inputs), expected, 1e-5)
