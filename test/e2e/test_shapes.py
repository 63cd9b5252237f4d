"""Graph IDs from --shapes, padding, graphs chosen by the shapes of the inputs, proposed buckets."""
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(11)


def save(tmp_path, nodes, inputs, outputs, constants=None, **options):
    path = tmp_path / "m.onnx"
    onnx.save(harness.make_model(nodes, inputs, outputs, constants, **options), path)
    return path


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"the {op}", **attributes)


def mlp(tmp_path):
    """Rows that never mix, with a softmax along the other dimension."""
    weights = {"w": RNG.standard_normal((8, 5)).astype(np.float32), "b": RNG.standard_normal(5).astype(np.float32)}
    nodes = [node("MatMul", "x w", "h"), node("Add", "h b", "z"), node("Softmax", "z", "y", axis=-1)]
    return save(tmp_path, nodes, {"x": (F32, ("batch", "seq", 8))}, {"y": (F32, ("batch", "seq", 5))}, weights)


def rows(*shape):
    return {"x": RNG.standard_normal(shape).astype(np.float32)}


def refused(action, *words):
    with pytest.raises(harness.OgcError) as caught:
        action()
    assert caught.value.code == 1
    for word in words:
        assert word in caught.value.message, caught.value.message


def check(ogc, bundle, path, inputs, graph=None, tolerance=1e-5):
    harness.check_outputs(ogc.run(bundle, inputs, graph=graph), harness.reference(path, inputs), tolerance)


def ids(ogc, bundle):
    return [graph["id"] for graph in ogc.inspect(bundle)["graphs"]]


def test_product_of_symbols(ogc, tmp_path):
    path = mlp(tmp_path)
    bundle = ogc.compile(path, tmp_path / "m.ogc", ["batch=1,2 seq=4..16:x2", "odd: x=3x5x8"])
    assert ids(ogc, bundle) == ["batch1_seq4", "batch1_seq8", "batch1_seq16", "batch2_seq4", "batch2_seq8", "batch2_seq16", "odd"]
    for graph, shape in (("batch2_seq8", (2, 8, 8)), ("odd", (3, 5, 8))):
        check(ogc, bundle, path, rows(*shape), graph)


def test_shapes_of_a_file(ogc, tmp_path):
    path = mlp(tmp_path)
    (tmp_path / "buckets.yaml").write_text("shapes:\n  - batch=1 seq=4\n  - id: big\n    batch: [2, 3]\n    seq: 8\n")
    bundle = ogc.compile(path, tmp_path / "m.ogc", f"@{tmp_path / 'buckets.yaml'}")
    assert ids(ogc, bundle) == ["batch1_seq4", "big_batch2", "big_batch3"]
    refused(lambda: ogc.compile(path, tmp_path / "n.ogc", f"@{tmp_path / 'none.yaml'}"), "none.yaml")


@pytest.mark.parametrize("shapes, words", [
    ("batch=2 seq=4 x=3x4x8", ["'batch' is 2 in --shapes, but 3 in input 'x'"]),
    ("rows=2", ["no symbol 'rows'", "'batch', 'seq'"]),
    ("batch=1,1 seq=4", ["lists 1 twice"]),
    ("batch=99999999999 seq=99999999999", ["too large"]),
    (["a: batch=1 seq=4", "a: batch=2 seq=4"], ["graph ID 'a' is given twice"]),
    ("batch=1", ["'x' has shape [batch, seq, 8]"]),
], ids=["contradiction", "unknown", "list", "huge", "twice", "missing"])
def test_wrong_sizes(ogc, tmp_path, shapes, words):
    refused(lambda: ogc.compile(mlp(tmp_path), tmp_path / "m.ogc", shapes), *words)
    assert not (tmp_path / "m.ogc").exists()


