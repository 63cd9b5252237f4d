"""Results that lie where an input does. Extents are primes: no tile and no vector divides them, so that kernels meet the end of every dimension."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT
RNG = np.random.default_rng(11)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], name=f"{op} of {output}", **attributes)


def weights(*shape):
    return (RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def pointwise(n=101, m=67):
    """Element-wise kernels between scans, which are kernels of their own."""
    nodes = [node("CumSum", "x axis", "a"), node("Add", "a b", "c"), node("CumSum", "c axis", "d"), node("Mul", "d s", "e"), node("Sin", "e", "f"),
             node("CumSum", "f axis", "y")]
    return nodes, {"x": (n, m)}, (n, m), {"b": weights(n, m), "s": weights(n, m) / np.float32(n * m), "axis": np.array(1)}


def products(m=23, k=31, n=67):
    """The sum of a product and what another one gave (17, 23 and 31 rows are no multiples of any tile)."""
    nodes = [node("MatMul", "x v", "a"), node("Softmax", "a", "r"), node("MatMul", "x w", "p"), node("Add", "p r", "s"), node("Softmax", "s", "y")]
    return nodes, {"x": (m, k)}, (m, n), {"v": weights(k, n), "w": weights(k, n)}


def convolutions(group=1, c=13, h=11, w=7):
    nodes = [node("Conv", "x u", "a", pads=[1] * 4), node("Conv", "a v", "r", pads=[1] * 4), node("Conv", "a w", "p", pads=[1] * 4, group=group),
             node("Add", "p r", "s"), node("Conv", "s v", "y", pads=[1] * 4)]
    return nodes, {"x": (1, c, h, w)}, (1, c, h, w), {"u": weights(c, c, 3, 3), "v": weights(c, c, 3, 3), "w": weights(c, c // group, 3, 3)}


def attention(s=19, d=23):
    nodes = [node("MatMul", "x v", "a"), node("MatMul", "x u", "q"), node("MatMul", "x w", "r"), node("Transpose", "a", "t", perm=[0, 2, 1]), node("MatMul", "q t", "l"),
             node("Softmax", "l", "p"), node("MatMul", "p a", "o"), node("Add", "o r", "z"), node("Softmax", "z", "y")]
    return nodes, {"x": (1, s, d)}, (1, s, d), {"u": weights(d, d), "v": weights(d, d), "w": weights(d, d)}


GRAPHS = {"pointwise": pointwise(), "pointwise of one row": pointwise(1, 10007), "product of 17 rows": products(17), "product of 23 rows": products(),
          "product of 31 rows": products(31, 7, 53), "conv": convolutions(), "depthwise": convolutions(group=13), "attention": attention()}


@pytest.mark.parametrize("name", GRAPHS)
def test_prime_extents(ogc, tmp_path, name):
    nodes, inputs, shape, constants = GRAPHS[name]
    model = harness.make_model(nodes, {key: (F32, value) for key, value in inputs.items()}, {"y": (F32, shape)}, constants)
    onnx.save(model, tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc", target="cpu,sm_90")
    fed = {key: RNG.standard_normal(value).astype(np.float32) for key, value in inputs.items()}
    harness.check_outputs(ogc.run(bundle, fed), harness.reference(model, fed), 2e-5)
    ogc.verify(bundle, "--random-orders", 200, "--poison")
    if name.startswith("pointwise"):  # what is updated in place is one buffer, not two
        assert ogc.inspect(bundle)["graphs"][0]["arena"]["peak_node"] == 2
    # Only element-wise results may take the bytes of an input: all other kernels compute some elements twice.
    assert ogc("inspect", bundle, "--ir").count("readwrite") == (2 if name.startswith("pointwise") else 0)
