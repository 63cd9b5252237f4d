"""Switching between graph IDs, buffers of the caller and new weights, on the cpu device through the C interface."""
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import harness
import runtime

F32 = TensorProto.FLOAT


@pytest.fixture(scope="module")
def library():
    return runtime.Library()


def aligned(shape, alignment=256):
    """An array of floats that begins at a multiple of `alignment` bytes."""
    size = 4 * int(np.prod(shape))
    memory = np.zeros(size + alignment, np.uint8)
    begin = -memory.ctypes.data % alignment
    return memory[begin:begin + size].view(np.float32).reshape(shape)


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def gemm_model(path, width=8):
    """y = x W + b for a dynamic batch; returns W and b."""
    rng = np.random.default_rng(3)
    w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((width, width), (width,)))
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="gemm")
    onnx.save(harness.make_model([node], {"x": (F32, ("b", width))}, {"y": (F32, ("b", width))}, {"w": w, "b": b}), path)
    return w, b


@pytest.fixture(scope="module")
def buckets(ogc, tmp_path_factory):
    """A bundle with the IDs b1, b4 and b16, and what it computes."""
    folder = tmp_path_factory.mktemp("buckets")
    w, b = gemm_model(folder / "gemm.onnx")
    bundle = ogc.compile(folder / "gemm.onnx", folder / "gemm.ogc", [f"b{n}: x={n}x8" for n in (1, 4, 16)])
    return bundle, lambda x: x @ w + b


def test_buckets_in_any_order(library, buckets):
    """B43: several graph IDs in one engine; every call right, the first of each too."""
    path, expected = buckets
    bundle = runtime.Bundle(library, path)
    context = runtime.Context(runtime.Engine(bundle, pool=1))
    sizes, rng = (1, 4, 16), np.random.default_rng(0)
    graphs = {n: bundle.find(f"b{n}") for n in sizes}
    buffers = {n: (aligned((n, 8)), aligned((n, 8))) for n in sizes}
    for n in sizes:
        context.bind(graphs[n], *[[array] for array in buffers[n]], runtime.DEVICE)
        assert context.in_place(graphs[n])
    random.seed(0)
    for call, n in enumerate([1, 4, 1, 16, 4, 1] + random.choices(sizes, k=10_000)):
        x, y = buffers[n]
        x[:] = rng.standard_normal(x.shape)
        context.run(graphs[n])
        if call < 20 or call % 50 == 0:
            np.testing.assert_allclose(y, expected(x), rtol=1e-4, atol=1e-5)


def test_results_stay_when_the_next_run_has_other_buffers(library, buckets):
    """B42: outputs are the caller's; an output can be the input of the next run."""
    path, expected = buckets
    bundle = runtime.Bundle(library, path)
    context, graph = runtime.Context(runtime.Engine(bundle)), bundle.find("b4")
    x, outputs, held = aligned((4, 8)), [aligned((4, 8)) for _ in range(2)], None
    for step in range(100):
        x[:] = step
        context.bind(graph, [x], [outputs[step % 2]], runtime.DEVICE)
        context.run(graph)
        if held is not None:
            np.testing.assert_array_equal(outputs[(step + 1) % 2], held)
        held = outputs[step % 2].copy()
        np.testing.assert_allclose(held, expected(x), rtol=1e-4, atol=1e-3)
    x[:] = 0.1
    value = x.copy()
    context.bind(graph, [x], [x], runtime.DEVICE)
    for _ in range(5):
        context.run(graph)
        value = expected(value)
        np.testing.assert_allclose(x, value, rtol=1e-3, atol=1e-4)


def test_bundles_side_by_side(ogc, library, tmp_path):
    """B46: several bundles in one process, all alive at once; each has its own code and weights."""
    contexts = []
    for number, op in enumerate(("Exp", "Neg", "Abs", "Exp")):
        node = helper.make_node(op, ["x"], ["y"], name="the_node")
        onnx.save(harness.make_model([node], {"x": (F32, (6,))}, {"y": (F32, (6,))}), tmp_path / f"{number}.onnx")
        bundle = runtime.Bundle(library, ogc.compile(tmp_path / f"{number}.onnx", tmp_path / f"{number}.ogc"))
        contexts.append((runtime.Context(runtime.Engine(bundle)), {"Exp": np.exp, "Neg": np.negative, "Abs": np.abs}[op]))
    x, y = np.linspace(-2, 2, 6, dtype=np.float32), np.zeros(6, np.float32)
    for _ in range(3):
        for context, expected in contexts:
            context.bind(0, [x], [y])
            context.run(0)
            np.testing.assert_allclose(y, expected(x), rtol=1e-5)


