"""Models that the fuzzer found, each a kind of fault: refused by name on one line, in little time and memory, or right."""
import numpy as np
import pytest
from onnx import TensorProto, helper

import harness

F32, I64, I32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
N = helper.make_node


def one(node, inputs, constants=None, opset=22):
    """A model of one node over f32 inputs of the given shapes."""
    return harness.make_model([node], {name: (F32, shape) for name, shape in inputs.items()}, {name: (F32, None) for name in node.output}, constants, opset)


HEADS = {"q_num_heads": 3, "kv_num_heads": 3}
REFUSED = {
    # Attributes are read as 32 bits by shape inference, and as 64 by lowerings.
    "axis that wraps": (one(N("Concat", ["x", "x"], ["y"], name="n", axis=2**48 - 1), {"x": (2, 3)}), ["Concat node 'n'", "'axis'", "out of range"]),
    "axis outside": (one(N("Softmax", ["x"], ["y"], name="n", axis=5), {"x": (2, 3)}), ["Softmax node 'n'", "axis"]),
    "axis of a scalar": (one(N("LpNormalization", ["x"], ["y"], name="n", axis=0, p=1), {"x": ()}), ["LpNormalization node 'n'", "axis is 0", "scalar"]),
    "axes outside": (one(N("MeanVarianceNormalization", ["x"], ["y"], name="n", axes=[0, 4]), {"x": (2, 3)}), ["MeanVarianceNormalization node 'n'", "axes has 4"]),
    "axes twice": (one(N("MeanVarianceNormalization", ["x"], ["y"], name="n", axes=[1, -1]), {"x": (2, 3)}), ["MeanVarianceNormalization node 'n'", "-1 twice"]),
    # Operands of ranks and extents that shape inference leaves alone.
    "scale of a higher rank": (one(N("LayerNormalization", ["x", "s", "b"], ["y"], name="n"), {"x": (3, 4), "s": (4,), "b": (3, 4, 5)}), ["'n", "cannot broadcast"]),
    "vector as an image": (one(N("InstanceNormalization", ["x", "s", "s"], ["y"], name="n"), {"x": (4,), "s": (4,)}), ["InstanceNormalization node 'n'", "rank 1"]),
    "groups of a vector": (one(N("GroupNormalization", ["x", "s", "s"], ["y"], name="n", num_groups=2), {"x": (4,), "s": (4,)}), ["GroupNormalization node 'n'", "rank 1"]),
    "neighbours of a vector": (one(N("LRN", ["x"], ["y"], name="n", size=3), {"x": (4,)}), ["LRN node 'n'", "rank 1"]),
    "time axis outside": (one(N("ReverseSequence", ["x", "l"], ["y"], name="n", time_axis=7, batch_axis=1), {"x": (2, 3)}, {"l": np.array([1, 2, 1])}),
                          ["ReverseSequence node 'n'", "time_axis"]),
    "axis of a broadcast that is far outside": (one(N("Add", ["x", "b"], ["y"], name="n", axis=-2**31, broadcast=1), {"x": (2, 3, 4), "b": (3,)}, opset=4),
                                                ["Add node 'n'", "'axis' is -2147483648", "out of range for rank 3"]),
    "axis of a broadcast at the end of 64 bits": (one(N("Add", ["x", "b"], ["y"], name="n", axis=-2**63, broadcast=1), {"x": (2, 3, 4), "b": (3,)}, opset=4),
                                                  ["Add node 'n'", "'axis' is -9223372036854775808", "out of range for rank 3"]),
    "fewer than no batch dimensions": (one(N("GatherND", ["x", "i"], ["y"], name="n", batch_dims=-1), {"x": (2, 2, 2)}, {"i": np.zeros((2, 1), np.int64)}),
                                       ["GatherND node 'n'", "'batch_dims' is -1"]),
    "far fewer than no batch dimensions": (one(N("GatherND", ["x", "i"], ["y"], name="n", batch_dims=-2**31), {"x": (2, 2, 2)}, {"i": np.zeros((2, 1), np.int64)}),
                                           ["GatherND node 'n'", "'batch_dims' is -2147483648"]),
    **{f"attention over {name}": (one(N("Attention", list("qkv") + (["", "pk", "pv"][:len(shapes) - 2] if len(shapes) > 3 else []), ["y"], name="n", softcap=2.0, **heads),
                                      dict(zip(["q", "k", "v", "pk", "pv"], shapes)), opset=23), ["Attention node 'n'", *words]) for name, shapes, heads, words in (
        ("a past of other heads", [(2, 4, 24), (2, 6, 24), (2, 6, 24), (2, 0, 12, 8), (2, 3, 12, 8)], HEADS, ["operand 4 has size 0 in dimension 1, expected 3"]),
        ("heads of no size in the past", [(2, 4, 24), (2, 6, 24), (2, 6, 24), (2, 3, 12, 0), (2, 3, 12, 8)], HEADS, ["operand 4 has size 0 in dimension 3, expected 8"]),
        ("pasts of unequal lengths", [(2, 4, 24), (2, 6, 24), (2, 6, 24), (2, 3, 12, 8), (2, 3, 11, 8)], HEADS, ["operand 5 has size 11 in dimension 2, expected 12"]),
        ("a past of keys alone", [(2, 4, 24), (2, 6, 24), (2, 6, 24), (2, 3, 12, 8)], HEADS, ["past"]),
        ("a past of rank 3", [(2, 4, 24), (2, 6, 24), (2, 6, 24), (2, 3, 12), (2, 3, 12, 8)], HEADS, []),
        ("rows that are no heads", [(2, 4, 25), (2, 6, 24), (2, 6, 24)], HEADS, []),
        ("values of other heads", [(1, 3, 4, 8), (1, 3, 6, 8), (1, 1, 6, 8)], {}, ["operand 2 has size 1 in dimension 1, expected 3"]),
        ("keys of another size", [(1, 3, 4, 8), (1, 3, 6, 4), (1, 3, 6, 8)], {}, ["operand 1 has size 4 in dimension 3, expected 8"]),
        ("keys of another batch", [(2, 3, 4, 8), (1, 3, 6, 8), (1, 3, 6, 8)], {}, ["operand 1 has size 1 in dimension 0, expected 2"]),
        ("fewer values than keys", [(1, 3, 4, 8), (1, 3, 6, 8), (1, 3, 5, 8)], {}, ["operand 2 has size 5 in dimension 2, expected 6"]),
        ("values of another rank", [(1, 3, 4, 8), (1, 3, 6, 8), (1, 6, 24)], {}, []))},
    **{f"equation {ascii(equation)}": (one(N("Einsum", ["x", "z"], ["y"], name="n", equation=equation), {"x": (2, 3), "z": (3, 4)}), ["Einsum node 'n'", *words]) for equation, words in (
        (b"i\xb9j,jk->ik", ["the term 'i\\xB9j'"]), ("i1j,jk->ik", ["the term 'i1j'"]), ("ij,...jk...->ik", ["the term '...jk...'"]), ("ij,jk->i->k", ["the term 'i->k'"]),
        ("ij,jk->ii", ["'i' twice in its output"]), ("ij,jk->iz", ["missing from the inputs"]), ("ij,jk,kl->il", []), ("ij,jkl->ik", []), ("i.j,jk->ik", ["the term 'i.j'"]))},
    "blocks larger than the image": (one(N("SpaceToDepth", ["x"], ["y"], name="n", blocksize=2**31 - 1), {"x": (2, 2, 6, 6)}), ["larger than any device"]),
    "blocks that do not divide the image": (one(N("SpaceToDepth", ["x"], ["y"], name="n", blocksize=4), {"x": (2, 2, 8, 6)}), ["SpaceToDepth node 'n'", "blocksize is 4", "8x6"]),
    "blocks whose square does not divide the channels": (one(N("DepthToSpace", ["x"], ["y"], name="n", blocksize=2), {"x": (2, 6, 2, 2)}), ["DepthToSpace node 'n'"]),
    "blocks whose square is no number": (one(N("DepthToSpace", ["x"], ["y"], name="n", blocksize=2**32), {"x": (2, 4, 2, 2)}), ["DepthToSpace node 'n'"]),
    "axis of a flattening softmax": (one(N("Softmax", ["x"], ["y"], name="n", axis=2**32 + 1), {"x": (2, 3, 4)}, opset=11),
                                     ["Softmax node 'n'", "'axis' is 4294967297", "out of range for rank 3"]),
    "no inputs in an older form": (one(N("Softmax", [], ["y"], name="n"), {"x": (6,)}, opset=4), ["Softmax node 'n'", "has 0 inputs, expected at least 1"]),
    "mask without dimensions": (one(N("DeformConv", ["x", "w", "o", "b", "m"], ["y"], name="n", kernel_shape=[2, 2]),
                                    {"x": (1, 1, 3, 3), "w": (1, 1, 2, 2), "o": (1, 8, 2, 2), "b": (1,), "m": ()}, opset=22), ["DeformConv node 'n'", "rank"]),
    "outputs that an older form has not": (one(N("Softmax", ["x"], ["y", "s", "z"], name="n"), {"x": (6,)}, opset=11),
                                           ["Softmax node 'n'", "has 3 outputs, expected 1 to 1"]),
    "parts that no output takes": (one(N("Split", ["x"], ["a", "b"], name="n", num_outputs=2**31 - 1), {"x": (2, 3)}),
                                   ["Split node 'n'", "'num_outputs' is 2147483647", "has 2 outputs"]),
    "less output than input": (one(N("ConvTranspose", ["x", "w"], ["y"], name="n", output_shape=[10, 8], strides=[3, 2]), {"x": (1, 1, 930, 3), "w": (1, 840, 3, 3)}),
                               ["ConvTranspose node 'n'", "has 0 spatial dimensions, expected 2", "output_shape"]),
    "filters of other channels": (one(N("Conv", ["x", "w"], ["y"], name="n"), {"x": (1, 1, 4, 4), "w": (1, 5, 1, 1)}), ["Conv node 'n'", "channels"]),
    **{f"bias of shape {list(shape)} below a norm": (
        harness.make_model([N("Conv", ["x", "w", "b"], ["c"], name="n"), N("BatchNormalization", ["c", *"stmv"], ["y"])], {"x": (F32, (1, 3, 4, 4))}, {"y": (F32, None)},
                           {"w": np.ones((8, 3, 1, 1), np.float32), "b": np.ones(shape, np.float32), **{name: np.ones(8, np.float32) for name in "stmv"}}),
        ["Conv node 'n'", reason]) for shape, reason in (((2, 32), "operand 2 has rank 2, expected 1"), ((1,), "bias has 1 elements, expected one for each of 8 filters"))},
    **{f"bias of 3 elements of {node.op_type}": (one(node, inputs), [f"{node.op_type} node 'n'", "bias has 3 elements, expected one for each of 8 filters"]) for node, inputs in (
        (N("ConvTranspose", ["x", "w", "b"], ["y"], name="n"), {"x": (1, 4, 3, 3), "w": (4, 8, 1, 1), "b": (3,)}),
        (N("DeformConv", ["x", "w", "o", "b"], ["y"], name="n", kernel_shape=[1, 1]), {"x": (1, 4, 3, 3), "w": (8, 4, 1, 1), "o": (1, 2, 3, 3), "b": (3,)}))},
    "bias of 3 elements of QLinearConv": (
        harness.make_model([N("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z", "b"], ["y"], name="n")], {"x": (TensorProto.UINT8, (1, 4, 3, 3)), "b": (I32, (3,))},
                           {"y": (TensorProto.UINT8, None)}, {"s": np.float32(1), "z": np.uint8(0), "w": np.ones((8, 4, 1, 1), np.uint8)}),
        ["QLinearConv node 'n'", "bias has 3 elements"]),
    "quantized filters of other channels": (
        harness.make_model([N("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"], ["y"], name="n")],
                           {"x": (TensorProto.UINT8, (1, 1, 4, 4)), "w": (TensorProto.UINT8, (1, 2**31 - 1, 1, 1))}, {"y": (TensorProto.UINT8, None)},
                           {"s": np.float32(1), "z": np.uint8(0)}), ["QLinearConv node 'n'", "channels"]),
    "sums of too many integers": (harness.make_model([N("MatMulInteger", ["x", "w"], ["y"], name="n")], {"x": (TensorProto.UINT8, (1, 2**30)), "w": (TensorProto.UINT8, (2**30, 1))},
                                                    {"y": (I32, None)}), ["MatMulInteger node 'n'", "1073741824 products"]),
    "places of complex numbers": (harness.make_model([N("NonZero", ["x"], ["y"], name="n")], {"x": (TensorProto.COMPLEX64, (3,))},
                                                     {"y": (TensorProto.INT64, None)}), ["'n'"]),
    "scanned inputs at the end of 64 bits": (
        one(N("Scan", ["x", "x"], ["y", "z"], name="n", num_scan_inputs=-2**63,
              body=helper.make_graph([N("Add", ["a", "b"], ["c"]), N("Neg", ["c"], ["d"])], "body",
                                     [helper.make_tensor_value_info(name, F32, (3,)) for name in "ab"],
                                     [helper.make_tensor_value_info(name, F32, (3,)) for name in "cd"])), {"x": (2, 3)}), ["Scan node 'n'", "'num_scan_inputs' is -9223372036854775808"]),
    # Sizes that no device has: products of extents overflow.
    "too many elements": (one(N("MaxPool", ["x"], ["y"], name="n", kernel_shape=[3, 3]), {"x": (2**62, 1, 4, 4)}), ["input 'x'", "too large"]),
    "too large a constant": (one(N("ConstantOfShape", ["s"], ["y"], name="n"), {}, {"s": np.array([2**40, 2**40])}), ["'n'"]),
    "table without end": (one(N("Resize", ["x", "", "s"], ["y"], name="n", mode="linear", antialias=1), {"x": (1, 1, 10**7)}, {"s": np.array([1, 1, 1e-7], np.float32)}),
                          ["Resize node 'n'", "out of range"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(ogc, tmp_path, case):
    model, words = REFUSED[case]
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(harness.OgcError) as caught:
        ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    assert caught.value.code == 1, caught.value.message
    assert all(line.startswith("error: ") for line in caught.value.message.splitlines())
    for word in words:
        assert word in caught.value.message, caught.value.message


def test_large_constants_are_not_folded(ogc, tmp_path):
    """What is made of nothing stays a computation of each run: the file holds no 256 MB."""
    model = harness.make_model([N("ConstantOfShape", ["s"], ["c"], value=helper.make_tensor("v", F32, [1], [2])), N("Add", ["x", "c"], ["t"]),
                                N("ReduceSum", ["t"], ["y"], keepdims=0)], {"x": (F32, (8192, 1))}, {"y": (F32, ())}, {"s": np.array([1, 8192])})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    assert bundle.stat().st_size < 1 << 20
    places = harness.make_model([N("NonZero", ["x"], ["y"])], {"x": (TensorProto.BOOL, (1048575, 2))}, {"y": (I64, None)})
    (tmp_path / "p.onnx").write_bytes(places.SerializeToString())
    assert ogc.compile(tmp_path / "p.onnx", tmp_path / "p.ogc").stat().st_size < 1 << 20
    eye = harness.make_model([N("EyeLike", ["x"], ["y"], dtype=F32)], {"x": (I32, (20000, 5000))}, {"y": (F32, None)})
    (tmp_path / "e.onnx").write_bytes(eye.SerializeToString())
    assert ogc.compile(tmp_path / "e.onnx", tmp_path / "e.ogc").stat().st_size < 1 << 20


@pytest.mark.parametrize("element,value", [(TensorProto.BOOL, True), (F32, 0), (F32, -1.5), (TensorProto.INT8, -3), (I64, -1)])
def test_large_constant_outputs(ogc, tmp_path, element, value):
    """An output of one byte repeated is filled, whatever its size; others lie in the file."""
    for shape in ([3, 5], [1024, 3001]):
        model = harness.make_model([N("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("v", element, [1], [value]))], {"x": (F32, (1,))},
                                   {"y": (element, None)}, {"s": np.array(shape)})
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
        assert value == -1.5 or bundle.stat().st_size < 1 << 20
        y = ogc.run(bundle, {"x": np.zeros(1, np.float32)})["y"]
        assert y.shape == tuple(shape) and (y == value).all()


def test_integer_without_absolute_value(ogc, tmp_path):
    """-2^63 as a constant that is cast where sizes are computed."""
    model = harness.make_model([N("Cast", ["i"], ["f"], to=F32), N("Add", ["x", "f"], ["y"])], {"x": (F32, (1,))}, {"y": (F32, (1,))}, {"i": np.array(-2**63)})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {"x": np.zeros(1, np.float32)})["y"] == -2.0**63


def test_mask_of_everything(ogc, tmp_path):
    """The mask of a dropout that drops nothing: neither 24 GB of memory nor a file of that size."""
    model = harness.make_model([N("Dropout", ["x"], ["y", "z"])], {"x": (F32, (3, 4, 2**31 - 1))}, {"y": (F32, None), "z": (TensorProto.BOOL, None)})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc").stat().st_size < 1 << 20


@pytest.mark.parametrize("size", [2**31 - 1, 2**33])
def test_high_images(ogc, tmp_path, size):
    """What is chosen by the height of an image is computed, not searched for: a second at most, whatever the height."""
    for node in (N("Conv", ["x", "w"], ["y"], pads=[1, 0, 1, 0], strides=[2, 2]), N("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])):
        (tmp_path / "m.onnx").write_bytes(one(node, {"x": (1, 1, size, 3), "w": (1, 1, 3, 3)}).SerializeToString())
        ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", timeout=60)


def test_many_channels_of_integers(ogc, tmp_path):
    """A sum that would be exact in eight million parts is one of integers."""
    model = harness.make_model([N("ConvInteger", ["x", "w"], ["y"])], {"x": (TensorProto.UINT8, (1, 2**31 - 1, 2, 2)), "w": (TensorProto.UINT8, (1, 2**31 - 1, 1, 1))}, {"y": (I32, None)})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", timeout=60)


def test_long_rows(ogc, tmp_path):
    """The index of the largest element is found once a row, not once an element of it: this took hours."""
    model = one(N("Hardmax", ["x"], ["y"]), {"x": (2, 10**6)})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    x = np.zeros((2, 10**6), np.float32)
    x[0, 999_999] = x[1, 7] = x[1, 8] = 1
    y = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {"x": x})["y"]
    assert y[0, 999_999] == y[1, 7] == 1 and y.sum() == 2


@pytest.mark.parametrize("processor", ["x86-64-v2", "x86-64-v3"])
def test_brain_floats_on_old_processors(ogc, tmp_path, processor):
    """Processors without instructions for the type: the code calls no library, and gives the bits that others give."""
    kind = TensorProto.BFLOAT16
    nodes = [N("Cast", ["x"], ["h"], to=kind), N("Elu", ["h"], ["a"]), N("Elu", ["a"], ["b"]), N("Mul", ["b", "h"], ["c"]), N("Cast", ["c"], ["y"], to=F32)]
    model = harness.make_model(nodes, {"x": (F32, (40,))}, {"y": (F32, (40,))})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    there = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc", cpu=processor), {"x": x})["y"]
    here = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "h.ogc"), {"x": x})["y"]
    np.testing.assert_array_equal(here, there)
