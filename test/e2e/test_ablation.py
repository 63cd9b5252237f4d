"""Every optimization can be left out by `--disable`: the results stay right, and the plan is another one."""
import importlib.util
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import harness

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
TOKENS, WIDTH = 64, 32
PASSES = ["fold-batch-norm", "form-layer-norm", "form-gelu", "form-tensor-scatter", "form-attention", "propagate-layout", "narrow-panels", "pair-matmuls", "merge-matmuls", "absorb-scales", "absorb-norms",
          "vector-chains", "fuse-epilogues", "place-concats", "place-slices", "update-in-place", "mark-programmatic-edges"]


def network():
    """Convolutions with squeeze and excitation, then one layer of a transformer in single operators, then parts that are cut apart and put together."""
    rng = np.random.default_rng(0)
    weights = {"f": rng.standard_normal((WIDTH, 3, 3, 3)) / 5, "g": rng.standard_normal((WIDTH, WIDTH, 3, 3)) / 17, "scale": 1 + 0.1 * rng.standard_normal(WIDTH),
               "squeeze": rng.standard_normal((8, WIDTH, 1, 1)) / 6, "excite": rng.standard_normal((WIDTH, 8, 1, 1)) / 3, "project": rng.standard_normal((WIDTH, WIDTH, 1, 1)) / 3,
               "shift": rng.standard_normal(WIDTH), "mean": 0.1 * rng.standard_normal(WIDTH), "var": 1 + 0.1 * rng.random(WIDTH), "eps": np.array(1e-5), "half": np.array(0.5),
               "root": np.array(np.sqrt(2)), "one": np.array(1.0), "two": np.array(2.0), "depth": np.array(WIDTH ** -0.5),
               **{f"w{name}": rng.standard_normal((WIDTH, WIDTH)) / 6 for name in "qkvo"}, "b": rng.standard_normal(WIDTH), "wide": rng.standard_normal((2 * WIDTH, WIDTH)) / 8, "head": rng.standard_normal((WIDTH, 2 * WIDTH)) / 6}
    weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}
    weights.update(tokens=np.array([1, WIDTH, TOKENS]), axis=np.array([-1]), all=np.array([1]), rows=np.array(1), place=np.array([[5]]))
    steps = [("Conv", "x f", "c0", {"pads": [1, 1, 1, 1], "strides": [2, 2]}), ("BatchNormalization", "c0 scale shift mean var", "c1", {}), ("Relu", "c1", "c2", {}),
             ("Conv", "c2 g", "c3", {"pads": [1, 1, 1, 1]}), ("GlobalAveragePool", "c3", "x0", {}), ("Conv", "x0 squeeze", "x1", {}), ("Relu", "x1", "x2", {}),
             ("Conv", "x2 excite", "x3", {}), ("Sigmoid", "x3", "x4", {}), ("Mul", "c3 x4", "x5", {}), ("Conv", "x5 project", "x6", {}), ("Reshape", "x6 tokens", "c4", {}), ("Transpose", "c4", "t", {"perm": [0, 2, 1]}),
             ("ReduceMean", "t axis", "m", {}), ("Sub", "t m", "d", {}), ("Pow", "d two", "s", {}), ("ReduceMean", "s axis", "v", {}), ("Add", "v eps", "e", {}),
             ("Sqrt", "e", "r", {}), ("Div", "d r", "n0", {}), ("Mul", "n0 scale", "n1", {}), ("Add", "n1 shift", "n", {}),
             *(("MatMul", f"n w{name}", f"{name}0", {}) for name in "qkv"), ("Transpose", "k0", "kt", {"perm": [0, 2, 1]}), ("MatMul", "q0 kt", "a0", {}),
             ("Mul", "a0 depth", "a1", {}), ("Softmax", "a1", "a2", {"axis": -1}), ("MatMul", "a2 v0", "a", {}), ("MatMul", "a wo", "o0", {}), ("Add", "o0 b", "o", {}),
             ("Div", "o root", "g0", {}), ("Erf", "g0", "g1", {}), ("Add", "g1 one", "g2", {}), ("Mul", "o g2", "g3", {}), ("Mul", "g3 half", "h", {}),
             # Scans take whole buffers, as do products with what they read.
             ("Softmax", "h", "i", {"axis": -1}), ("Split", "i", "p0 p1", {"axis": 1, "num_outputs": 2}), ("CumSum", "p0 rows", "u0", {}), ("Mul", "u0 half", "u1", {}),
             ("CumSum", "u1 rows", "z", {}), ("MatMul", "i wq", "r0", {}), ("Sigmoid", "r0", "r1", {}), ("MatMul", "i wv", "r2", {}), ("Mul", "r1 r2", "j0", {}), ("MaxPool", "j0", "s0", {"kernel_shape": [3], "pads": [1, 1]}), ("MatMul", "s0 wk", "j1", {}), ("Concat", "j0 j1", "j", {"axis": 2}), ("MatMul", "j wide", "k1", {}),
             ("Add", "k1 t", "l", {}), ("Softmax", "l", "y", {"axis": -1}),
             # One row, normalized between two products.
             ("ReduceMean", "l all", "l0", {}), ("MatMul", "l0 wo", "n2", {}), ("Mul", "n2 n2", "n3", {}), ("ReduceMean", "n3 axis", "n4", {}), ("Add", "n4 eps", "n5", {}), ("Sqrt", "n5", "n6", {}),
             ("Div", "n2 n6", "n7", {}), ("Mul", "n7 scale", "n8", {}), ("MatMul", "n8 head", "w", {}),
             # A row written among others.
             ("Transpose", "l", "l1", {"perm": [1, 0, 2]}), ("Transpose", "l0", "l2", {"perm": [1, 0, 2]}), ("ScatterND", "l1 place l2", "l3", {}), ("Transpose", "l3", "l4", {"perm": [1, 0, 2]}), ("Softmax", "l4", "c", {"axis": -1})]
    nodes = [helper.make_node(op, inputs.split(), outputs.split(), name=f"{op} {outputs}", **attributes) for op, inputs, outputs, attributes in steps]
    return harness.make_model(nodes, {"x": (F32, (1, 3, 16, 16))}, {"y": (F32, None), "z": (F32, None), "w": (F32, None), "c": (F32, None)}, weights)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("ablation") / "m.onnx"
    path.write_bytes(network().SerializeToString())
    return path


