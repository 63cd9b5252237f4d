"""Small graphs whose operators should meet in one kernel, and graphs with unusual inputs, outputs and names."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(7)


def node(op, inputs, outputs, **attributes):
    """A node from space separated names ("-" is an absent input)."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"{op} of {outputs}", **attributes)


def weights(**shapes):
    return {name: (RNG.standard_normal(shape) / np.sqrt(max(1, shape[-1]))).astype(np.float32) for name, shape in shapes.items()}


def ints(*values):
    return np.array(values, np.int64)


def attention():
    """Self-attention as exporters write it, with a mask and a residual."""
    nodes, (s, h, d) = [], (24, 4, 16)
    for name in "qkv":
        nodes += [node("MatMul", f"x w{name}", f"{name}0"), node("Add", f"{name}0 b{name}", f"{name}1"), node("Reshape", f"{name}1 split", f"{name}2"),
                  node("Transpose", f"{name}2", f"{name}3", perm=[0, 2, 1, 3])]
    nodes += [node("Transpose", "k3", "k4", perm=[0, 1, 3, 2]), node("MatMul", "q3 k4", "s0"), node("Mul", "s0 scale", "s1"), node("Add", "s1 mask", "s2"),
              node("Softmax", "s2", "p", axis=-1), node("MatMul", "p v3", "o0"), node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]),
              node("Reshape", "o1 join", "o2"), node("MatMul", "o2 wo", "o3"), node("Add", "o3 x", "o4"), node("LayerNormalization", "o4 g b", "y", axis=-1)]
    e = h * d
    constants = weights(wq=(e, e), wk=(e, e), wv=(e, e), wo=(e, e), bq=(e,), bk=(e,), bv=(e,), g=(e,), b=(e,))
    constants |= {"split": ints(1, s, h, d), "join": ints(1, s, e), "scale": np.float32(d ** -0.5),
                  "mask": np.where(np.tril(np.ones((s, s))), 0, -1e9).astype(np.float32)}
    return nodes, {"x": (F32, (1, s, e))}, {"y": (F32, (1, s, e))}, constants


def window_attention():
    """Attention in shifted windows: queries scaled as they come, a bias of positions, and a mask of windows that are split off for it."""
    w, s, h, d = 6, 9, 3, 8
    e = h * d
    nodes = [node("MatMul", "x wqkv", "a0"), node("Add", "a0 bqkv", "a1"), node("Reshape", "a1 heads", "a2"), node("Transpose", "a2", "a3", perm=[2, 0, 3, 1, 4])]
    nodes += [node("Gather", f"a3 {i}", f"{name}0", axis=0) for i, name in (("zero", "q"), ("one", "k"), ("two", "v"))]
    nodes += [node("Mul", "q0 scale", "q1"), node("Transpose", "k0", "k1", perm=[0, 1, 3, 2]), node("MatMul", "q1 k1", "s0"), node("Add", "s0 bias", "s1"), node("Reshape", "s1 windows", "s2"),
              node("Add", "s2 mask", "s3"), node("Reshape", "s3 scores", "s4"), node("Softmax", "s4", "p", axis=-1), node("MatMul", "p v0", "o0"), node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]),
              node("Reshape", "o1 join", "o2"), node("MatMul", "o2 wo", "o3"), node("Add", "o3 x", "y")]
    constants = weights(wqkv=(e, 3 * e), bqkv=(3 * e,), wo=(e, e), bias=(1, h, s, s))
    constants |= {"heads": ints(w, s, 3, h, d), "zero": np.array(0), "one": np.array(1), "two": np.array(2), "scale": np.float32(d ** -0.5), "windows": ints(1, w, h, s, s), "scores": ints(w, h, s, s),
                  "mask": np.where(RNG.random((1, w, 1, s, s)) < 0.3, -100, 0).astype(np.float32), "join": ints(w, s, e)}
    return nodes, {"x": (F32, (w, s, e))}, {"y": (F32, (w, s, e))}, constants


