"""The models that the onnx package ships without weights ("light": every weight is a ConstantOfShape), as they are and with random weights."""
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import harness

FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
MODELS = sorted(path.stem for path in FOLDER.glob("*.onnx"))
# The others have fully connected layers of hundreds of megabytes.
RANDOM = ["light_densenet121", "light_inception_v1", "light_inception_v2", "light_resnet50", "light_shufflenet", "light_squeezenet"]


def test_the_package_has_them():
    assert len(MODELS) >= 9 and set(RANDOM) <= set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_as_shipped(ogc, tmp_path, name):
    path = FOLDER / f"{name}.onnx"
    inputs = harness.model_inputs(path)
    bundle = ogc.compile(path, tmp_path / "m.ogc")
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 1e-5)


def with_random_weights(model):
    """The model with every ConstantOfShape replaced by random numbers that keep the size of the activations."""
    rng = np.random.default_rng(0)
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    variances = {node.input[4] for node in graph.node if node.op_type == "BatchNormalization"}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        name, shape = node.output[0], shapes[node.input[0]]
        values = rng.standard_normal(shape)
        if name in variances:
            values = 1 + 0.1 * np.abs(values)
        elif len(shape) > 1:
            values *= np.sqrt(2 / np.prod(shape[1:]))
        else:
            values = 0.5 + 0.1 * values
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    del graph.node[:]
    graph.node.extend(kept)
    return model


@pytest.mark.parametrize("name", RANDOM)
def test_random_weights(ogc, tmp_path, name):
    path = tmp_path / "m.onnx"
    model = with_random_weights(onnx.load(FOLDER / f"{name}.onnx"))
    model.ir_version = 4  # initializers need not be inputs
    onnx.save(model, path)
    inputs = harness.model_inputs(path)
    expected = harness.reference(path, inputs)
    assert all(np.isfinite(value).all() and value.std() > 0 for value in expected.values())
    bundle = ogc.compile(path, tmp_path / "m.ogc")
    harness.check_outputs(ogc.run(bundle, inputs), expected, 1e-5)
