"""Small cases from public bug reports of other projects, on how a loaded graph is run again. test_state.py has those on states (B41), test_updates.py
those on buckets and buffers (B42, B43, B46, B51), CudaPoolTest and CudaRuntimeTest those that need a driver that refuses (B46, B47, B48, B51)."""
import concurrent.futures
import gc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness
import runtime

F32 = TensorProto.FLOAT
N = helper.make_node
THREADS, RUNS = 8, 500


@pytest.fixture(scope="module")
def library():
    return runtime.Library()


def affine(ogc, folder):
    """A bundle of y = 2 x + 1 of 64 elements."""
    onnx.save(harness.make_model([N("Mul", ["x", "two"], ["t"]), N("Add", ["t", "one"], ["y"])], {"x": (F32, (64,))}, {"y": (F32, (64,))},
                                 {"two": np.float32(2), "one": np.float32(1)}), folder / "m.onnx")
    return ogc.compile(folder / "m.onnx", folder / "m.ogc")


def count_wrong(context, value):
    """Runs with an input of one thread's own; how many results are not its own."""
    x, y, wrong = np.empty(64, np.float32), np.empty(64, np.float32), 0
    context.bind(0, [x], [y])
    for step in range(RUNS):
        x[:] = value + step
        context.run(0)
        wrong += not np.array_equal(y, 2 * x + 1)
    return wrong


# Threads (B44)

def in_threads(work):
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def test_contexts_of_one_engine(ogc, library, tmp_path):
    engine = runtime.Engine(runtime.Bundle(library, affine(ogc, tmp_path)))
    assert in_threads(lambda t: count_wrong(runtime.Context(engine), 1000 * t)) == [0] * THREADS


def test_loads_at_once(ogc, library, tmp_path):
    path = affine(ogc, tmp_path)
    assert in_threads(lambda t: count_wrong(runtime.Context(runtime.Engine(runtime.Bundle(library, path))), 1000 * t)) == [0] * THREADS


def test_loaded_run_and_destroyed_in_three_threads(ogc, library, tmp_path):
    path = affine(ogc, tmp_path)

    def alone(work):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    context = alone(lambda: runtime.Context(runtime.Engine(runtime.Bundle(library, path))))
    assert alone(lambda: count_wrong(context, 3)) == 0
    alone(lambda: (context.close(), context.engine.close(), context.engine.bundle.close()))


# Calls that are refused leave everything as it was (B48)

def test_refused_calls_leave_the_output_alone(ogc, library, tmp_path):
    bundle = runtime.Bundle(library, affine(ogc, tmp_path))
    context = runtime.Context(runtime.Engine(bundle))
    x, y = np.arange(64, dtype=np.float32), np.full(64, 7, np.float32)
    context.bind(0, [x], [y])
    with pytest.raises(runtime.RuntimeFailure, match="'x' has 256 bytes, the buffer 128"):
        context.bind(0, [x[:32]], [])
    with pytest.raises(runtime.RuntimeFailure, match="'y' has 256 bytes, the buffer 4"):
        context.bind(0, [], [y[:1]])
    with pytest.raises(runtime.RuntimeFailure):
        context.bind(0, [x, x], [])
    with pytest.raises(runtime.RuntimeFailure):
        context.run(5)
    assert (y == 7).all()
    context.run(0)
    np.testing.assert_array_equal(y, 2 * x + 1)


# Memory (B49)

def test_temporaries_share_their_memory(ogc, tmp_path):
    """Three temporaries of 64 MiB that follow one another: two are alive at a time where no kernel can join them, and none is on top."""
    size = 16 << 20
    nodes = [N("Transpose", ["x"], ["a"], perm=[1, 0]), N("CumSum", ["a", "axis"], ["b"]), N("CumSum", ["b", "axis"], ["c"]), N("CumSum", ["c", "axis"], ["d"]),
             N("ReduceSum", ["d"], ["y"], keepdims=0)]
    onnx.save(harness.make_model(nodes, {"x": (F32, (4096, size // 4096))}, {"y": (F32, ())}, {"axis": np.array(1)}), tmp_path / "m.onnx")
    (graph,) = ogc.inspect(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"))["graphs"]
    assert graph["arena"]["peak_bytes"] <= 2 * 4 * size + (1 << 20)


LAYERS, WIDTH, BUCKETS = 8, 1024, 32


@pytest.fixture(scope="module")
def many_buckets(ogc, tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("many"), np.random.default_rng(0)
    nodes, name = [], "x"
    for layer in range(LAYERS):
        nodes += [N("MatMul", [name, f"w{layer}"], [f"h{layer}"]), N("Relu", [f"h{layer}"], [f"r{layer}"])]
        name = f"r{layer}"
    weights = {f"w{layer}": rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 32 for layer in range(LAYERS)}
    onnx.save(harness.make_model(nodes, {"x": (F32, ("b", WIDTH))}, {name: (F32, ("b", WIDTH))}, weights), folder / "m.onnx")
    return ogc.compile(folder / "m.onnx", folder / "m.ogc", f"b=1..{BUCKETS}")


def test_buckets_share_one_arena(ogc, many_buckets):
    facts = ogc.inspect(many_buckets)
    assert len(facts["graphs"]) == BUCKETS
    largest = max(graph["arena"]["bound_bytes"] for graph in facts["graphs"])
    assert facts["sections"]["scratch_bytes"] <= 1.02 * largest + 4096
    assert facts["weights_bytes"] <= 1.02 * 4 * LAYERS * WIDTH * WIDTH


def resident_bytes():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("order", [1, -1], ids=["ascending", "descending"])
def test_memory_does_not_depend_on_the_order_of_buckets(library, many_buckets, order):
    bundle = runtime.Bundle(library, many_buckets)
    engine = runtime.Engine(bundle, pool=4)
    context, before = runtime.Context(engine), resident_bytes()
    for rows in range(1, BUCKETS + 1)[::order]:
        x, y = np.ones((rows, WIDTH), np.float32), np.empty((rows, WIDTH), np.float32)
        graph = bundle.find(f"b{rows}")
        context.bind(graph, [x], [y])
        context.run(graph)
        assert np.isfinite(y).all()
    # Weights are touched by the first run, then one arena of the largest bucket.
    assert resident_bytes() - before <= 4 * LAYERS * WIDTH * WIDTH + 4 * 4 * BUCKETS * WIDTH + (16 << 20)
    context.close(), engine.close(), bundle.close()