def audio_attention():
    """Projections of which one has no bias, queries scaled before their heads are split."""
    nodes, (s, h, d) = [], (40, 2, 16)
    e = h * d
    for name, last in (("q", "q2"), ("k", "k0"), ("v", "v1")):
        nodes += [node("MatMul", f"x w{name}", f"{name}0"), *([node("Add", f"{name}0 b{name}", f"{name}1")] if name != "k" else []), *([node("Mul", "q1 scale", "q2")] if name == "q" else []),
                  node("Reshape", f"{last} split", f"{name}3"), node("Transpose", f"{name}3", f"{name}4", perm=[0, 2, 1, 3])]
    nodes += [node("Transpose", "k4", "k5", perm=[0, 1, 3, 2]), node("MatMul", "q4 k5", "s0"), node("Softmax", "s0", "p", axis=-1), node("MatMul", "p v4", "o0"), node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]),
              node("Reshape", "o1 join", "o2"), node("MatMul", "o2 wo", "o3"), node("Add", "o3 x", "y")]
    constants = weights(wq=(e, e), wk=(e, e), wv=(e, e), wo=(e, e), bq=(e,), bv=(e,)) | {"split": ints(1, s, h, d), "join": ints(1, s, e), "scale": np.float32(d ** -0.5)}
    return nodes, {"x": (F32, (1, s, e))}, {"y": (F32, (1, s, e))}, constants


def feed_forward():
    """Two layers with GELU and a residual."""
    nodes = [node("LayerNormalization", "x g b", "n", axis=-1), node("MatMul", "n w1", "a"), node("Add", "a b1", "c"), node("Gelu", "c", "d"),
             node("MatMul", "d w2", "e"), node("Add", "e b2", "f"), node("Add", "f x", "y")]
    return nodes, {"x": (F32, (10, 48))}, {"y": (F32, (10, 48))}, weights(g=(48,), b=(48,), w1=(48, 192), b1=(192,), w2=(192, 48), b2=(48,))


def residual_block():
    """Convolutions, batch normalization, a shortcut, pooling and a classifier."""
    nodes = [node("Conv", "x w1", "c1", pads=[1] * 4), node("BatchNormalization", "c1 s t m v", "b1"), node("Relu", "b1", "r1"),
             node("Conv", "r1 w2 t", "c2", pads=[1] * 4), node("Conv", "x w3", "c3"), node("Add", "c2 c3", "a"), node("Relu", "a", "r2"),
             node("GlobalAveragePool", "r2", "p"), node("Flatten", "p", "q"), node("Gemm", "q w4 b4", "y", transB=1)]
    constants = weights(w1=(12, 3, 3, 3), w2=(12, 12, 3, 3), w3=(12, 3, 1, 1), s=(12,), t=(12,), m=(12,), w4=(7, 12), b4=(7,))
    constants["v"] = np.abs(weights(v=(12,))["v"]) + np.float32(1)
    return nodes, {"x": (F32, (2, 3, 9, 9))}, {"y": (F32, (2, 7))}, constants


def squeeze_and_excite():
    nodes = [node("Conv", "x w1", "a", group=16, pads=[1] * 4), node("HardSwish", "a", "h"), node("ReduceMean", "h axes", "m", keepdims=1),
             node("Conv", "m w2 b2", "c"), node("Relu", "c", "r"), node("Conv", "r w3 b3", "e"), node("HardSigmoid", "e", "g"), node("Mul", "h g", "y")]
    constants = weights(w1=(16, 1, 3, 3), w2=(4, 16, 1, 1), b2=(4,), w3=(16, 4, 1, 1), b3=(16,)) | {"axes": ints(2, 3)}
    return nodes, {"x": (F32, (1, 16, 8, 8))}, {"y": (F32, (1, 16, 8, 8))}, constants


def dense_block():
    """Layers that each read all that came before: every result is written where the concatenation lies."""
    nodes, constants, x = [node("Conv", "x w", "c0", pads=[1] * 4)], weights(w=(8, 3, 3, 3)), "c0"
    for layer in range(3):
        channels = 8 * (layer + 1)
        constants |= weights(**{f"s{layer}": (channels, 1, 1), f"t{layer}": (channels, 1, 1), f"u{layer}": (16, channels, 1, 1), f"v{layer}": (8, 16, 3, 3)})
        nodes += [node("Mul", f"{x} s{layer}", f"m{layer}"), node("Add", f"m{layer} t{layer}", f"a{layer}"), node("Relu", f"a{layer}", f"r{layer}"),
                  node("Conv", f"r{layer} u{layer}", f"b{layer}"), node("Relu", f"b{layer}", f"d{layer}"),
                  node("Conv", f"d{layer} v{layer}", f"n{layer}", pads=[1] * 4), node("Concat", f"{x} n{layer}", f"c{layer + 1}", axis=1)]
        x = f"c{layer + 1}"
    nodes += [node("GlobalAveragePool", x, "p"), node("Flatten", "p", "y")]
    return nodes, {"x": (F32, (2, 3, 7, 7))}, {"y": (F32, (2, 32))}, constants


