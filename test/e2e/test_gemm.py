"""Matrix products handed to a library: gemm nodes in the graph, and their fallback kernels on the cpu target."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT
RNG = np.random.default_rng(11)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"{op} of {outputs}", **attributes)


def weights(**shapes):
    return {name: (RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for name, shape in shapes.items()}


def perceptron():
    """Bias and relu, bias and gelu, a transposed weight with a bias and a residual."""
    nodes = [node("MatMul", "x w1", "a"), node("Add", "b1 a", "c"), node("Relu", "c", "d"), node("MatMul", "d w2", "e"), node("Add", "e b2", "f"),
             node("Gelu", "f", "g", approximate="tanh"), node("Gemm", "g w3 b3", "h", transB=1), node("Add", "h x", "y")]
    return nodes, {"x": (F32, (6, 20))}, {"y": (F32, (6, 20))}, weights(w1=(20, 33), b1=(33,), w2=(33, 24), b2=(24,), w3=(20, 24), b3=(20,))


def batched():
    """Two computed operands with batches, and one of them transposed."""
    nodes = [node("MatMul", "x y", "s"), node("Relu", "s", "r"), node("Transpose", "x", "t", perm=[0, 1, 3, 2]), node("MatMul", "t r", "z")]
    return nodes, {"x": (F32, (2, 3, 5, 8)), "y": (F32, (2, 3, 8, 7))}, {"z": (F32, (2, 3, 8, 7))}, {}


def one_row():
    """A bias and a residual of equal shapes."""
    nodes = [node("MatMul", "x w", "a"), node("Add", "a b", "c"), node("Add", "c r", "y")]
    return nodes, {"x": (F32, (1, 12)), "r": (F32, (1, 9))}, {"y": (F32, (1, 9))}, weights(w=(12, 9), b=(9,))


def side_by_side():
    """Products in branches: their workspaces lie apart from each other and from what lives on."""
    nodes = [node("MatMul", "x w1", "a"), node("MatMul", "z w2", "b"), node("Softmax", "a", "c", axis=-1), node("Softmax", "b", "d", axis=-1),
             node("MatMul", "c w3", "e"), node("MatMul", "d w4", "f"), node("MatMul", "e f", "y")]
    return nodes, {"x": (F32, (16, 20)), "z": (F32, (16, 20))}, {"y": (F32, (16, 16))}, weights(w1=(20, 33), w2=(20, 33), w3=(33, 16), w4=(33, 16))


def not_the_library_s():
    """An activation after a residual, and a square."""
    nodes = [node("MatMul", "x w", "a"), node("Add", "a r", "b"), node("Relu", "b", "c"), node("MatMul", "c w", "d"), node("Mul", "d d", "y")]
    return nodes, {"x": (F32, (4, 9)), "r": (F32, (4, 9))}, {"y": (F32, (4, 9))}, weights(w=(9, 9))


# Graph -> gemm nodes in f32 and in 16 bits, where a result that goes to an f32 output has no bias or residual of its own type.
GRAPHS = {perceptron: (3, 2), batched: (2, 2), one_row: (1, 0), side_by_side: (5, 5), not_the_library_s: (0, 0)}


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16"])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_gemm_nodes(ogc, tmp_path, graph, precision):
    nodes, inputs, outputs, constants = graph()
    path = tmp_path / "m.onnx"
    onnx.save(harness.make_model(nodes, inputs, outputs, constants), path)
    bundle = ogc.compile(path, tmp_path / "m.ogc", precision=precision, gemm="cublaslt")
    (facts,) = ogc.inspect(bundle)["graphs"]
    assert facts["nodes"]["gemm"] == GRAPHS[graph][precision in ("fp16", "bf16")]
    values = harness.model_inputs(path)
    tolerance = {"fp32": 1e-5, "tf32": 5e-3, "fp16": 5e-3, "bf16": 3e-2}[precision]
    harness.check_outputs(ogc.run(bundle, values), harness.reference(path, values), tolerance)
    ogc.verify(bundle, "--random-orders", 10, "--poison")


def test_own_products_by_default(ogc, tmp_path):
    nodes, inputs, outputs, constants = perceptron()
    onnx.save(harness.make_model(nodes, inputs, outputs, constants), tmp_path / "m.onnx")
    (facts,) = ogc.inspect(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"))["graphs"]
    assert facts["nodes"]["gemm"] == 0


def test_edges_of_gemm_nodes_are_full(ogc, tmp_path):
    """With a CUDA target, too, the library's nodes have no programmatic edges, and the bundle is a valid one."""
    nodes, inputs, outputs, constants = perceptron()
    onnx.save(harness.make_model(nodes, inputs, outputs, constants), tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc", target="sm_90,cpu", gemm="cublaslt")
    (facts,) = ogc.inspect(bundle)["graphs"]
    assert facts["nodes"]["gemm"] == facts["nodes"]["total"] == 3
    assert facts["edges"] == {"full": 2, "programmatic": 0}


@pytest.mark.parametrize("x, w", [((1, 24), (24, 72)), ((2, 24), (24, 72)), ((2, 1, 40), (40, 90)), ((4, 1, 24), (24, 72)), ((3, 2, 24), (24, 24)), ((1, 64), (64, 1)),
                                  ((24,), (24, 7)), ((2, 100), (100, 130)), ((2, 3, 1, 16), (16, 40)), ((5, 24), (24, 72))], ids=str)
def test_bits_do_not_depend_on_constants(ogc, tmp_path, x, w):
    """Weights that are packed, since they are constants, are summed in the order of those that are not."""
    inputs, bits = [RNG.standard_normal(shape).astype(np.float32) for shape in (x, w)], []
    for constants in ((), (1,), (0, 1)):
        model, fed = harness.single_node("MatMul", inputs, constants=constants)
        onnx.save(model, tmp_path / "m.onnx")
        bits.append(ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)["y0"].tobytes())
    assert bits[1:] == bits[:1] * 2