def test_sizes_that_the_model_refuses(ogc, tmp_path):
    """B34: one name is one size; other names may differ as far as the operators allow."""
    same = save(tmp_path, [node("Add", "a b", "y")], {"a": (F32, ("n",)), "b": (F32, ("n",))}, {"y": (F32, ("n",))})
    refused(lambda: ogc.compile(same, tmp_path / "m.ogc", "a=3,b=1"), "'n' is 3 in input 'a', but 1 in input 'b'")
    other = save(tmp_path, [node("Add", "a b", "y")], {"a": (F32, ("n",)), "b": (F32, ("m",))}, {"y": (F32, ("k",))})
    refused(lambda: ogc.compile(other, tmp_path / "m.ogc", "n=3 m=4"), "m = 4, n = 3", "the Add")
    bundle = ogc.compile(other, tmp_path / "m.ogc", ["n=3 m=3", "n=3 m=1", "n=1 m=3"])
    for n, m in ((3, 3), (3, 1), (1, 3)):
        check(ogc, bundle, other, {"a": RNG.random(n, np.float32), "b": RNG.random(m, np.float32)})
    nameless = save(tmp_path, [node("Add", "a b", "y")], {"a": (F32, (None,)), "b": (F32, (None,))}, {"y": (F32, (None,))})
    check(ogc, ogc.compile(nameless, tmp_path / "m.ogc", "a=3 b=1"), nameless, {"a": RNG.random(3, np.float32), "b": RNG.random(1, np.float32)})


def test_expand_by_computed_shape(ogc, tmp_path):
    """B32: a dimension that is 1 at run time is expanded, whichever side it is on."""
    nodes = [node("Shape", "ref", "s"), node("Gather", "s zero", "m"), node("Concat", "m three", "target", axis=0), node("Expand", "x target", "y")]
    path = save(tmp_path, nodes, {"x": (F32, ("n", 3)), "ref": (F32, ("m", 3))}, {"y": (F32, (None, 3))},
                {"zero": np.array([0]), "three": np.array([3])})
    cases = [(1, 4), (4, 4), (3, 1), (1, 0)]
    bundle = ogc.compile(path, tmp_path / "m.ogc", [f"n={n} m={m}" for n, m in cases])
    for n, m in cases:
        inputs = {"x": RNG.random((n, 3), np.float32), "ref": np.zeros((m, 3), np.float32)}
        check(ogc, bundle, path, inputs)


@pytest.mark.parametrize("b, s, t", [(1, 3, 5), (2, 1, 7), (1, 0, 3)])
def test_three_symbols(ogc, tmp_path, b, s, t):
    """B33: several named dimensions in one operator."""
    path = save(tmp_path, [node("MatMul", "p q", "y")], {"p": (F32, ("b", 2, "s", 4)), "q": (F32, ("b", 2, 4, "t"))}, {"y": (F32, ("b", 2, "s", "t"))})
    bundle = ogc.compile(path, tmp_path / "m.ogc", f"b={b} s={s} t={t}")
    check(ogc, bundle, path, {"p": np.ones((b, 2, s, 4), np.float32), "q": np.ones((b, 2, 4, t), np.float32)})


def test_size_zero(ogc, tmp_path):
    """B36: nothing to do is no error."""
    path = mlp(tmp_path)
    bundle = ogc.compile(path, tmp_path / "m.ogc", "batch=0,2 seq=4")
    assert ids(ogc, bundle) == ["batch0_seq4", "batch2_seq4"]
    for batch in (0, 2):
        check(ogc, bundle, path, rows(batch, 4, 8))


