"""LSTM, GRU and RNN against onnxruntime: directions, lengths, states, activations, layouts."""
import numpy as np
import onnx
import pytest

import harness

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUT = 7, 3, 5


def f(seed, *shape):
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(np.float32)


def run(ogc, folder, op, hidden=6, directions=1, bias=True, lengths=None, states=False, peepholes=False, constant=True, dtype=np.float32, tolerance=2e-5, **attributes):
    columns = GATES[op] * hidden
    inputs = [f(0, STEPS, BATCH, INPUT), f(1, directions, columns, INPUT), f(2, directions, columns, hidden),
              f(3, directions, 2 * columns) if bias else None, None if lengths is None else np.array(lengths, np.int32),
              f(4, directions, BATCH, hidden) if states else None]
    if op == "LSTM":
        inputs += [f(5, directions, BATCH, hidden) if states else None, f(6, directions, 3 * hidden) if peepholes else None]
    inputs = [x if x is None or x.dtype == np.int32 else x.astype(dtype) for x in inputs]
    attributes["hidden_size"] = hidden
    if directions == 2:
        attributes["direction"] = "bidirectional"
    model, fed = harness.single_node(op, inputs, attributes, 3 if op == "LSTM" else 2, [1, 2, 3, 7] if constant else [])
    onnx.save(model, folder / "m.onnx")
    bundle = ogc.compile(folder / "m.onnx", folder / "m.ogc")
    harness.check_outputs(ogc.run(bundle, fed), harness.reference(model, fed), tolerance)
    return bundle


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("options", [
    {}, {"directions": 2}, {"direction": "reverse"}, {"bias": False}, {"lengths": [7, 2, 4]}, {"lengths": [1, 7, 3], "directions": 2, "states": True},
    {"lengths": [3, 5, 7], "direction": "reverse"}, {"states": True}, {"clip": 0.3}, {"constant": False}, {"hidden": 80},
], ids=str)
def test_layer(ogc, tmp_path, op, options):
    run(ogc, tmp_path, op, **options)


@pytest.mark.parametrize("options", [{"linear_before_reset": 1}, {"linear_before_reset": 1, "bias": False}, {"linear_before_reset": 1, "directions": 2, "hidden": 70}], ids=str)
def test_gru_linear_before_reset(ogc, tmp_path, options):
    run(ogc, tmp_path, "GRU", **options)


@pytest.mark.parametrize("options", [{"peepholes": True}, {"peepholes": True, "directions": 2, "states": True}, {"peepholes": True, "input_forget": 1}], ids=str)
def test_lstm_peepholes(ogc, tmp_path, options):
    run(ogc, tmp_path, "LSTM", **options)


@pytest.mark.parametrize("name, parameters", [
    ("Relu", {}), ("Affine", {"activation_alpha": [0.8], "activation_beta": [0.1]}), ("LeakyRelu", {"activation_alpha": [0.3]}),
    ("ThresholdedRelu", {"activation_alpha": [0.1]}), ("ScaledTanh", {"activation_alpha": [0.9], "activation_beta": [0.7]}),
    ("HardSigmoid", {"activation_alpha": [0.3], "activation_beta": [0.4]}), ("Elu", {"activation_alpha": [0.6]}), ("Softsign", {}), ("Softplus", {}), ("Sigmoid", {})])
def test_activations(ogc, tmp_path, name, parameters):
    run(ogc, tmp_path, "RNN", activations=[name], **parameters)


def test_activations_of_two_directions(ogc, tmp_path):
    run(ogc, tmp_path, "RNN", directions=2, activations=["Relu", "LeakyRelu"], activation_alpha=[0.2])


def test_batch_first(ogc, tmp_path):
    """Layout 1 is layout 0 with batch and time exchanged (onnxruntime has only the latter)."""
    for op, gates in GATES.items():
        hidden = 6
        x, w, r, h = f(0, BATCH, STEPS, INPUT), f(1, 2, gates * hidden, INPUT), f(2, 2, gates * hidden, hidden), f(4, BATCH, 2, hidden)
        attributes = {"hidden_size": hidden, "direction": "bidirectional"}
        outputs = 3 if op == "LSTM" else 2
        model, fed = harness.single_node(op, [x, w, r, None, None, h], {**attributes, "layout": 1}, outputs, [1, 2])
        onnx.save(model, tmp_path / "m.onnx")
        actual = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)
        other, fed = harness.single_node(op, [x.swapaxes(0, 1).copy(), w, r, None, None, h.swapaxes(0, 1).copy()], attributes, outputs, [1, 2])
        expected = harness.reference(other, fed)
        np.testing.assert_allclose(actual["y0"], expected["y0"].transpose(2, 0, 1, 3), rtol=1e-4, atol=1e-5)
        for name in list(expected)[1:]:
            np.testing.assert_allclose(actual[name], expected[name].swapaxes(0, 1), rtol=1e-4, atol=1e-5)


def test_few_nodes(ogc, tmp_path):
    """The product with all inputs and the recurrence: the number of steps does not show."""
    bundle = run(ogc, tmp_path, "LSTM", hidden=32, directions=2)
    assert ogc.inspect(bundle)["graphs"][0]["nodes"]["total"] <= 3


def test_unknown_activation(ogc, tmp_path):
    with pytest.raises(harness.OgcError) as error:
        run(ogc, tmp_path, "RNN", activations=["Swish"])
    assert "RNN node 'the_RNN'" in error.value.message and "activation 'swish' is not known" in error.value.message
