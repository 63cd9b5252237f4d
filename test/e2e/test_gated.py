"""Gated units: two products of one value that meet in an element-wise operation are one kernel."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"{op} of {outputs}", **attributes)


def silu_gate():
    return [node("MatMul", "x wa", "a"), node("MatMul", "x wb", "b"), node("Sigmoid", "a", "s"), node("Mul", "a s", "g"), node("Mul", "g b", "y")]


def gelu_gate_with_biases():
    """The second product comes first in the graph, and has a bias before the two meet, as the first has."""
    return [node("MatMul", "x wb", "b"), node("Add", "b bb", "d"), node("MatMul", "x wa", "a"), node("Add", "ba a", "c"), node("Gelu", "c", "g"),
            node("Mul", "d g", "y")]


def three_products():
    """The first and the second meet, the third joins them afterwards."""
    return [node("MatMul", "x wa", "a"), node("MatMul", "x wb", "b"), node("MatMul", "x wc", "c"), node("Relu", "a", "r"), node("Sub", "r b", "d"),
            node("Max", "d c", "y")]


def reshaped():
    """A view lies between the products and what follows."""
    return [node("MatMul", "x wa", "a"), node("MatMul", "x wb", "b"), node("Reshape", "a flat", "c"), node("Reshape", "b flat", "d"), node("Tanh", "c", "t"),
            node("Mul", "t d", "e"), node("Reshape", "e back", "y")]


GRAPHS = {silu_gate: 1, gelu_gate_with_biases: 1, three_products: 2, reshaped: 1}


def model(graph, rows, k, n):
    rng = np.random.default_rng(rows * 1000 + k + n)
    constants = {name: (rng.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32) for name in ("wa", "wb", "wc")}
    constants |= {name: rng.standard_normal(n).astype(np.float32) for name in ("ba", "bb")}
    constants |= {"flat": np.array([-1], np.int64), "back": np.array([rows, n], np.int64)}
    nodes = graph()
    used = {name for each in nodes for name in each.input}
    return harness.make_model(nodes, {"x": (F32, (rows, k))}, {"y": (F32, (rows, n))}, {name: array for name, array in constants.items() if name in used})


@pytest.mark.parametrize("rows,k,n", [(1, 64, 128), (1, 45, 100), (1, 19, 37), (2, 33, 1), (5, 40, 16), (37, 24, 90)])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_one_kernel(ogc, tmp_path, graph, rows, k, n):
    path = tmp_path / "m.onnx"
    onnx.save(model(graph, rows, k, n), path)
    values = harness.model_inputs(path)
    expected = harness.reference(path, values)
    for precision, tolerance in {"fp32": 1e-5, "fp16": 5e-3, "bf16": 3e-2}.items():
        bundle = ogc.compile(path, tmp_path / "m.ogc", precision=precision)
        (facts,) = ogc.inspect(bundle)["graphs"]
        assert facts["nodes"]["kernel"] == GRAPHS[graph] + (precision != "fp32")  # the input is cast
        harness.check_outputs(ogc.run(bundle, values), expected, tolerance)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("rows", [1, 128])
def test_compiles_for_cuda(ogc, tmp_path, rows, precision):
    """With the templates: an epilogue that did not fit would be a warning, and scalar code."""
    path = tmp_path / "m.onnx"
    onnx.save(model(silu_gate, rows, 64, 96), path)
    ogc("compile", path, "-o", tmp_path / "m.ogc", "--target", "sm_90", "--precision", precision, "--dump-dir", tmp_path / "dump")
    text = "".join(file.read_text() for file in (tmp_path / "dump").rglob("*.cu"))
    assert ("ogc::gemv<" if rows == 1 else "ogc::gemm<") in text