def halves():
    """Halves that are scanned: each scan reads its half where the product wrote it."""
    nodes = [node("MatMul", "x w", "m"), node("Split", "m", "a b", axis=0, num_outputs=2), node("CumSum", "a axis", "c"),
             node("CumSum", "b axis", "d"), node("Add", "c d", "y")]
    return nodes, {"x": (F32, (8, 16))}, {"y": (F32, (4, 32))}, weights(w=(16, 32)) | {"axis": np.int64(1)}


def odd_parts():
    """Parts of an input for scans: the second begins between multiples of 16 bytes and is copied, the third does not."""
    nodes = [node("Split", "x sizes", "a b c", axis=0), node("CumSum", "a axis", "d"), node("CumSum", "b axis", "e"), node("CumSum", "c axis", "f"),
             node("Concat", "d e f", "y", axis=0)]
    return nodes, {"x": (F32, (9, 6))}, {"y": (F32, (9, 6))}, {"axis": np.int64(0), "sizes": ints(3, 3, 3)}


def embedding():
    """Token and position embedding with a mask made from integers."""
    nodes = [node("Gather", "table ids", "t"), node("Add", "t positions", "e"), node("LayerNormalization", "e g b", "n"), node("Cast", "mask", "k", to=F32),
             node("Unsqueeze", "k last", "u"), node("Mul", "n u", "y")]
    constants = weights(table=(50, 32), positions=(9, 32), g=(32,), b=(32,)) | {"last": ints(-1)}
    return nodes, {"ids": (I64, (2, 9)), "mask": (I64, (2, 9))}, {"y": (F32, (2, 9, 32))}, constants


def branches():
    """Branches of different lengths that meet in a Concat, with a value used on the way as an output too."""
    nodes = [node("Relu", "x", "r"), node("MatMul", "r w1", "a"), node("MatMul", "r w2", "b0"), node("Tanh", "b0", "b"), node("Softmax", "r", "c"),
             node("Concat", "a b c", "y", axis=1)]
    return nodes, {"x": (F32, (5, 8))}, {"y": (F32, (5, 20)), "b": (F32, (5, 8))}, weights(w1=(8, 4), w2=(8, 8))