def test_padded_rows(ogc, tmp_path):
    """A call runs in the cheapest graph that covers it; outputs are cut to its rows."""
    path = mlp(tmp_path)
    bundle = ogc.compile(path, tmp_path / "m.ogc", "batch=8,4 seq=6,16")
    facts = {symbol["name"]: symbol for symbol in ogc.inspect(bundle)["symbols"]}
    assert facts["batch"]["padding_safe"] and facts["seq"]["padding_safe"]
    for shape in ((3, 6, 8), (4, 5, 8), (5, 9, 8), (8, 16, 8), (1, 1, 8)):
        check(ogc, bundle, path, rows(*shape))
    np.save(tmp_path / "x.npy", rows(3, 6, 8)["x"])
    assert "graph 'batch4_seq6': batch 3 filled up to 4" in ogc("run", bundle, "--input", f"x={tmp_path / 'x.npy'}")
    refused(lambda: ogc.run(bundle, rows(9, 6, 8)), "no graph takes 'x' of shape 9x6x8", "'batch8_seq6' (x 8x6x8)")


def test_padded_rows_in_an_output_of_merged_dimensions(ogc, tmp_path):
    """How many rows of the output belong to one of the batch depends on the other symbol: one cut would be right for one of its sizes."""
    path = save(tmp_path, [node("Relu", "x", "a"), node("Reshape", "a shape", "y")], {"x": (F32, ("b", "s", 8))}, {"y": (F32, None)}, {"shape": np.array([-1, 8])})
    for sizes in ("b=3 s=4,8", "b=3 s=8,4", "b=3 s=5,7"):
        bundle = ogc.compile(path, tmp_path / "m.ogc", sizes)
        for s in sizes.split("=")[-1].split(","):
            check(ogc, bundle, path, rows(3, int(s), 8))
            refused(lambda s=s: ogc.run(bundle, rows(2, int(s), 8)), "'b' is not padded", "in other places in other graphs")
    bundle = ogc.compile(path, tmp_path / "m.ogc", "b=3,5 s=4")
    for b in (2, 3, 4, 5):
        check(ogc, bundle, path, rows(b, 4, 8))