@pytest.fixture(scope="module")
def plan(ogc, model):
    return ogc("compile", model, "--target", "sm_90,cpu", "--stop-after", "plan")


@pytest.mark.parametrize("name", PASSES)
def test_results_are_right_without(ogc, model, plan, name, tmp_path):
    inputs = harness.model_inputs(model)
    bundle = ogc.compile(model, tmp_path / "m.ogc", disable=name)
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(model, inputs), 1e-5)
    ogc.verify(bundle, "--random-orders", 3, "--poison")
    assert f"--disable={name}" in ogc.inspect(bundle)["provenance"]["flags"]
    assert ogc("compile", model, "--target", "sm_90,cpu", "--stop-after", "plan", "--disable", name) != plan


def test_all_at_once(ogc, model, tmp_path):
    inputs = harness.model_inputs(model)
    plain = ogc.compile(model, tmp_path / "plain.ogc", disable=",".join(PASSES))
    harness.check_outputs(ogc.run(plain, inputs), harness.reference(model, inputs), 1e-5)
    count = lambda bundle: ogc.inspect(bundle)["graphs"][0]["nodes"]["total"]  # noqa: E731
    assert count(plain) >= count(ogc.compile(model, tmp_path / "m.ogc")) + 6


def test_the_list_is_complete(ogc, model):
    """The list above, what the program knows, and what is compared on a GPU."""
    with pytest.raises(harness.OgcError) as error:
        ogc("compile", model, "--disable", "merge-matmuls,no-such-pass")
    assert error.value.code == 2
    known = re.search(r"\{(.*?)\}", error.value.message).group(1)
    assert sorted(known.split(",")) == sorted(PASSES)
    spec = importlib.util.spec_from_file_location("gpu_test", harness.ROOT / "scripts/gpu_test.py")
    gpu_test = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu_test)
    flags = [flag for variant in gpu_test.VARIANTS.values() for flag in variant]
    assert set(PASSES) - {"mark-programmatic-edges"} <= set(flags) and "--no-pdl" in flags