def test_the_output_of_a_bundle_is_the_input_of_another(ogc, library, tmp_path):
    """B42: one buffer bound to both, used in place by both."""
    contexts = []
    for op in ("Neg", "Exp"):
        onnx.save(harness.make_model([helper.make_node(op, ["x"], ["y"], name="the_node")], {"x": (F32, (64,))}, {"y": (F32, (64,))}), tmp_path / f"{op}.onnx")
        bundle = runtime.Bundle(library, ogc.compile(tmp_path / f"{op}.onnx", tmp_path / f"{op}.ogc"))
        contexts.append(runtime.Context(runtime.Engine(bundle)))
    x, between, y = (aligned((64,)) for _ in range(3))
    contexts[0].bind(0, [x], [between], runtime.DEVICE)
    contexts[1].bind(0, [between], [y], runtime.DEVICE)
    for step in range(20):
        x[:] = np.linspace(-1, 1, 64) * step
        for context in contexts:
            context.run(0)
        np.testing.assert_allclose(y, np.exp(-x), rtol=1e-5)


def test_many_buffers_change_at_every_run(ogc, library, tmp_path):
    """B51: a Concat of 40 inputs and a Split into 33, each bound to one of three buffers in turn."""
    inputs = [f"x{i}" for i in range(40)]
    sizes = [4] * 21 + [3] * 12  # of 40 x 3 columns
    outputs = {f"y{i}": (F32, (5, size)) for i, size in enumerate(sizes)}
    nodes = [helper.make_node("Concat", inputs, ["all"], name="concat", axis=1), helper.make_node("Split", ["all", "sizes"], list(outputs), name="split", axis=1)]
    model = harness.make_model(nodes, {name: (F32, (5, 3)) for name in inputs}, outputs, {"sizes": np.array(sizes, np.int64)})
    onnx.save(model, tmp_path / "m.onnx")
    bundle = runtime.Bundle(library, ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"))
    context = runtime.Context(runtime.Engine(bundle))
    buffers = [([aligned((5, 3)) for _ in inputs], [aligned((5, size)) for size in sizes]) for _ in range(3)]
    rng = np.random.default_rng(0)
    for step in range(100):
        xs, ys = buffers[step % 3]
        for x in xs:
            x[:] = rng.standard_normal(x.shape)
        context.bind(0, xs, ys, runtime.DEVICE)
        _churn = [bytearray(1000 + step) for _ in range(50)]  # the host heap is not what it was
        context.run(0)
        np.testing.assert_array_equal(np.concatenate(ys, 1), np.concatenate(xs, 1))


def test_memory_is_flat_over_loads(library, buckets):
    """B49: loading, running and unloading many times leaves nothing."""
    path, _ = buckets
    for number in range(200):
        bundle = runtime.Bundle(library, path)
        engine = runtime.Engine(bundle)
        context = runtime.Context(engine)
        context.run(number % 3)
        for thing in (context, engine, bundle):
            thing.close()
        if number == 20:
            before = resident_bytes()
    assert resident_bytes() - before < 4 << 20


def test_bench_load_reports_costs(ogc, buckets):
    path, _ = buckets
    costs = ogc.bench(path, "--load", "--pool", "1")
    assert costs["graphs"] == 3 and costs["topologies"] == 1
    for key in ("open_ms", "engine_ms", "context_ms", "first_result_ms", "instantiate_us", "launch_us", "switch_us", "rebind_us", "arena_bytes"):
        assert costs[key] > 0, key
    assert costs["rebind_nodes"] == 1
    assert "from nothing to the first result" in ogc("bench", path, "--load", "--iterations", 5)


def folded_model(seed, classes=7, kernel_type=np.float32):
    """Weights that the compiler folds (BatchNormalization), packs (products) and keeps (Add)."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    constants = {"w1": draw(12, 3, 3, 3), "s": draw(12), "t": draw(12), "m": draw(12), "v": 1 + np.abs(draw(12)), "w2": draw(12, 5, 5),
                 "w3": (draw(300, classes) / 17).astype(kernel_type), "b3": draw(classes)}
    nodes = [helper.make_node("Conv", ["x", "w1"], ["c"], name="conv", pads=[1] * 4), helper.make_node("BatchNormalization", [*"cstmv"], ["n"], name="norm"),
             helper.make_node("Relu", ["n"], ["r"], name="relu"), helper.make_node("Add", ["r", "w2"], ["a"], name="add"),
             helper.make_node("Flatten", ["a"], ["f"], name="flatten"), helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="gemm")]
    return harness.make_model(nodes, {"x": (F32, (1, 3, 5, 5))}, {"y": (F32, (1, classes))}, constants)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_refitted_bundle_is_the_one_compiled_anew(ogc, library, tmp_path, precision):
    models = [folded_model(seed) for seed in (1, 2)]
    for name, model in zip(("old", "new"), models):
        onnx.save(model, tmp_path / f"{name}.onnx")
        ogc.compile(tmp_path / f"{name}.onnx", tmp_path / f"{name}.ogc", precision=precision, tuning="none")
    ogc("refit", tmp_path / "old.ogc", "--weights", tmp_path / "new.onnx", "-o", tmp_path / "refitted.ogc")
    assert (tmp_path / "refitted.ogc").read_bytes() == (tmp_path / "new.ogc").read_bytes()

    old, refitted = (runtime.Bundle(library, tmp_path / f"{name}.ogc") for name in ("old", "refitted"))
    engine = runtime.Engine(old)
    context = runtime.Context(engine)
    x, y = np.random.default_rng(5).standard_normal((1, 3, 5, 5)).astype(np.float32), np.zeros((1, 7), np.float32)
    context.bind(0, [x], [y])
    for bundle, model in ((old, models[0]), (refitted, models[1]), (old, models[0])):
        engine.refit(bundle)
        context.run(0)
        assert harness.relative_error(y, harness.reference(model, {"x": x})["y"]) < (1e-4 if precision == "fp32" else 2e-2)


def test_refit_with_weights_in_a_second_file(ogc, library, tmp_path):
    models = [folded_model(seed) for seed in (1, 2)]
    for name, model in zip(("old", "new"), models):
        onnx.save(model, tmp_path / f"{name}.onnx")
    ogc.compile(tmp_path / "old.onnx", tmp_path / "old.ogc", weights="external")
    ogc("refit", tmp_path / "old.ogc", "--weights", tmp_path / "new.onnx", "-o", tmp_path / "new.ogc")
    assert (tmp_path / "new.ogc.weights").exists()
    ogc("refit", tmp_path / "old.ogc", "--weights", tmp_path / "new.onnx", "-o", tmp_path / "inline.ogc", "--store-weights", "inline")
    x, y = np.random.default_rng(5).standard_normal((1, 3, 5, 5)).astype(np.float32), np.zeros((1, 7), np.float32)
    engine = runtime.Engine(runtime.Bundle(library, tmp_path / "old.ogc"))
    context = runtime.Context(engine)
    context.bind(0, [x], [y])
    for name in ("new", "inline"):
        engine.refit(runtime.Bundle(library, tmp_path / f"{name}.ogc"))
        context.run(0)
        assert harness.relative_error(y, harness.reference(models[1], {"x": x})["y"]) < 1e-4
    (tmp_path / "new.ogc.weights").write_bytes(b"no weights")
    with pytest.raises(runtime.RuntimeFailure, match="have 10 bytes"):
        engine.refit(runtime.Bundle(library, tmp_path / "new.ogc"))
    context.run(0)
    assert harness.relative_error(y, harness.reference(models[1], {"x": x})["y"]) < 1e-4


def test_refit_names_every_initializer_that_does_not_fit(ogc, tmp_path):
    onnx.save(folded_model(1), tmp_path / "old.onnx")
    ogc.compile(tmp_path / "old.onnx", tmp_path / "old.ogc")
    wrong = folded_model(2, classes=9)
    tensors = {tensor.name: tensor for tensor in wrong.graph.initializer}
    tensors["w2"].CopyFrom(numpy_helper.from_array(np.ones((1, 5, 5), np.float32), "w2"))
    onnx.save(wrong, tmp_path / "wrong.onnx")
    with pytest.raises(harness.OgcError) as error:
        ogc("refit", tmp_path / "old.ogc", "--weights", tmp_path / "wrong.onnx", "-o", tmp_path / "wrong.ogc")
    assert error.value.code == 1
    for line in ("initializer 'w2' is float32 1x5x5, expected float32 12x5x5", "initializer 'w3' is float32 300x9, expected float32 300x7",
                 "initializer 'b3' is float32 9, expected float32 7"):
        assert f"error: {line}" in error.value.message
    assert not (tmp_path / "wrong.ogc").exists()


def test_refit_refuses_a_constant_that_is_part_of_the_code(ogc, tmp_path):
    def model(path, factor, other=None):
        constants = {"f": np.float32(factor)} | ({"extra": np.ones(3, np.float32)} if other else {})
        nodes = [helper.make_node("Mul", ["x", "f"], ["m"], name="scale"), helper.make_node(other or "Relu", ["m", "extra"] if other else ["m"], ["y"], name="last")]
        onnx.save(harness.make_model(nodes, {"x": (F32, (4, 3))}, {"y": (F32, (4, 3))}, constants), path)
        return path

    bundle = ogc.compile(model(tmp_path / "old.onnx", 2), tmp_path / "old.ogc")
    same = tmp_path / "same.ogc"
    ogc("refit", bundle, "--weights", model(tmp_path / "same.onnx", 2), "-o", same)
    for changed, reason in ((model(tmp_path / "factor.onnx", 3), "a constant that is part of it has changed"),
                            (model(tmp_path / "add.onnx", 2, "Add"), "initializer 'extra' (float32 3) is not in the bundle's model")):
        with pytest.raises(harness.OgcError) as error:
            ogc("refit", bundle, "--weights", changed, "-o", tmp_path / "no.ogc")
        assert reason in error.value.message and error.value.code == 1
        assert not (tmp_path / "no.ogc").exists()
