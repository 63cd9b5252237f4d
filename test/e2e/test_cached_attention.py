"""Attention over a cache of fixed capacity into which the new keys and values are written: rotation, write and attention are one kernel."""
import re
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness
import test_state

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


@dataclass
class Form:
    """How a model is written."""
    write: str = "scatter_nd"  # or scatter_elements, tensor_scatter
    rotation: str = "halves"  # or pairs, part, none
    batch: int = 1
    rows: int = 1
    heads: int = 4
    key_heads: int = 2
    size: int = 16
    capacity: int = 40
    stacked: bool = False  # the caches are parts of one input
    present: bool = False  # the updated caches are outputs


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"{op} of {outputs}", **attributes)


def ints(*values):
    return np.array(values, np.int64)


def rotate(x, kind, size, nodes, constants):
    """Rotary embedding of x [B, H, S, D] as exporters write it, from the angles of the positions; returns the name of the result."""
    if kind == "none":
        return x
    turned, rest = (size // 2, True) if kind == "part" else (size, False)
    source = x
    if rest:
        constants |= {"cut": ints(turned, size - turned)}
        nodes.append(node("Split", f"{x} cut", f"{x}_turned {x}_rest", axis=3))
        source = f"{x}_turned"
    if kind == "pairs":  # (a, b) of neighbours become (-b, a)
        constants |= {"in_pairs": ints(0, 0, 0, -1, 2), "as_before": ints(0, 0, 0, -1), "last_axis": ints(-1), "zeroth": ints(0), "first": ints(1)}
        nodes += [node("Reshape", f"{source} in_pairs", f"{x}_pairs"), node("Gather", f"{x}_pairs first", f"{x}_b", axis=4),
                  node("Gather", f"{x}_pairs zeroth", f"{x}_a", axis=4), node("Neg", f"{x}_b", f"{x}_minus_b"),
                  node("Concat", f"{x}_minus_b {x}_a", f"{x}_swapped_pairs", axis=4), node("Reshape", f"{x}_swapped_pairs as_before", f"{x}_swapped")]
    else:
        nodes += [node("Split", source, f"{x}_a {x}_b", axis=3, num_outputs=2), node("Neg", f"{x}_b", f"{x}_minus_b"),
                  node("Concat", f"{x}_minus_b {x}_a", f"{x}_swapped", axis=3)]
    nodes += [node("Mul", f"{source} cos", f"{x}_cos"), node("Mul", f"{x}_swapped sin", f"{x}_sin"), node("Add", f"{x}_cos {x}_sin", f"{x}_sum")]
    if rest:
        nodes.append(node("Concat", f"{x}_sum {x}_rest", f"{x}_whole", axis=3))
    return f"{x}_whole" if rest else f"{x}_sum"


def write(form, cache, rows, result, nodes):
    """rows [B, HK, S, D] at the position in cache [B, HK, T, D]."""
    if form.write == "tensor_scatter":
        nodes.append(node("TensorScatter", f"{cache} {rows} at", result, axis=2))
    elif form.write == "scatter_elements":
        nodes += [node("Expand", "pos row_shape", f"{result}_where"), node("ScatterElements", f"{cache} {result}_where {rows}", result, axis=2)]
    else:
        nodes += [node("Transpose", cache, f"{cache}_outside", perm=[2, 0, 1, 3]), node("Transpose", rows, f"{rows}_outside", perm=[2, 0, 1, 3]),
                  node("ScatterND", f"{cache}_outside where {rows}_outside", f"{result}_outside"),
                  node("Transpose", f"{result}_outside", result, perm=[1, 2, 0, 3])]


def model(form):
    rng, f = np.random.default_rng(1), form
    width, key_width, group = f.heads * f.size, f.key_heads * f.size, f.heads // f.key_heads
    turned = f.size // 2 if f.rotation == "part" else f.size
    constants = {f"w{n}": (rng.standard_normal((width, m)) / np.sqrt(width)).astype(np.float32) for n, m in
                 (("q", width), ("k", key_width), ("v", key_width))}
    constants |= {"split_q": ints(0, 0, f.heads, f.size), "split_k": ints(0, 0, f.key_heads, f.size), "scale": np.float32(f.size ** -0.5),
                  "frequencies": np.repeat(10000.0 ** (-np.arange(turned // 2) / turned), 2).astype(np.float32)
                  if f.rotation == "pairs" else np.tile(10000.0 ** (-np.arange(turned // 2) / turned), 2).astype(np.float32),
                  "row_numbers": np.arange(f.rows, dtype=np.float32).reshape(-1, 1), "row_shape": ints(f.batch, f.key_heads, 1, f.size),
                  "column": ints(1, 1), "batch": ints(f.batch), "flat": ints(f.batch, f.rows, width)}
    nodes = [node("Cast", "pos", "pos_float", to=F32), node("Add", "pos_float row_numbers", "positions"),
             node("Mul", "positions frequencies", "angles"), node("Cos", "angles", "cos"), node("Sin", "angles", "sin"),
             node("Reshape", "pos column", "where"), node("Expand", "pos batch", "at")]
    for n in "qkv":
        nodes += [node("MatMul", f"x w{n}", f"{n}_flat"), node("Reshape", f"{n}_flat split_{'q' if n == 'q' else 'k'}", f"{n}_inside"),
                  node("Transpose", f"{n}_inside", n, perm=[0, 2, 1, 3])]
    q, k = (rotate(n, f.rotation, f.size, nodes, constants) for n in "qk")
    for n, rows in (("k", k), ("v", "v")):
        cache = f"c{n}"
        if f.stacked:
            constants["layer"] = np.int64(1)
            nodes.append(node("Gather", f"c{n} layer", f"c{n}_1", axis=0))
            cache = f"c{n}_1"
        write(f, cache, rows, f"{n}_next", nodes)
    if f.rows == 1:  # the heads of a group as rows of one product
        constants["grouped"] = ints(f.batch, f.key_heads, group, f.size)
        nodes.append(node("Reshape", f"{q} grouped", "q_grouped"))
        q, keys, values = "q_grouped", "k_next", "v_next"
    else:
        constants |= {"third": ints(2), "wide": ints(f.batch, f.key_heads, group, f.capacity, f.size), "merged": ints(f.batch, f.heads, f.capacity, f.size)}
        for n in "kv":
            nodes += [node("Unsqueeze", f"{n}_next third", f"{n}_column"), node("Expand", f"{n}_column wide", f"{n}_wide"),
                      node("Reshape", f"{n}_wide merged", f"{n}_all")]
        keys, values = "k_all", "v_all"
    nodes += [node("Transpose", keys, "keys", perm=[0, 1, 3, 2]), node("MatMul", f"{q} keys", "scores"), node("Mul", "scores scale", "scaled"),
              node("Add", "scaled mask", "masked"), node("Softmax", "masked", "weights", axis=-1), node("MatMul", f"weights {values}", "heads")]
    if f.rows == 1:
        nodes.append(node("Reshape", "heads flat", "y"))
    else:
        nodes += [node("Transpose", "heads", "heads_inside", perm=[0, 2, 1, 3]), node("Reshape", "heads_inside flat", "y")]
    nodes.append(node("Identity", k, "new_k"))
    shape = (f.batch, f.key_heads, f.capacity, f.size)
    cache = (F32, ((2,) if f.stacked else ()) + shape)
    inputs = {"x": (F32, (f.batch, f.rows, width)), "pos": (I64, (1,)), "mask": (F32, (1, 1, f.rows, f.capacity)), "ck": cache, "cv": cache}
    outputs = {"y": (F32, (f.batch, f.rows, width)), "new_k": (F32, (f.batch, f.key_heads, f.rows, f.size))}
    if f.present:
        outputs |= {"k_next": (F32, shape), "v_next": (F32, shape)}
    return harness.make_model(nodes, inputs, outputs, constants, opset=24 if f.write == "tensor_scatter" else 21)


def inputs_of(form, position, seed=0):
    """Slots past the position hold numbers that would be seen in the result, were they not hidden."""
    rng, f = np.random.default_rng(seed), form
    shape = ((2,) if f.stacked else ()) + (f.batch, f.key_heads, f.capacity, f.size)
    seen = np.arange(f.capacity) <= (position % f.capacity) + np.arange(f.rows).reshape(-1, 1)
    return {"x": rng.standard_normal((f.batch, f.rows, f.heads * f.size)).astype(np.float32), "pos": ints(position),
            "mask": np.where(seen, 0, -1e4).astype(np.float32).reshape(1, 1, f.rows, f.capacity),
            "ck": (3 * rng.standard_normal(shape)).astype(np.float32), "cv": (3 * rng.standard_normal(shape)).astype(np.float32)}


FORMS = {"exporter": Form(), "stacked": Form(stacked=True, capacity=33), "batch": Form(batch=2), "scatter elements": Form(write="scatter_elements"),
         "pairs": Form(rotation="pairs"), "part": Form(rotation="part"), "plain": Form(rotation="none", heads=2), "presents": Form(present=True),
         "wide heads": Form(size=64, heads=8, capacity=300), "odd heads": Form(size=20, heads=3, key_heads=1, capacity=37),
         "several rows": Form(write="tensor_scatter", rows=5, batch=2), "many rows": Form(write="tensor_scatter", rows=24, present=True),
         "prompt": Form(write="tensor_scatter", rows=40, heads=8, size=64, capacity=600), "long prompt": Form(write="tensor_scatter", rows=300, size=32, capacity=301)}


@pytest.mark.parametrize("precision, tolerance", [("fp32", 2e-5), ("fp16", 2e-2)])
@pytest.mark.parametrize("name", FORMS)
def test_cached_attention(ogc, tmp_path, name, precision, tolerance):
    """Any position, also the first and the last one, equals onnxruntime, and one kernel does it: nothing but the products, the angles
    and outputs that are stored apart is left."""
    form = FORMS[name]
    onnx.save(model(form), tmp_path / "m.onnx")
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc", target="cpu,sm_90", precision=precision)
    last = form.capacity - form.rows
    positions = [0, last // 2, last] + ([-1] if form.rows == 1 and form.write != "tensor_scatter" and form.rotation == "none" else [])
    for position in positions:
        inputs = inputs_of(form, position, seed=abs(position))
        harness.check_outputs(ogc.run(bundle, inputs), harness.reference(model(form), inputs), tolerance)
    kernels = re.findall(r"kernel k\d+_([a-z]+)", ogc("inspect", bundle, "--nodes"))
    assert kernels.count("attention") == 1
    if precision == "fp32" and form.rows == 1 and not form.present:  # no conversions: the products are all that is left beside it
        assert set(kernels) == {"attention", "matmul"}


@pytest.mark.parametrize("precision, tolerance", [("fp32", 2e-5), ("fp16", 2e-2)])
def test_caches_as_states(ogc, tmp_path, precision, tolerance):
    """Twelve steps with the caches as states, from empty: each reads the rows of those before, in whatever order its nodes run."""
    form, steps = Form(present=True, capacity=14), 12
    onnx.save(model(form), tmp_path / "m.onnx")
    ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", "--precision", precision, "--state", "ck=k_next", "--state", "cv=v_next")
    assert ogc.inspect(tmp_path / "m.ogc")["graphs"][0]["nodes"]["memcpy"] == 0
    given = [inputs_of(form, position, seed=position) for position in range(steps)]
    shape = (form.batch, form.key_heads, form.capacity, form.size)
    caches, expected = {"ck": np.zeros(shape, np.float32), "cv": np.zeros(shape, np.float32)}, []
    for inputs in given:
        result = harness.reference(model(form), inputs | caches)
        caches = {"ck": result["k_next"], "cv": result["v_next"]}
        expected.append(result)
    fed = {name: np.stack([inputs[name] for inputs in given]) for name in ("x", "pos", "mask")}
    actual = test_state.run_steps(ogc, tmp_path / "m.ogc", tmp_path, steps, fed, ["y", "new_k", "k_next", "v_next"])
    for step, result in enumerate(expected):
        for name, value in result.items():
            assert harness.relative_error(actual[name][step].astype(value.dtype), value) <= tolerance, (step, name)
    ogc.verify(tmp_path / "m.ogc", "--random-orders", 50, "--poison", "--replays", 3)
