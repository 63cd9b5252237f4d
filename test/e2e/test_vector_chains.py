"""Squeeze and excitation, pooled heads and small perceptrons: products and sums of single vectors as one kernel, and convolutions that multiply their input by
channel factors themselves. Both targets are compiled, cpu runs."""
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT
TOLERANCE = {"fp32": 2e-5, "fp16": 5e-3, "bf16": 3e-2}


class Network:
    """Nodes and weights of a model under construction; every method returns the name of its output."""

    def __init__(self, seed=5):
        self.nodes, self.weights, self.rng = [], {}, np.random.default_rng(seed)

    def node(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op} {name}", **attributes))
        return name

    def weight(self, *shape, scale=1.0):
        name = f"w{len(self.weights)}"
        fan_in = int(np.prod(shape[1:])) or 1
        self.weights[name] = (self.rng.standard_normal(shape) * scale / np.sqrt(fan_in)).astype(np.float32)
        return name

    def constant(self, value):
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def conv(self, x, inputs, outputs, kernel=1, **attributes):
        return self.node("Conv", x, self.weight(outputs, inputs, kernel, kernel), self.weight(outputs, scale=0.3), pads=[kernel // 2] * 4, **attributes)

    def linear(self, x, inputs, outputs):
        return self.node("Gemm", x, self.weight(outputs, inputs), self.weight(outputs, scale=0.3), transB=1)

    def silu(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def squeeze_excite(self, x, channels, squeezed, act="Relu", gate="HardSigmoid", mean="GlobalAveragePool"):
        if mean == "ReduceMean":
            pooled = self.node("ReduceMean", x, self.constant(np.array([2, 3])), keepdims=1)
        else:
            pooled = self.node(mean, x)
        hidden = self.conv(pooled, channels, squeezed)
        hidden = self.silu(hidden) if act == "silu" else self.node(act, hidden)
        return self.node(gate, self.conv(hidden, squeezed, channels))

    def check(self, ogc, tmp_path, inputs, result, shape, precision="fp32", options=()):
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        model = harness.make_model(self.nodes, {key: (F32, value) for key, value in inputs.items()}, {"y": (F32, shape)}, self.weights)
        onnx.save(model, tmp_path / "m.onnx")
        fed = {key: self.rng.standard_normal(value).astype(np.float32) for key, value in inputs.items()}
        ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu,sm_90", "--precision", precision, *options)
        harness.check_outputs(ogc.run(tmp_path / "m.ogc", fed), harness.reference(model, fed), TOLERANCE[precision])
        return kernels(ogc, tmp_path / "m.ogc")


def kernels(ogc, bundle):
    """The schedule of each node: k3_vector_chain is vector_chain."""
    return re.findall(r"node \d+: kernel k\d+_(\w+)", ogc("inspect", bundle, "--nodes"))


# channels, squeezed channels, images, height and width
SHAPES = {"odd": (72, 24, 1, 14), "tiny": (6, 2, 1, 5), "prime": (13, 5, 2, 7), "two images": (72, 24, 2, 9), "large image": (16, 8, 1, 65), "wide": (960, 240, 1, 7)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", TOLERANCE)
def test_squeeze_excite(ogc, tmp_path, shape, precision):
    channels, squeezed, images, size = SHAPES[shape]
    net = Network()
    x = net.node("HardSwish", net.conv("x", 3, channels))
    gate = net.squeeze_excite(x, channels, squeezed)
    y = net.conv(net.node("Mul", gate, x), channels, 20)
    found = net.check(ogc, tmp_path, {"x": (images, 3, size, size)}, y, (images, 20, size, size), precision)
    assert found.count("vector_chain") == 1 and found.count("conv") == 2, found
    assert "row" not in found and found.count("pointwise") <= 2, found  # the image's and the result's layout


@pytest.mark.parametrize("gate", ["Sigmoid", "HardSigmoid"])
@pytest.mark.parametrize("act", ["silu", "Relu", "Tanh"])
@pytest.mark.parametrize("mean", ["GlobalAveragePool", "ReduceMean", "GlobalMaxPool"])
def test_forms(ogc, tmp_path, gate, act, mean):
    net = Network()
    x = net.silu(net.conv("x", 3, 40, kernel=3))
    scale = net.squeeze_excite(x, 40, 10, act, gate, mean)
    y = net.conv(net.node("Mul", x, scale), 40, 16, strides=[2, 2])
    found = net.check(ogc, tmp_path, {"x": (2, 3, 12, 10)}, y, (2, 16, 6, 5))
    assert found.count("vector_chain") == 1 and found.count("conv") == 2, found


def test_one_pixel(ogc, tmp_path):
    net = Network()
    x = net.node("Relu", net.conv("x", 3, 24))
    y = net.conv(net.node("Mul", net.squeeze_excite(x, 24, 6), x), 24, 8)
    net.check(ogc, tmp_path, {"x": (3, 3, 1, 1)}, y, (3, 8, 1, 1))


def test_scaled_image_with_other_readers(ogc, tmp_path):
    """The scaled image is a residual as well: it is stored, the vectors are one kernel all the same."""
    net = Network()
    x = net.node("Relu", net.conv("x", 3, 24))
    scaled = net.node("Mul", net.squeeze_excite(x, 24, 6), x)
    y = net.node("Add", net.conv(scaled, 24, 24), scaled)
    found = net.check(ogc, tmp_path, {"x": (1, 3, 8, 8)}, y, (1, 24, 8, 8))
    assert found.count("vector_chain") == 1 and found.count("conv") == 2, found


def test_pooled_by_mean_and_maximum(ogc, tmp_path):
    """Two sums of one image meet in the chain."""
    net = Network()
    x = net.node("Relu", net.conv("x", 3, 32))
    pooled = net.node("Add", net.node("GlobalAveragePool", x), net.node("GlobalMaxPool", x))
    gate = net.node("Sigmoid", net.conv(net.node("Relu", net.conv(pooled, 32, 12)), 12, 32))
    y = net.conv(net.node("Mul", gate, x), 32, 8)
    found = net.check(ogc, tmp_path, {"x": (2, 3, 9, 9)}, y, (2, 8, 9, 9), "fp16")
    assert found.count("vector_chain") == 1, found


@pytest.mark.parametrize("rows", [1, 5, 16])
def test_perceptron(ogc, tmp_path, rows):
    """Rows from outside, a value that two products later is read again, and two results."""
    net = Network()
    hidden = net.node("Tanh", net.linear("x", 37, 50))
    inner = net.node("Relu", net.linear(hidden, 50, 21))
    y = net.node("Add", net.linear(inner, 21, 50), hidden)
    found = net.check(ogc, tmp_path, {"x": (rows, 37)}, y, (rows, 50))
    assert found == ["vector_chain"], found


def test_head(ogc, tmp_path):
    net = Network()
    x = net.node("Relu", net.conv("x", 3, 48))
    pooled = net.node("Flatten", net.node("GlobalAveragePool", x))
    y = net.linear(net.node("HardSwish", net.linear(pooled, 48, 64)), 64, 10)
    found = net.check(ogc, tmp_path, {"x": (1, 3, 7, 7)}, y, (1, 10), "fp16")
    assert found.count("vector_chain") == 1, found


def test_switched_off(ogc, tmp_path):
    net = Network()
    x = net.node("Relu", net.conv("x", 3, 24))
    y = net.conv(net.node("Mul", net.squeeze_excite(x, 24, 6), x), 24, 8)
    found = net.check(ogc, tmp_path, {"x": (1, 3, 8, 8)}, y, (1, 8, 8, 8), options=["--disable", "vector-chains,absorb-scales"])
    assert found.count("conv") == 4 and found.count("vector_chain") == 1, found  # the mean by itself
