"""Normalizations of rows whose product normalizes the rows that it reads: results, and where it is done at all."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"{op} of {outputs}", **attributes)


def rms(x, y, epsilon):
    """As models have it: in single operators, which become RMSNormalization."""
    return [node("Mul", f"{x} {x}", f"{y}0"), node("ReduceMean", f"{y}0 axis", f"{y}1"), node("Add", f"{y}1 epsilon", f"{y}2"), node("Sqrt", f"{y}2", f"{y}3"),
            node("Div", f"{x} {y}3", f"{y}4"), node("Mul", f"{y}4 gamma", y)]


def layer(x, y, epsilon):
    return [node("LayerNormalization", f"{x} gamma beta", y, axis=-1, epsilon=epsilon)]


def layer_without_beta(x, y, epsilon):
    return [node("LayerNormalization", f"{x} gamma", y, axis=-1, epsilon=epsilon)]


def model(norm, rows, k, n, epsilon=1e-5, products="wa", more=(), results=("y",), mix=0.5):
    """A product with a residual, its norm, and a product or two of it that meet."""
    rng = np.random.default_rng(rows * 1000 + k + n)
    constants = {name: (rng.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32) for name in ("wa", "wb")}
    constants |= {name: (1 + 0.3 * rng.standard_normal(k)).astype(np.float32) for name in ("gamma", "beta")}
    constants["mix"] = (mix * rng.standard_normal((k, k)) / np.sqrt(k)).astype(np.float32)
    constants |= {"axis": np.array([-1]), "epsilon": np.array(epsilon, np.float32), "bias": rng.standard_normal(n).astype(np.float32)}
    nodes = [node("MatMul", "x mix", "t"), node("Add", "x t", "h"), *norm("h", "z", epsilon)]
    if products == "wa":
        nodes += [node("MatMul", "z wa", "p"), node("Add", "p bias", "y")]
    else:
        nodes += [node("MatMul", "z wa", "a"), node("MatMul", "z wb", "b"), node("Sigmoid", "a", "s"), node("Mul", "s b", "y")]
    nodes += more
    used = {name for each in nodes for name in each.input}
    return harness.make_model(nodes, {"x": (F32, (1, rows, k))}, {name: (F32, None) for name in results}, {name: array for name, array in constants.items() if name in used})


def counts_and_errors(ogc, tmp_path, graph, precision, shift=0.0, scale=1.0):
    """Kernels and the error with the norm in the product, then those without."""
    path = tmp_path / "m.onnx"
    onnx.save(graph, path)
    values = {name: value * np.float32(scale) + np.float32(shift) for name, value in harness.model_inputs(path).items()}
    expected = harness.reference(path, values)
    found = []
    for disabled in ({}, {"disable": "absorb-norms"}):
        bundle = ogc.compile(path, tmp_path / "m.ogc", precision=precision, **disabled)
        (facts,) = ogc.inspect(bundle)["graphs"]
        actual = ogc.run(bundle, values)
        found.append((facts["nodes"]["kernel"], max(harness.relative_error(actual[name], value) for name, value in expected.items())))
        assert all(np.isfinite(value).all() for value in actual.values())
    return found


SIXTEEN = {"fp16": 5e-3, "bf16": 4e-2}


@pytest.mark.parametrize("rows,k,n", [(1, 64, 128), (1, 45, 100), (2, 19, 37), (2, 300, 1), (1, 3, 16), (2, 130, 64)])
@pytest.mark.parametrize("norm", [rms, layer, layer_without_beta], ids=lambda norm: norm.__name__)
def test_few_rows(ogc, tmp_path, norm, rows, k, n):
    for precision, tolerance in SIXTEEN.items():
        (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(norm, rows, k, n), precision)
        assert count == before - 1 and error <= tolerance
    (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(norm, rows, k, n), "fp32")
    assert count == before - (norm is rms) and error <= 1e-5


@pytest.mark.parametrize("rows", [1, 5, 20])
@pytest.mark.parametrize("norm", [rms, layer], ids=lambda norm: norm.__name__)
def test_gated(ogc, tmp_path, norm, rows):
    """Two products of the normalized rows are one with alternating columns."""
    for precision, tolerance in SIXTEEN.items():
        (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(norm, rows, 64, 96, products="gate"), precision)
        assert count == before - (rows != 5) and error <= tolerance


@pytest.mark.parametrize("rows,k,n", [(17, 64, 16), (37, 192, 136), (130, 320, 64), (197, 768, 200)])
@pytest.mark.parametrize("norm", [rms, layer, layer_without_beta], ids=lambda norm: norm.__name__)
def test_many_rows(ogc, tmp_path, norm, rows, k, n):
    """The product that computes the rows stores their statistics, the one that reads them scales its result."""
    for precision, tolerance in SIXTEEN.items():
        (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(norm, rows, k, n), precision)
        assert count == before - 1 and error <= tolerance
    (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(norm, rows, k, n), "fp32")
    assert count == before and error <= 1e-5


@pytest.mark.parametrize("change", ["few", "k", "n", "no product", "read elsewhere"])
def test_many_rows_keep_the_norm(ogc, tmp_path, change):
    """Few rows, rows of no multiple of 64 elements, odd columns, rows that no product computes, normalized rows that others read."""
    more, results = ([node("Relu", "z", "u")], ("y", "u")) if change == "read elsewhere" else ((), ("y",))
    graph = model(layer, 12 if change == "few" else 40, 100 if change == "k" else 128, 61 if change == "n" else 64, more=more, results=results)
    if change == "no product":
        graph.graph.node[0].CopyFrom(node("Tanh", "x", "t"))
    (count, error), (before, _) = counts_and_errors(ogc, tmp_path, graph, "fp16")
    assert count == before and error <= 5e-3


def blocks(layers, rows, k):
    """Residual blocks with the norm in front, as transformers have them; the last rows are normalized for the result."""
    rng = np.random.default_rng(layers)
    constants, nodes, rest = {}, [], "x"
    for i in range(layers):
        for name, shape in (("up", (k, 2 * k)), ("down", (2 * k, k))):
            constants[f"{name}{i}"] = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        for name in ("gamma", "beta"):
            constants[f"{name}{i}"] = (1 + 0.2 * rng.standard_normal(k)).astype(np.float32)
        nodes += [node("LayerNormalization", f"{rest} gamma{i} beta{i}", f"n{i}", axis=-1, epsilon=1e-5), node("MatMul", f"n{i} up{i}", f"u{i}"),
                  node("Relu", f"u{i}", f"r{i}"), node("MatMul", f"r{i} down{i}", f"d{i}"), node("Add", f"{rest} d{i}", f"h{i}")]
        rest = f"h{i}"
    nodes += [node("LayerNormalization", f"{rest} gamma0 beta0", "y", axis=-1)]
    return harness.make_model(nodes, {"x": (F32, (1, rows, k))}, {"y": (F32, None)}, constants)


def test_blocks(ogc, tmp_path):
    """The first norm reads an input and the last one is a result; those between are in the products."""
    for precision, tolerance in SIXTEEN.items():
        (count, error), (before, _) = counts_and_errors(ogc, tmp_path, blocks(4, 50, 128), precision)
        assert count == before - 3 and error <= tolerance


def blocks_behind(layers, rows, k, norm):
    """Residual blocks with the norm behind the sum: its result is what the next block reads and adds."""
    rng = np.random.default_rng(layers + 100)
    constants = {"axis": np.array([-1]), "epsilon": np.array(1e-5, np.float32)}
    constants |= {name: (1 + 0.2 * rng.standard_normal(k)).astype(np.float32) for name in ("gamma", "beta")}
    nodes, rest = [], "x"
    for i in range(layers):
        for name, shape in (("up", (k, 2 * k)), ("down", (2 * k, k))):
            constants[f"{name}{i}"] = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        constants[f"bias{i}"] = rng.standard_normal(k).astype(np.float32)
        nodes += [node("MatMul", f"{rest} up{i}", f"u{i}"), node("Relu", f"u{i}", f"r{i}"), node("MatMul", f"r{i} down{i}", f"d{i}"), node("Add", f"d{i} bias{i}", f"b{i}"),
                  node("Add", f"b{i} {rest}", f"h{i}"), *norm(f"h{i}", f"n{i}", 1e-5)]
        rest = f"n{i}"
    used = {name for each in nodes for name in each.input}
    return harness.make_model(nodes, {"x": (F32, (1, rows, k))}, {rest: (F32, None)}, {name: array for name, array in constants.items() if name in used})


@pytest.mark.parametrize("norm", [rms, layer], ids=lambda norm: norm.__name__)
@pytest.mark.parametrize("rows", [50, 197])
def test_blocks_with_the_norm_behind(ogc, tmp_path, rows, norm):
    """All but the last, which is the result, are in the product that reads them and in the one that adds them."""
    for precision, tolerance in SIXTEEN.items():
        (count, error), (before, _) = counts_and_errors(ogc, tmp_path, blocks_behind(4, rows, 128, norm), precision)
        assert count == before - 3 and error <= tolerance


@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize("ratio", [10, 50])
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_mean_far_larger_than_the_deviation(ogc, tmp_path, precision, ratio, rows):
    """Such rows are rounded to few digits of their deviation as they are stored: the norm in the product adds about as much."""
    graph = model(layer, rows, 512, 64, mix=0.001)
    (count, error), (before, error_before) = counts_and_errors(ogc, tmp_path, graph, precision, shift=ratio)
    assert count == before - 1 and error <= 1.5 * error_before + 1e-3


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-2, 10.0])
@pytest.mark.parametrize("norm", [rms, layer], ids=lambda norm: norm.__name__)
def test_epsilon(ogc, tmp_path, norm, epsilon):
    (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(norm, 2, 96, 48, epsilon), "fp16")
    assert count == before - 1 and error <= 5e-3


@pytest.mark.parametrize("shift,scale", [(4.0, 1.0), (-30.0, 1.0), (0.0, 3000.0), (0.0, 1e-3)])
@pytest.mark.parametrize("norm", [rms, layer], ids=lambda norm: norm.__name__)
def test_rows_far_from_unit(ogc, tmp_path, norm, shift, scale):
    """What 16 bits say of such rows is the limit; the norm in the product loses no more than as much again."""
    (count, error), (before, error_before) = counts_and_errors(ogc, tmp_path, model(norm, 2, 512, 64), "fp16", shift, scale)
    assert count == before - 1 and error <= 2 * error_before + 2e-3


def test_equal_elements(ogc, tmp_path):
    """A row without a variance is beta everywhere."""
    (_, error), (_, error_before) = counts_and_errors(ogc, tmp_path, model(layer, 2, 96, 48, mix=0.0), "fp16", shift=1.0, scale=0.0)
    assert error <= 5e-3 and error_before <= 5e-3


def test_other_readers_keep_the_norm(ogc, tmp_path):
    for more, results in (([node("Relu", "z", "u")], ("y", "u")), ([], ("y", "z"))):
        (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(rms, 1, 64, 32, more=more, results=results), "fp16")
        assert count == before and error <= 5e-3


def test_weights_of_graphs_with_other_rows_are_stored_once(ogc, tmp_path):
    """One graph ID cannot take the norm into its product: then none does."""
    graph = model(rms, 1, 64, 32)
    graph.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "rows"
    del graph.graph.output[0].type.tensor_type.shape.dim[:]
    path = tmp_path / "m.onnx"
    onnx.save(graph, path)
    few = ogc.inspect(ogc.compile(path, tmp_path / "few.ogc", ["one: x=1x1x64", "two: x=1x2x64"], precision="fp32"))
    many = ogc.inspect(ogc.compile(path, tmp_path / "many.ogc", ["one: x=1x1x64", "five: x=1x5x64"], precision="fp32"))
    kernels = lambda facts: [each["nodes"]["kernel"] for each in facts["graphs"]]  # noqa: E731
    assert kernels(few) == [2, 2] and kernels(many) == [3, 3]


def test_rows_that_are_computed_with_the_norm_stay(ogc, tmp_path):
    """Element-wise operations and the norm behind them are one kernel already."""
    graph = model(rms, 1, 64, 32)
    graph.graph.node[0].CopyFrom(node("Tanh", "x", "t"))
    (count, error), (before, _) = counts_and_errors(ogc, tmp_path, graph, "fp16")
    assert count == before and error <= 5e-3


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_compiles_for_cuda(ogc, tmp_path, precision):
    """With the templates: a product that did not fit would be a warning, and scalar code."""
    path = tmp_path / "m.onnx"
    onnx.save(model(rms, 1, 64, 96), path)
    ogc("compile", path, "-o", tmp_path / "m.ogc", "--target", "sm_80", "--target", "sm_90", "--precision", precision, "--dump-dir", tmp_path / "dump")
    text = "".join(file.read_text() for file in (tmp_path / "dump").rglob("*.cu"))
    assert "ogc::gemv<" in text and "Norm = 1" in text


@pytest.mark.parametrize("rows", [257, 1000])
def test_many_rows_keep_the_norm(ogc, tmp_path, rows):
    (count, error), (before, _) = counts_and_errors(ogc, tmp_path, model(layer, rows, 128, 64), "fp16")
    assert count == before and error <= 5e-3


def test_rows_that_another_kernel_computes_keep_the_norm(ogc, tmp_path):
    """Rows and the same rows in other places (windows that are shifted): the product stores the former, and a kernel without products adds them."""
    graph = model(layer, 40, 128, 64)
    moved = [node("Slice", "h one many second", "later"), node("Slice", "h zero one second", "sooner"), node("Concat", "later sooner", "moved", axis=1), node("Add", "h moved", "g")]
    nodes = list(graph.graph.node)
    at = next(i for i, each in enumerate(nodes) if each.op_type == "LayerNormalization")
    nodes[at].input[0] = "g"
    del graph.graph.node[:]
    graph.graph.node.extend([*nodes[:at], *moved, *nodes[at:]])
    graph.graph.initializer.extend(onnx.numpy_helper.from_array(np.array([value]), name) for name, value in (("zero", 0), ("one", 1), ("many", 1000), ("second", 1)))
    (count, error), (before, _) = counts_and_errors(ogc, tmp_path, graph, "fp16")
    assert count == before and error <= 5e-3


@pytest.mark.parametrize("rows", [40, 256])
def test_statistics_compile_for_cuda(ogc, tmp_path, rows):
    path = tmp_path / "m.onnx"
    onnx.save(model(layer, rows, 256, 200), path)
    ogc("compile", path, "-o", tmp_path / "m.ogc", "--target", "sm_80", "--target", "sm_90", "--precision", "fp16", "--dump-dir", tmp_path / "dump")
    for arch, row in (("sm_80", 0), ("sm_90", 1)):  # tensor maps keep the factors of a tile's rows
        (text,) = [file.read_text() for file in (tmp_path / "dump").rglob(f"{arch}*.cu")]
        assert text.count("ogc::gemm<") == 2 and text.count("ogc::storeStatistics<64, 8>(") == 1 and text.count("Row row(") == row