@pytest.mark.parametrize("sizes", ["b=4 s=4,8", "b=4 s=8,4"])
def test_rows_that_mix_for_some_sizes_of_another_dimension(ogc, tmp_path, sizes):
    """A condition on s chooses the branch that averages over b, in one of the graphs."""
    branches = {"then_branch": [node("ReduceMean", "x axis", "m", keepdims=1), node("Sub", "x m", "o")], "else_branch": [node("Neg", "x", "o")]}
    graphs = {name: helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("o", F32, None)]) for name, nodes in branches.items()}
    path = save(tmp_path, [node("Shape", "x", "shape"), node("Gather", "shape one", "s"), node("Greater", "s five", "c"), node("If", "c", "y", **graphs)],
                {"x": (F32, ("b", "s", 4))}, {"y": (F32, None)}, {"one": np.array(1), "five": np.array(5), "axis": np.array([0])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", sizes)
    for s in (4, 8):
        check(ogc, bundle, path, rows(4, s, 4))
        refused(lambda s=s: ogc.run(bundle, rows(3, s, 4)), "'b' is not padded: ReduceMean node 'the ReduceMean' reduces over it")


@pytest.mark.parametrize("sizes", ["b=4 s=2,8", "b=4 s=8,2"])
def test_axis_that_another_dimension_decides(ogc, tmp_path, sizes):
    """The same operators in both graphs, but the mean is over s in one and over b in the other."""
    path = save(tmp_path, [node("Shape", "x", "shape"), node("Gather", "shape one", "s"), node("Less", "s five", "c"), node("Cast", "c", "axis", to=TensorProto.INT64),
                           node("ReduceMean", "x axis", "m", keepdims=1), node("Sub", "x m", "y")],
                {"x": (F32, ("b", "s"))}, {"y": (F32, None)}, {"one": np.array([1]), "five": np.array([5])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", sizes)
    for s in (2, 8):
        check(ogc, bundle, path, rows(4, s))
        refused(lambda s=s: ogc.run(bundle, rows(3, s)), "'b' is not padded: ReduceMean node 'the ReduceMean' reduces over it")


def test_pieces_that_hold_several_rows_for_some_sizes_of_another_dimension(ogc, tmp_path):
    """Pieces of 8: two of a row of 16, but two rows of 4 in one."""
    path = save(tmp_path, [node("Reshape", "x pieces", "p"), node("Softmax", "p", "q", axis=1), node("Shape", "x", "shape"),
                           helper.make_node("Reshape", ["q", "shape"], ["y"])],
                {"x": (F32, ("b", "s"))}, {"y": (F32, None)}, {"pieces": np.array([-1, 8])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", "b=4 s=16")
    check(ogc, bundle, path, rows(3, 16))
    bundle = ogc.compile(path, tmp_path / "m.ogc", "b=4 s=16,4")
    check(ogc, bundle, path, rows(4, 4))
    refused(lambda: ogc.run(bundle, rows(3, 4)), "'b' is not padded")


def mixing(op, tmp_path):
    nodes = {
        "ReduceMean": [node("ReduceMean", "x axis", "m", keepdims=1), node("Sub", "x m", "y")],
        "Softmax": [node("Softmax", "x", "y", axis=0)],
        "CumSum": [node("CumSum", "x zero", "y")],
        "MatMul": [node("Transpose", "x", "t", perm=[1, 0]), node("MatMul", "t x", "y")],
        "Gather": [node("Gather", "x last", "y", axis=0)],
        "Concat": [node("Concat", "x x", "y", axis=0)],
        "Div": [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Cast", "n", "f", to=F32), node("Div", "x f", "y")],
    }[op]
    return save(tmp_path, nodes, {"x": (F32, ("batch", 4))}, {"y": (F32, None)}, {"axis": np.array([0]), "zero": np.array(0), "last": np.array([-1])})


@pytest.mark.parametrize("op", ["ReduceMean", "Softmax", "CumSum", "MatMul", "Gather", "Concat", "Div"])
def test_rows_that_mix(ogc, tmp_path, op):
    """Padding would change results: it is refused, and the operator is named."""
    path = mixing(op, tmp_path)
    answer = ogc("explain", path, "--symbol", "batch")
    assert f"{op} node 'the {op}'" in answer and "not safe" in answer, answer
    bundle = ogc.compile(path, tmp_path / "m.ogc", "batch=4")
    assert answer == ogc("explain", bundle, "--symbol", "batch")
    check(ogc, bundle, path, rows(4, 4))
    refused(lambda: ogc.run(bundle, rows(3, 4)), "3x4")


@pytest.mark.parametrize("op, limit", [("Div", 8), ("Min", 4), ("Min", 2), ("Greater", 4), ("Greater", 1), ("Equal", 5)])
def test_steps_of_the_size(ogc, tmp_path, op, limit):
    """Arithmetic on the size that two neighbouring sizes agree on, and others do not."""
    nodes = [node("Shape", "x", "s", end=1), node(op, "s limit", "q"), node("Cast", "q", "f", to=F32), node("Mul", "x f", "y")]
    path = save(tmp_path, nodes, {"x": (F32, ("batch", 4))}, {"y": (F32, None)}, {"limit": np.array([limit])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", "batch=9")
    assert f"{op} node 'the {op}' computes with its size" in ogc("explain", bundle)
    refused(lambda: ogc.run(bundle, rows(limit, 4)), f"{limit}x4")


def test_steps_that_no_call_reaches(ogc, tmp_path):
    """A limit outside of the sizes of all graphs is none; a larger graph makes it one."""
    nodes = [node("Shape", "x", "s", end=1), node("Max", "s limit", "q"), node("Cast", "q", "f", to=F32), node("Mul", "x f", "y")]
    path = save(tmp_path, nodes, {"x": (F32, ("batch", 4))}, {"y": (F32, None)}, {"limit": np.array([20])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", "batch=9")
    check(ogc, bundle, path, rows(3, 4))
    bundle = ogc.compile(path, tmp_path / "n.ogc", "batch=9,30")
    assert "computes with its size" in ogc("explain", bundle)


def test_parts_that_are_whole_in_small_graphs(ogc, tmp_path):
    """The last six rows are all of them in one graph, not in the other."""
    path = save(tmp_path, [node("Slice", "x from to", "y")], {"x": (F32, ("batch", 4))}, {"y": (F32, None)}, {"from": np.array([-6]), "to": np.array([99])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", "batch=3,8")
    assert "not safe: Slice node 'the Slice'" in ogc("explain", bundle)
    refused(lambda: ogc.run(bundle, rows(5, 4)), "5x4")
    check(ogc, ogc.compile(path, tmp_path / "n.ogc", "batch=3,6"), path, rows(5, 4))
    prefix = save(tmp_path, [node("Slice", "x from to", "y")], {"x": (F32, ("batch", 4))}, {"y": (F32, None)}, {"from": np.array([0]), "to": np.array([15])})
    assert "takes some positions out" in ogc("explain", ogc.compile(prefix, tmp_path / "p.ogc", "batch=20"))


def test_pieces_that_are_one_for_size_1(ogc, tmp_path):
    """Rows of several batches lie in pieces, whichever graph comes first."""
    path = save(tmp_path, [node("Reshape", "x all", "y")], {"x": (F32, ("batch", "seq"))}, {"y": (F32, None)}, {"all": np.array([-1])})
    for shapes in (["batch=1 seq=4", "batch=2 seq=4"], ["batch=1 seq=8", "batch=2 seq=4"]):
        bundle = ogc.compile(path, tmp_path / "m.ogc", shapes)
        assert "Reshape node 'the Reshape' makes an output that holds the positions in more than one piece" in ogc("explain", bundle, "--symbol", "seq")
        refused(lambda bundle=bundle: ogc.run(bundle, rows(2, 3)), "2x3")


def test_squeezed_rows(ogc, tmp_path):
    """A size of 1 that disappears is another output, so that it cannot run in a larger graph."""
    path = save(tmp_path, [node("Squeeze", "x", "y")], {"x": (F32, ("batch", 4))}, {"y": (F32, None)})
    assert "not safe" in ogc("explain", path, "--symbol", "batch")


def test_explain_names_the_symbols(ogc, tmp_path):
    path = mlp(tmp_path)
    assert ogc("explain", path).splitlines() == ["symbol 'batch': padding is safe, its positions never mix",
                                                 "symbol 'seq': padding is safe, its positions never mix"]
    refused(lambda: ogc("explain", path, "--symbol", "rows"), "there is no symbol 'rows', expected 'batch', 'seq'")


def test_value_of_an_input_that_decides_shapes(ogc, tmp_path):
    """What compile takes, explain and plan take too; without the value, the option is named."""
    path = save(tmp_path, [node("ReduceSum", "x axes", "y", keepdims=0)], {"x": (F32, ("batch", 3, 4)), "axes": (I64, ("k",))}, {"y": (F32, None)})
    assert ogc("explain", path, "--value", "axes=[1]") == "symbol 'batch': padding is safe, its positions never mix\n"
    assert "batch=2,5" in ogc("plan", path, "--value", "axes=[1]", "--trace", trace_of(tmp_path, "batch\n2\n5\n"))
    for command in (["compile", path, "--shapes", "batch=2 k=1"], ["explain", path], ["plan", path, "--trace", trace_of(tmp_path, "batch,k\n2,1\n")]):
        refused(lambda: ogc(*command), "its shape depends on the data", "--value 'axes=…'")


def test_random_calls_of_buckets(ogc, tmp_path):
    """B43: graphs of one bundle called in any order, with data of their own each time."""
    path = save(tmp_path, [node("Gemm", "x w b", "y")], {"x": (F32, ("b", 8))}, {"y": (F32, ("b", 6))},
                {"w": RNG.standard_normal((8, 6)).astype(np.float32), "b": RNG.standard_normal(6).astype(np.float32)})
    bundle = ogc.compile(path, tmp_path / "m.ogc", "b=1,4,16")
    for b in (1, 4, 1, 16, 4, 1):
        check(ogc, bundle, path, rows(b, 8))
    output = ogc.verify(bundle, "--random-calls", 10000)
    assert "ok    10000 random calls of 3 graphs" in output
    growth = re.search(r"memory behind the first tenth: host ([+-]\d+) KiB, device \+0 KiB", output)
    assert growth and int(growth[1]) < 1024, output


def test_common_work_is_shared(ogc, tmp_path):
    """Weights lie in the bundle once, and kernels of equal text are compiled once."""
    path = mlp(tmp_path)
    one = ogc.inspect(ogc.compile(path, tmp_path / "one.ogc", "batch=2 seq=6"))
    two = ogc.inspect(ogc.compile(path, tmp_path / "two.ogc", ["a: batch=2 seq=6", "b: batch=2 seq=6"]))
    many = ogc.inspect(ogc.compile(path, tmp_path / "many.ogc", "batch=2,3,4,6 seq=6,4,3,2"))
    assert many["weights_bytes"] == two["weights_bytes"] == one["weights_bytes"]
    assert two["kernels"] == one["kernels"]


def test_threads_do_not_change_the_bundle(ogc, tmp_path):
    path = mlp(tmp_path)
    made = [ogc.compile(path, tmp_path / f"{threads}.ogc", "batch=1..4 seq=4,8", threads=threads).read_bytes() for threads in (1, 2, 4)]
    assert made[0] == made[1] == made[2]


def test_plan_of_a_trace(ogc, tmp_path):
    path = mlp(tmp_path)
    (tmp_path / "trace.csv").write_text("batch,seq,count\n" + "".join(f"{b},16,{9 - b}\n" for b in range(1, 9)))
    text = ogc("plan", path, "--trace", tmp_path / "trace.csv", "--memory", "1GiB", "--max-graphs", 3)
    shapes = re.findall(r"--shapes '(.*)'", text)
    assert "3 graphs for 8 shapes of 36 calls" in text and re.search(r"regret: \d+\.\d % more work", text), text
    bundle = ogc.compile(path, tmp_path / "m.ogc", shapes)
    assert len(ids(ogc, bundle)) == 3
    for batch in (1, 3, 8):
        check(ogc, bundle, path, rows(batch, 16, 8))
    exact = ogc("plan", mixing("Softmax", tmp_path), "--trace", trace_of(tmp_path, "batch\n1\n3\n4\n"))
    assert "exact sizes, padding is not safe" in exact and "batch=1,3,4" in "".join(re.findall(r"--shapes '(.*)'", exact)) and "regret: 0.0 %" in exact


def test_plan_counts_states_once(ogc, tmp_path):
    """A state is neither an input nor an output: its 4 MB are counted once."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["s"], ["s_next"])]
    state = (TensorProto.FLOAT, (2**20,))
    onnx.save(harness.make_model(nodes, {"x": (TensorProto.FLOAT, ("batch", 4)), "s": state}, {"y": (TensorProto.FLOAT, ("batch", 4)), "s_next": state}), tmp_path / "m.onnx")
    trace = ("--trace", trace_of(tmp_path, "batch\n1\n2\n"))
    assert "buffers 8.4," in ogc("plan", tmp_path / "m.onnx", *trace)
    assert "buffers 4.2," in ogc("plan", tmp_path / "m.onnx", *trace, "--state", "s=s_next")
    refused(lambda: ogc("plan", tmp_path / "m.onnx", *trace, "--state", "s=z"), "'z'")


def trace_of(tmp_path, text):
    (tmp_path / "other.csv").write_text(text)
    return tmp_path / "other.csv"


@pytest.mark.parametrize("trace, options, words", [
    ("batch\n1\n", (), ["no column 'seq'"]),
    ("batch,seq,x\n1,2,3\n", (), ["column 'x'", "'batch', 'seq'"]),
    ("batch,seq\n1,0\n", (), ["other.csv:2", "'0' is no size of 'seq'"]),
    ("batch,seq\n8,16\n", ("--memory", "1KiB"), ["--memory"]),
], ids=["missing", "unknown", "zero", "memory"])
def test_wrong_traces(ogc, tmp_path, trace, options, words):
    refused(lambda: ogc("plan", mlp(tmp_path), "--trace", trace_of(tmp_path, trace), *options), *words)


@pytest.mark.model
def test_twelve_graphs(ogc, tmp_path):
    """One bundle of a small BERT in fp16: weights once, scratch of the largest, all right in a random order. scripts/gpu_shapes.py does this for 20 IDs of
    bert_base_dyn."""
    path = harness.shared_model("bert_tiny_legacy_dyn")
    ids = [(batch, seq) for batch in (1, 2, 4) for seq in (8, 16, 32, 64)]
    one = ogc.inspect(ogc.compile(path, tmp_path / "one.ogc", "batch=4 seq=64", precision="fp16"))
    bundle = ogc.compile(path, tmp_path / "m.ogc", "batch=1,2,4 seq=8..64:x2", precision="fp16")
    facts = ogc.inspect(bundle)
    assert len(facts["graphs"]) == len(ids)
    # Beside the weights of the model there are small constants that depend on the shape.
    assert facts["weights_bytes"] <= one["weights_bytes"] + 1024 * len(ids)
    assert facts["sections"]["scratch_bytes"] <= 1.02 * max(graph["arena"]["bound_bytes"] for graph in facts["graphs"])
    for number in RNG.permutation(len(ids)):
        inputs = harness.model_inputs(path, dict(zip(("batch", "seq"), ids[number])), seed=int(number))
        harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 2e-2)
    assert "ok  " in ogc.verify(bundle, "--random-calls", 200, "--pool", 4, "--threads", 2)


@pytest.mark.model
def test_resnet_batches(ogc, bundles):
    """Batch padding is proved safe: a call with three images runs in the graph for four."""
    bundle = bundles.get("resnet50_dyn_bn", "batch=4")
    (symbol,) = ogc.inspect(bundle)["symbols"]
    assert symbol["padding_safe"], symbol
    path = harness.shared_model("resnet50_dyn_bn")
    inputs = harness.model_inputs(path, {symbol["name"]: 3})
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 1e-4)


@pytest.mark.model
def test_bert_buckets(ogc, bundles):
    """Batch padding is safe, sequences are mixed by the attention; the graphs share weights and are right in any order."""
    bundle = bundles.get("bert_base_dyn", "batch=1,4 seq=16,32")
    facts = ogc.inspect(bundle)
    batch, seq = facts["symbols"]
    assert batch["padding_safe"] and not seq["padding_safe"], facts["symbols"]
    assert "attends" in seq["reason"] and seq["node"], seq
    path = harness.shared_model("bert_base_dyn")
    for sizes in ((4, 16), (3, 32), (1, 16)):
        inputs = harness.model_inputs(path, dict(zip(("batch", "seq"), sizes)))
        harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), 1e-4)
    refused(lambda: ogc.run(bundle, harness.model_inputs(path, {"batch": 1, "seq": 20})), "'seq' is not padded", "attends")
    assert "ok  " in ogc.verify(bundle, "--random-calls", 12, "--threads", 2)



@pytest.mark.model
def test_padding_of_large_and_small_graphs(ogc):
    """Indices made of constants are folded in small graphs and left to each run in large ones (more than 4,096 elements): no other computation."""
    model = harness.shared_model("bert_base_dyn")
    assert ogc("explain", model, "--symbol", "batch", "--shapes", "batch=1,8,16 seq=32,512").splitlines() == ["symbol 'batch': padding is safe, its positions never mix"]
