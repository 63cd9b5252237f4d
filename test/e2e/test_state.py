"""States: inputs and outputs that are one tensor of the context, updated in place once a run."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
LAYERS, HEADS, CAPACITY, DIM = 2, 2, 70, 8
CACHES = [f"{kind}{layer}" for layer in range(LAYERS) for kind in "kv"]


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"{op} of {outputs}", **attributes)


def ints(*values):
    return np.array(values, np.int64)


def decoder():
    """A decoder with caches of fixed capacity: the new key and value are put at a position that the model counts itself, and the mask
    goes by the length so far."""
    rng, width = np.random.default_rng(3), HEADS * DIM
    nodes = [node("Add", "pos one", "pos_next"), node("Expand", "pos heads_by_one", "at"), node("Concat", "zeros head_numbers at", "where", axis=1),
             node("LessOrEqual", "slots pos", "seen"), node("Where", "seen nothing lowest", "mask")]
    constants = {"one": ints(1), "heads_by_one": ints(HEADS, 1), "zeros": np.zeros((HEADS, 1), np.int64), "head_numbers": np.arange(HEADS).reshape(-1, 1),
                 "slots": np.arange(CAPACITY), "nothing": np.float32(0), "lowest": np.float32(-1e9), "scale": np.float32(DIM ** -0.5),
                 "one_query": ints(1, HEADS, 1, DIM), "update": ints(HEADS, DIM), "joined": ints(1, 1, width)}
    x = "x"
    for layer in range(LAYERS):
        for name in "qkvo":
            constants[f"w{name}{layer}"] = (rng.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32)
        for name in "qkv":
            nodes.append(node("MatMul", f"{x} w{name}{layer}", f"{name}_flat{layer}"))
        nodes += [node("Reshape", f"q_flat{layer} one_query", f"q{layer}"), node("Reshape", f"k_flat{layer} update", f"k_new{layer}"),
                  node("Reshape", f"v_flat{layer} update", f"v_new{layer}"), node("ScatterND", f"k{layer} where k_new{layer}", f"k{layer}_next"),
                  node("ScatterND", f"v{layer} where v_new{layer}", f"v{layer}_next"),
                  node("Transpose", f"k{layer}_next", f"keys{layer}", perm=[0, 1, 3, 2]), node("MatMul", f"q{layer} keys{layer}", f"s{layer}"),
                  node("Mul", f"s{layer} scale", f"scaled{layer}"), node("Add", f"scaled{layer} mask", f"masked{layer}"),
                  node("Softmax", f"masked{layer}", f"p{layer}", axis=-1), node("MatMul", f"p{layer} v{layer}_next", f"o{layer}"),
                  node("Reshape", f"o{layer} joined", f"j{layer}"), node("MatMul", f"j{layer} wo{layer}", f"r{layer}"),
                  node("Add", f"r{layer} {x}", f"x{layer + 1}")]
        x = f"x{layer + 1}"
    nodes.append(node("Tanh", x, "y"))
    cache = (F32, (1, HEADS, CAPACITY, DIM))
    inputs = {"x": (F32, (1, 1, width)), "pos": (I64, (1,))} | {name: cache for name in CACHES}
    outputs = {"y": (F32, (1, 1, width)), "pos_next": (I64, (1,))} | {f"{name}_next": cache for name in CACHES}
    return harness.make_model(nodes, inputs, outputs, constants)


def state_options(names):
    return [word for name in names for word in ("--state", f"{name}={name}_next")]


def run_steps(ogc, bundle, folder, steps, inputs, outputs):
    """Runs `ogc run --steps`; `inputs` have one value a step. Returns the outputs, one value a step."""
    words = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        words += ["--input", f"{name}={folder / name}.npy"]
    ogc("run", bundle, "--device", "cpu", "--steps", steps, "--output-dir", folder / "out", *words)
    return {name: np.load(folder / "out" / f"{name}.npy") for name in outputs}


def expected_steps(model, steps, inputs, states):
    """The same with onnxruntime, every state fed back."""
    kept = {name: np.zeros([d.dim_value for d in value.type.tensor_type.shape.dim], harness.TYPES[value.type.tensor_type.elem_type])
            for value in model.graph.input for name in [value.name] if name in states}
    results = []
    for step in range(steps):
        result = harness.reference(model, {name: array[step] for name, array in inputs.items()} | kept)
        kept = {name: result[f"{name}_next"] for name in states}
        results.append(result)
    return {name: np.stack([result[name] for result in results]) for name in results[0]}


@pytest.mark.parametrize("precision,tolerance", [("fp32", 1e-5), ("fp16", 2e-2)])
def test_decoder_steps(ogc, tmp_path, precision, tolerance):
    """64 steps equal onnxruntime step by step, each state advanced exactly once a run, and no node copies a cache."""
    model, states = decoder(), CACHES + ["pos"]
    onnx.save(model, tmp_path / "m.onnx")
    ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", "--precision", precision, *state_options(states))
    facts = ogc.inspect(tmp_path / "m.ogc")
    assert facts["graphs"][0]["nodes"]["memcpy"] == 0
    bytes_each = 4 if precision == "fp32" else 2
    assert facts["sections"]["state_bytes"] < 2 * LAYERS * (HEADS * CAPACITY * DIM * bytes_each + 256) + 256
    steps = 64
    x = np.random.default_rng(5).standard_normal((steps, 1, 1, HEADS * DIM)).astype(np.float32)
    expected = expected_steps(model, steps, {"x": x}, states)
    actual = run_steps(ogc, tmp_path / "m.ogc", tmp_path, steps, {"x": x}, list(expected))
    assert actual["pos_next"].ravel().tolist() == list(range(1, steps + 1))
    for step in range(steps):
        for name in expected:
            assert harness.relative_error(actual[name][step].astype(expected[name].dtype), expected[name][step]) <= tolerance, (step, name)
    ogc.verify(tmp_path / "m.ogc", "--random-orders", 50, "--poison", "--replays", 3)


def test_decoder_without_states(ogc, tmp_path):
    """The same model as a function: caches go in and come out."""
    model = decoder()
    onnx.save(model, tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    assert ogc.inspect(bundle)["sections"]["state_bytes"] == 0
    rng = np.random.default_rng(6)
    inputs = {"x": rng.standard_normal((1, 1, HEADS * DIM)).astype(np.float32), "pos": ints(0)}
    inputs |= {name: np.zeros((1, HEADS, CAPACITY, DIM), np.float32) for name in CACHES}
    for _ in range(4):
        expected = harness.reference(model, inputs)
        actual = ogc.run(bundle, inputs)
        harness.check_outputs(actual, expected, 1e-5)
        inputs |= {name: actual[f"{name}_next"] for name in CACHES + ["pos"]}


def small(nodes, inputs, outputs, constants=None):
    return harness.make_model(nodes, inputs, outputs, constants or {})


V = (F32, (6,))
# Models of states `a` and `b` (with an input `x`), and the copies that they need at most: none but where old and new value are needed
# at once, or a new value cannot be computed where the old one is.
CASES = {
    "counter": (small([node("Add", "a one", "a_next"), node("Identity", "a_next", "y")], {"a": V}, {"a_next": V, "y": V}, {"one": np.float32(1)}), 1),
    "old value is an output": (small([node("Add", "a x", "a_next"), node("Identity", "a", "y")], {"a": V, "x": V}, {"a_next": V, "y": V}), 1),
    "old and new": (small([node("Add", "a x", "a_next"), node("Softmax", "a_next", "s"), node("MatMul", "s a", "y")], {"a": V, "x": V},
                          {"a_next": V, "y": (F32, ())}), 1),
    "shift": (small([node("Slice", "a from to", "tail"), node("Concat", "tail x", "a_next", axis=0), node("ReduceSum", "a_next", "y", keepdims=1)],
                    {"a": V, "x": (F32, (1,))}, {"a_next": V, "y": (F32, (1,))}, {"from": ints(1), "to": ints(6)}), 1),
    "swap": (small([node("Identity", "b", "a_next"), node("Add", "a x", "b_next")], {"a": V, "b": V, "x": V}, {"a_next": V, "b_next": V}), 3),
    "rotate": (small([node("Identity", "b", "a_next"), node("Identity", "a", "b_next"), node("Add", "a x", "y")], {"a": V, "b": V, "x": V},
                     {"a_next": V, "b_next": V, "y": V}), 4),
    "stays": (small([node("Identity", "a", "a_next"), node("Add", "a x", "y")], {"a": V, "x": V}, {"a_next": V, "y": V}), 0),
    "replaced": (small([node("Relu", "x", "a_next"), node("Softmax", "a", "y")], {"a": V, "x": V}, {"a_next": V, "y": V}), 0),
    "scatter outside and twice": (small([node("ScatterND", "a at x", "a_next"), node("Add", "a_next a", "y")], {"a": V, "x": (F32, (3,))},
                                        {"a_next": V, "y": V}, {"at": ints(-1, 2, 0).reshape(3, 1)}), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_small_states(ogc, tmp_path, name):
    """Twelve runs from zero equal onnxruntime, and any order of the nodes gives the same bits."""
    model, copies = CASES[name]
    states = [value.name for value in model.graph.input if value.name in "ab"]
    onnx.save(model, tmp_path / "m.onnx")
    ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", *state_options(states))
    assert ogc.inspect(tmp_path / "m.ogc")["graphs"][0]["nodes"]["memcpy"] <= copies
    rng = np.random.default_rng(1)
    inputs = {value.name: rng.standard_normal([12] + [d.dim_value for d in value.type.tensor_type.shape.dim]).astype(np.float32)
              for value in model.graph.input if value.name not in states}
    expected = expected_steps(model, 12, inputs, states)
    actual = run_steps(ogc, tmp_path / "m.ogc", tmp_path, 12, inputs, list(expected))
    for output in expected:
        assert harness.relative_error(actual[output], expected[output]) <= 1e-5, output
    ogc.verify(tmp_path / "m.ogc", "--random-orders", 20, "--poison")


def test_wrong_states(ogc, tmp_path):
    onnx.save(decoder(), tmp_path / "m.onnx")
    with pytest.raises(harness.OgcError) as error:
        ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", "--state", "k0=v9", "--state", "x=pos_next", "--state", "what=y")
    assert error.value.code == 1 and not (tmp_path / "m.ogc").exists()
    for text in ["no output 'v9'", "no input 'what'", "input 'x' has type"]:
        assert text in error.value.message