def shape_chain():
    """Sizes computed from the input's shape, which must be folded away."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n axes", "n1"), node("Concat", "n1 minus", "t", axis=0),
             node("Reshape", "x t", "f"), node("MatMul", "f w", "y")]
    constants = weights(w=(12, 5)) | {"zero": np.int64(0), "axes": ints(0), "minus": ints(-1)}
    return nodes, {"x": (F32, (3, 4, 3))}, {"y": (F32, (3, 5))}, constants


def pass_through():
    """An input and a constant that are outputs, an unused input, and an output of Identity."""
    return [node("Identity", "x", "y")], {"x": (F32, (2, 3)), "unused": (F32, (4,))}, {"x": (F32, (2, 3)), "w": (F32, (3,)), "y": (F32, (2, 3))}, weights(w=(3,))


def names():
    """Names that collide or are no longer names once they are made into identifiers or file names."""
    nodes = [helper.make_node("Add", ["in/x", "a/b"], ["t:0"], name="n"), helper.make_node("Mul", ["t:0", "a:b"], ["t_0"], name=""),
             helper.make_node("Sub", ["t_0", "a_b"], ["out y"], name="")]
    constants = {"a/b": np.float32(1), "a:b": np.float32(10), "a_b": np.float32(100)}
    return nodes, {"in/x": (F32, (2, 3))}, {"out y": (F32, (2, 3))}, constants


def same_input_twice():
    return [node("Mul", "x x", "s"), node("MatMul", "s x", "y")], {"x": (F32, (6, 6))}, {"y": (F32, (6, 6))}, {}


def only_constants():
    """A result that does not depend on the input."""
    return [node("Add", "a b", "y"), node("Neg", "x", "z")], {"x": (F32, (2,))}, {"y": (F32, (3,)), "z": (F32, (2,))}, weights(a=(3,), b=(3,))


def scalars():
    return [node("Mul", "x two", "y")], {"x": (F32, ())}, {"y": (F32, ())}, {"two": np.float32(2)}


def no_elements():
    return [node("Relu", "x", "r"), node("Concat", "r z", "y", axis=0)], {"x": (F32, (0, 3)), "z": (F32, (2, 3))}, {"y": (F32, (2, 3))}, {}


GRAPHS = [attention, window_attention, audio_attention, feed_forward, residual_block, squeeze_and_excite, dense_block, halves, odd_parts, embedding, branches, shape_chain, pass_through, names, same_input_twice,
          only_constants, scalars, no_elements]
# Most nodes of graphs whose fusion is known to be possible.
# residual_block and squeeze_and_excite: the input's change of layout is a kernel. branches: eight columns are too few for a row kernel, so the
# softmax is three.
MOST_NODES = {attention: 5, window_attention: 3, audio_attention: 4, feed_forward: 3, residual_block: 6, squeeze_and_excite: 6, halves: 4, odd_parts: 5, embedding: 1, branches: 7, shape_chain: 1}


def build(graph, tmp_path):
    nodes, inputs, outputs, constants = graph()
    model = harness.make_model(nodes, inputs, outputs, constants)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    return path, harness.model_inputs(path)


def limit_tokens(inputs):
    return {name: value % 50 if name == "ids" else value for name, value in inputs.items()}


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_right_in_any_order(ogc, tmp_path, graph, precision):
    path, inputs = build(graph, tmp_path)
    inputs = limit_tokens(inputs)
    bundle = ogc.compile(path, tmp_path / "m.ogc", precision=precision)
    tolerance = {"fp32": 1e-5, "fp16": 5e-3, "bf16": 3e-2}[precision]
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), tolerance)
    ogc.verify(bundle, "--random-orders", 10, "--poison")


@pytest.mark.parametrize("graph", MOST_NODES, ids=lambda graph: graph.__name__)
def test_fusion(ogc, tmp_path, graph):
    path, _ = build(graph, tmp_path)
    (facts,) = ogc.inspect(ogc.compile(path, tmp_path / "m.ogc"))["graphs"]
    assert facts["nodes"]["total"] <= MOST_NODES[graph]


def test_compiles_to_the_same_bytes(ogc, tmp_path):
    path, _ = build(attention, tmp_path)
    first = ogc.compile(path, tmp_path / "a.ogc", target="sm_90,cpu", cache_dir=tmp_path / "k1", threads=1)
    second = ogc.compile(path, tmp_path / "b.ogc", target="sm_90,cpu", cache_dir=tmp_path / "k2", threads=2)
    third = ogc.compile(path, tmp_path / "c.ogc", target="sm_90,cpu", cache_dir=tmp_path / "k2", threads=2)
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()


def test_two_graphs(ogc, tmp_path):
    """Several --shapes give several graphs in one bundle, each with its ID."""
    nodes, _, _, constants = feed_forward()
    onnx.save(harness.make_model(nodes, {"x": (F32, ("n", 48))}, {"y": (F32, ("n", 48))}, constants), tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc", ["small: x=2x48", "large: x=9x48"])
    assert [graph["id"] for graph in ogc.inspect(bundle)["graphs"]] == ["small", "large"]
    for graph, n in (("small", 2), ("large", 9)):
        inputs = harness.model_inputs(tmp_path / "m.onnx", {"n": n})
        harness.check_outputs(ogc.run(bundle, inputs, graph=graph), harness.reference(tmp_path / "m.onnx", inputs), 1e-5)


def test_seed_draws_the_same_inputs(ogc, tmp_path):
    path, _ = build(feed_forward, tmp_path)
    bundle = ogc.compile(path, tmp_path / "m.ogc")
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        ogc("run", bundle, "--device", "cpu", "--seed", seed, "--output-dir", tmp_path / folder)
    a, b, c = ((tmp_path / folder / "y.npy").read_bytes() for folder in "abc")
    assert a == b != c


def test_walkthrough_is_current(ogc):
    """docs/walkthrough.md is what the compiler prints."""
    script = harness.ROOT / "scripts/make_walkthrough.py"
    done = subprocess.run([sys.executable, script, "--check", "--ogc", ogc.program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ir_of_a_bundle_parses(ogc, tmp_path):
    """`inspect --ir` prints the graph as the plan phase does: text that is valid IR."""
    path, _ = build(residual_block, tmp_path)
    text = ogc("inspect", ogc.compile(path, tmp_path / "m.ogc"), "--ir")
    done = subprocess.run([Path(ogc.program).parent / "ogc-opt"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    assert "cg.graph @default" in done.stdout


@pytest.mark.parametrize("what", ["model", "fifo"])
def test_output_takes_the_place_of_a_bundle_only(ogc, tmp_path, what):
    path, _ = build(feed_forward, tmp_path)
    output = path if what == "model" else tmp_path / "fifo"
    if what == "fifo":
        os.mkfifo(output)
    before = path.read_bytes()
    with pytest.raises(harness.OgcError, match="it is the model" if what == "model" else "no regular file"):
        ogc.compile(path, output)
    assert path.read_bytes() == before and (what == "model" or output.is_fifo())


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "host"])
def test_batched_products_of_narrow_matrices(ogc, tmp_path, cpu):
    """Widths around the vector width: panels are filled by loops that the optimizer may join."""
    widths = (1, 2, 3, 4, 5, 8, 9, 16, 17)
    nodes = [node("MatMul", f"x w{n}", f"y{n}") for n in widths]
    inputs = {"x": (F32, (3, 5, 7))} | {f"w{n}": (F32, (3, 7, n)) for n in widths}
    onnx.save(harness.make_model(nodes, inputs, {f"y{n}": (F32, (3, 5, n)) for n in widths}, {}), tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc", cpu=cpu)
    values = harness.model_inputs(tmp_path / "m.onnx")
    harness.check_outputs(ogc.run(bundle, values), harness.reference(tmp_path / "m.onnx", values), 1e-5)


def test_front_of_rows(ogc, tmp_path):
    """An index into the front part of a row, made of two, is no index into the whole row."""
    x = RNG.standard_normal((1, 5, 24)).astype(np.float32)
    nodes = [node("Split", "x sizes", "a b", axis=2), node("Reshape", "a shape", "r"), node("Split", "r halves", "low high", axis=3),
             node("Neg", "high", "n"), node("Concat", "n low", "y", axis=3)]
    constants = {"sizes": ints(16, 8), "shape": ints(1, 5, 4, 4), "halves": ints(2, 2)}
    model = harness.make_model(nodes, {"x": (F32, x.shape)}, {"y": (F32, (1, 5, 4, 4))}, constants)
    onnx.save(model, tmp_path / "m.onnx")
    actual = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {"x": x})["y"]
    rows = x[:, :, :16].reshape(1, 5, 4, 4)
    np.testing.assert_array_equal(actual, np.concatenate([-rows[..., 2:], rows[..., :2]], -1))


def test_many_parts(ogc, tmp_path):
    """Planning takes time about linear in the nodes: a thousand parts that are scanned."""
    count = 1000
    nodes = [node("MatMul", "x w", "m"), node("Split", "m", " ".join(f"a{i}" for i in range(count)), axis=0, num_outputs=count)]
    nodes += [node("CumSum", f"a{i} axis", f"b{i}") for i in range(count)] + [node("Concat", " ".join(f"b{i}" for i in range(count)), "y", axis=0)]
    constants = weights(w=(8, 8)) | {"axis": np.int64(1)}
    onnx.save(harness.make_model(nodes, {"x": (F32, (count, 8))}, {"y": (F32, (count, 8))}, constants), tmp_path / "m.onnx")
    ogc("compile", tmp_path / "m.onnx", "--target", "cpu", "--stop-after", "plan", "-o", tmp_path / "plan.mlir", timeout=30)
    assert (tmp_path / "plan.mlir").read_text().count("= cg.kernel") <= count + 2
