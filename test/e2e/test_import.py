"""What the importer makes of a model: tensor encodings, older operator versions, functions, subgraphs, and everything it must refuse."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import harness

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def save(model, tmp_path, name="model.onnx"):
    """Writes a model without any check by the onnx package."""
    path = tmp_path / name
    path.write_bytes(model.SerializeToString())
    return path


def ir(ogc, model, tmp_path, phase="import"):
    """The IR after a phase."""
    return ogc("compile", save(model, tmp_path), "--stop-after", phase)


def problems(ogc, model, tmp_path):
    """What a refused model is refused for."""
    with pytest.raises(harness.OgcError) as caught:
        ir(ogc, model, tmp_path)
    assert caught.value.code == 1, caught.value.message
    return caught.value.message




# ---------------------------------------------------------------------------------------------------------------- tensors

TENSORS = {
    "f32": (TensorProto.FLOAT, np.array([1.5, -2.0], np.float32)), "f64": (TensorProto.DOUBLE, np.array([1.5, -2.0])),
    "f16": (TensorProto.FLOAT16, np.array([1.5, -2.0], np.float16)), "i8": (TensorProto.INT8, np.array([7, -128], np.int8)),
    "i16": (TensorProto.INT16, np.array([7, -3], np.int16)), "i32": (TensorProto.INT32, np.array([7, -3], np.int32)),
    "i64": (TensorProto.INT64, np.array([7, -2**62], np.int64)), "ui8": (TensorProto.UINT8, np.array([7, 255], np.uint8)),
    "ui16": (TensorProto.UINT16, np.array([7, 65535], np.uint16)), "ui32": (TensorProto.UINT32, np.array([7, 2**32 - 1], np.uint32)),
    "ui64": (TensorProto.UINT64, np.array([7, 2**64 - 1], np.uint64)), "i1": (TensorProto.BOOL, np.array([True, False])),
}


def constant_model(tensor):
    """A model that returns an initializer."""
    tensor.name = "c"
    output = helper.make_tensor_value_info("c", tensor.data_type, list(tensor.dims))
    return helper.make_model(helper.make_graph([], "test", [], [output], initializer=[tensor]), opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize("raw", [False, True], ids=["fields", "raw"])
@pytest.mark.parametrize("name", TENSORS)
def test_tensor_encodings(ogc, tmp_path, name, raw):
    kind, array = TENSORS[name]
    tensor = numpy_helper.from_array(array) if raw else helper.make_tensor("c", kind, array.shape, array)
    assert tensor.HasField("raw_data") == raw
    text = ir(ogc, constant_model(tensor), tmp_path)
    values = {"i1": "[true, false]", "f16": "[1.500000e+00, -2.000000e+00]", "f32": "[1.500000e+00, -2.000000e+00]",
              "f64": "[1.500000e+00, -2.000000e+00]"}.get(name, "[" + ", ".join(str(v) for v in array) + "]")
    assert f"dense<{values}> : tensor<2x{name}>" in text, text


@pytest.mark.parametrize("kind, bits, expected", [
    (TensorProto.BFLOAT16, [0x3FC0, 0xC000], "dense<[1.500000e+00, -2.000000e+00]> : tensor<2xbf16>"),
    (TensorProto.FLOAT8E4M3FN, [0x3C, 0xC0], "dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf8E4M3FN>"),
    (TensorProto.FLOAT8E5M2, [0x3E, 0xC0], "dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf8E5M2>"),
    (TensorProto.INT4, [0xF7], "dense<[7, -1]> : tensor<2xi4>"),
    (TensorProto.UINT4, [0xF7], "dense<[7, 15]> : tensor<2xui4>"),
], ids=["bf16", "f8E4M3FN", "f8E5M2", "i4", "ui4"])
@pytest.mark.parametrize("raw", [False, True], ids=["fields", "raw"])
def test_narrow_encodings(ogc, tmp_path, kind, bits, expected, raw):
    tensor = TensorProto(data_type=kind, dims=[2])
    if raw:
        tensor.raw_data = b"".join(value.to_bytes(2 if kind == TensorProto.BFLOAT16 else 1, "little") for value in bits)
    else:
        tensor.int32_data.extend(bits)
    assert expected in ir(ogc, constant_model(tensor), tmp_path)


@pytest.mark.parametrize("change, words", [
    (lambda t: t.dims.__setitem__(0, -2), ["'c'", "dimension -2"]),
    (lambda t: t.dims.__setitem__(0, 3), ["'c'", "8 bytes", "12"]),
    (lambda t: t.dims.extend([2**40, 2**40]), ["'c'", "64 bits"]),
    (lambda t: setattr(t, "data_type", 99), ["'c'", "99"]),
    (lambda t: setattr(t, "data_type", TensorProto.STRING), ["'c'", "STRING"]),
], ids=["negative", "short", "overflow", "type", "string"])
def test_bad_tensors(ogc, tmp_path, change, words):
    tensor = numpy_helper.from_array(np.array([1.5, -2.0], np.float32))
    model = constant_model(tensor)
    change(model.graph.initializer[0])
    message = problems(ogc, model, tmp_path)
    for word in words:
        assert word in message, message


def external_tensor(**data):
    tensor = TensorProto(data_type=F32, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in data.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.mark.parametrize("data, words", [
    ({"location": "../w.bin"}, ["'../w.bin'", "outside"]),
    ({"location": "sub/../../w.bin"}, ["outside"]),
    ({"location": "/etc/passwd"}, ["outside"]),
    ({"location": "link.bin"}, ["'link.bin'", "outside"]),
    ({"location": ""}, ["outside"]),
    ({"location": "absent.bin"}, ["absent.bin", "cannot be read"]),
    ({"location": "w.bin", "offset": 8, "length": 8}, ["w.bin", "12 bytes", "8 + 8"]),
    ({"location": "w.bin", "offset": 2**62, "length": 8}, ["w.bin"]),
    ({"location": "w.bin", "offset": -1}, ["offset"]),
    ({"location": "w.bin", "length": "many"}, ["length", "many"]),
    ({"location": "w.bin", "length": 4}, ["'c'", "4 bytes", "8"]),
], ids=["parent", "detour", "absolute", "link", "none", "missing", "past the end", "far past the end", "negative", "text", "length"])
def test_bad_external_data(ogc, tmp_path, data, words):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(b"\0" * 12)
    (folder / "w.bin").write_bytes(b"\0" * 12)
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    message = problems(ogc, constant_model(external_tensor(**data)), folder)
    assert len(message.splitlines()) == 1, message
    for word in words:
        assert word in message, message


def test_external_data(ogc, tmp_path):
    (tmp_path / "w.bin").write_bytes(np.array([9, 1.5, -2], np.float32).tobytes())
    text = ir(ogc, constant_model(external_tensor(location="w.bin", offset=4, length=8)), tmp_path)
    assert "dense<[1.500000e+00, -2.000000e+00]>" in text


# ---------------------------------------------------------------------------------------------------------------- graphs

def test_interface(ogc, tmp_path):
    """Names, symbols, an initializer that is listed as an input, an output that is an input."""
    node = helper.make_node("Add", ["x", "w"], ["y"], name="sum")
    model = harness.make_model([node], {"x": (F32, ("batch", 4)), "w": (F32, (4,))}, {"y": (F32, ("batch", 4)), "x": (F32, ("batch", 4))},
                               {"w": np.ones(4, np.float32)})
    text = ir(ogc, model, tmp_path)
    assert '@main(%arg0: tensor<?x4xf32> {onnx.name = "x", onnx.symbols = ["batch", ""]})' in text
    assert text.count("%arg1") == 0
    assert 'name = "w"' in text
    assert '{onnx.name = "y", onnx.symbols = ["batch", ""]}' in text and ", %arg0 :" in text


def test_names_that_are_wrong(ogc, tmp_path):
    nodes = [helper.make_node("Relu", ["later"], ["a"], name="early"), helper.make_node("Relu", ["x"], ["later"], name="late"),
             helper.make_node("Relu", ["x"], ["later"], name="again"), helper.make_node("Add", ["x", "nowhere"], ["b"], name="lost")]
    message = problems(ogc, harness.make_model(nodes, {"x": (F32, (2,))}, {"missing": (F32, (2,))}), tmp_path)
    assert "'early'" in message and "'later' is not defined before" in message
    assert "'again'" in message and "'later' is defined twice" in message
    assert "'lost'" in message and "'nowhere'" in message
    assert "output 'missing'" in message


@pytest.mark.parametrize("node, words", [
    (helper.make_node("Concat", ["x", "x"], ["y"], name="n"), ["Concat node 'n'", "'axis' is missing"]),
    (helper.make_node("Relu", ["x"], ["y"], name="n", slope=1.0), ["Relu node 'n'", "'slope' is not known"]),
    (helper.make_node("Concat", ["x", "x"], ["y"], name="n", axis=1.0), ["'axis' is not of kind INT"]),
    (helper.make_node("Relu", ["x", "x"], ["y"], name="n"), ["2 inputs, expected at most 1"]),
    (helper.make_node("Add", ["x"], ["y"], name="n"), ["1 inputs, expected at least 2"]),
    (helper.make_node("Add", ["x", ""], ["y"], name="n"), ["input 'B' is missing"]),
    (helper.make_node("Concat", ["x", "x"], ["y"], name="n", axis=7), ["Concat node 'n'", "axis"]),
    (helper.make_node("Scan", ["x"], ["y"], name="n", num_scan_inputs=1), ["Scan node 'n'", "'body' is missing"]),
    (helper.make_node("SequenceConstruct", ["x"], ["y"], name="n"), ["SequenceConstruct node 'n'", "sequence"]),
    (helper.make_node("Gelu", ["x"], ["y"], name="n"), []),
    (helper.make_node("ScatterND", ["x", "x", "x"], ["y"], name="n"), ["ScatterND node 'n'", "'indices' is of type float"]),
    (helper.make_node("Add", ["x", "i"], ["y"], name="n"), ["Add node 'n'", "input 1 is of type int64, but input 0 of type float"]),
], ids=lambda value: value.op_type if isinstance(value, onnx.NodeProto) else "")
def test_bad_nodes(ogc, tmp_path, node, words):
    model = harness.make_model([node], {"x": (F32, (2, 3)), "i": (I64, (2, 3))}, {"y": (F32, (2, 3))})
    if not words:
        assert f"onnx.{node.op_type}" in ir(ogc, model, tmp_path)
        return
    message = problems(ogc, model, tmp_path)
    assert len(message.splitlines()) == 1, message
    for word in words:
        assert word in message, message


def test_opset_that_is_too_new(ogc, tmp_path):
    message = problems(ogc, harness.make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": (F32, (2,))}, {"y": (F32, (2,))}, opset=999), tmp_path)
    assert "999" in message


def function_model(body, function_inputs, attributes=(), call=None, imports=None):
    function = helper.make_function("local", "Scaled", function_inputs, ["out"], body, imports or [helper.make_opsetid("", 21)], attributes)
    model = harness.make_model([call or helper.make_node("Scaled", ["x"], ["y"], name="call", domain="local", factor=3.0)],
                               {"x": (F32, (2,))}, {"y": (F32, (2,))}, domains=["local"])
    model.functions.append(function)
    return model


def test_functions_are_inlined(ogc, tmp_path):
    """A parameter that is given, one that is left out, and an input that is left out."""
    constant = helper.make_node("Constant", [], ["f"])
    constant.attribute.add(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="factor")
    softmax = helper.make_node("Softmax", ["p"], ["q"], name="soft")
    softmax.attribute.add(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="absent")
    body = [constant, helper.make_node("Mul", ["a", "f"], ["p"], name="product"), softmax, helper.make_node("Clip", ["q", "low"], ["out"])]
    text = ir(ogc, function_model(body, ["a", "low"], ["factor", "absent"]), tmp_path)
    assert "dense<3.000000e+00> : tensor<f32>" in text
    assert '"onnx.Mul"(%arg0' in text and "axis = -1 : i64" in text and '"onnx.Clip"' in text
    assert "Scaled" not in text.replace("loc(", "")


def test_function_that_calls_itself(ogc, tmp_path):
    model = function_model([helper.make_node("Scaled", ["a"], ["out"], domain="local", name="inner")], ["a"],
                           imports=[helper.make_opsetid("", 21), helper.make_opsetid("local", 1)])
    del model.graph.node[0].attribute[:]
    assert "calls itself" in problems(ogc, model, tmp_path)


def test_subgraphs(ogc, tmp_path):
    """Branches capture values of the graph around them; a loop's carried value keeps its shape, its scan output gets a dimension."""
    def graph(name, nodes, inputs, outputs):
        return helper.make_graph(nodes, name, [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(*o) for o in outputs])

    branches = [graph(op, [helper.make_node(op, ["m"], [op])], [], [(op, F32, None)]) for op in ("Relu", "Neg")]
    body = graph("body", [helper.make_node("Identity", ["go"], ["go_on"]),
                          helper.make_node("If", ["go"], ["picked"], name="choice", then_branch=branches[0], else_branch=branches[1]),
                          helper.make_node("Add", ["carried", "picked"], ["next"])],
                 [("i", I64, ()), ("go", BOOL, ()), ("carried", F32, ("p", "q"))], [("go_on", BOOL, ()), ("next", F32, None), ("picked", F32, None)])
    nodes = [helper.make_node("Exp", ["x"], ["m"]), helper.make_node("Loop", ["n", "", "x"], ["last", "all"], name="loop", body=body)]
    model = harness.make_model(nodes, {"x": (F32, (2, 3)), "n": (I64, ())}, {"last": (F32, None), "all": (F32, None)})
    text = ir(ogc, model, tmp_path)
    assert "tensor<2x3xf32>):" in text  # the loop's carried argument
    assert "-> (tensor<2x3xf32>, tensor<?x2x3xf32>)" in text
    assert text.index("onnx.Relu") < text.index("onnx.Neg")
    assert text.count("onnx.yield") == 3


# ---------------------------------------------------------------------------------------------------------- older operators

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
AXES = np.array([1], np.int64)
UPGRADES = [
    ("Squeeze", [X[:, :1]], {"axes": [1]}, 11, ["dense<1> : tensor<1xi64>", "tensor<2x4xf32>"]),
    ("Unsqueeze", [X], {"axes": [0, 4]}, 11, ["dense<[0, 4]>", "tensor<1x2x3x4x1xf32>"]),
    ("ReduceSum", [X], {"axes": [1], "keepdims": 0}, 11, ["dense<1> : tensor<1xi64>", "tensor<2x4xf32>"]),
    ("ReduceMax", [X], {"axes": [-1]}, 13, ["dense<-1>", "tensor<2x3x1xf32>"]),
    ("ReduceMean", [X], {}, 13, ["tensor<1x1x1xf32>"]),
    ("Slice", [X], {"starts": [1], "ends": [3], "axes": [2]}, 9, ["dense<1>", "dense<3>", "tensor<2x3x2xf32>"]),
    ("Pad", [X], {"pads": [0, 0, 1, 0, 0, 2], "value": 1.5}, 10, ["dense<1.500000e+00> : tensor<f32>", "tensor<2x3x7xf32>"]),
    ("Clip", [X], {"min": -1.0}, 10, ["dense<-1.000000e+00> : tensor<f32>"]),
    ("TopK", [X], {"k": 2, "axis": 1}, 9, ["largest = 1", "tensor<2x2x4xf32>"]),
    ("Split", [X], {"axis": 1, "split": [1, 2]}, 11, ["dense<[1, 2]>", "tensor<2x1x4xf32>", "tensor<2x2x4xf32>"]),
    ("Split", [X], {"axis": 2}, 13, ["num_outputs = 2", "tensor<2x3x2xf32>"]),
    ("Softmax", [X], {"axis": 1}, 11, ["onnx.Flatten", "axis = -1", "onnx.Reshape"]),
    ("Softmax", [X], {"axis": 2}, 11, ["axis = -1"]),
    ("LogSoftmax", [X], {}, 11, ["onnx.Flatten", "onnx.LogSoftmax"]),
    ("Upsample", [X[None]], {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest"}, 8, ["onnx.Resize", "asymmetric", "floor", "tensor<1x2x6x12xf32>"]),
    ("Dropout", [X], {"ratio": 0.3}, 10, ["onnx.Dropout"]),
    ("BatchNormalization", [X, *[np.ones(3, np.float32)] * 4], {}, 9, ["onnx.BatchNormalization", "epsilon"]),
    ("Scatter", [X, np.zeros((1, 1, 1), np.int64), X[:1, :1, :1]], {"axis": 1}, 9, ["onnx.ScatterElements"]),
    ("PRelu", [X, np.full((4,), 0.1, np.float32)], {}, 7, ["onnx.PRelu"]),
]


@pytest.mark.parametrize("op, inputs, attributes, opset, words", UPGRADES, ids=[f"{case[0]}-{case[3]}" for case in UPGRADES])
def test_older_versions(ogc, tmp_path, op, inputs, attributes, opset, words):
    """The newest form in the IR, and the same numbers as onnxruntime gives for the old one."""
    outputs = 2 if op in ("Split", "TopK") else 1
    model, fed = harness.single_node(op, inputs, attributes, outputs, range(1, len(inputs)), opset)
    text = ir(ogc, model, tmp_path)
    for word in words:
        assert word in text, text


@pytest.mark.parametrize("case", [case for case in UPGRADES if case[0] in ("Squeeze", "Unsqueeze", "ReduceSum", "ReduceMax", "ReduceMean", "Slice",
                                                                          "Clip", "Split", "Softmax", "LogSoftmax", "Dropout", "BatchNormalization")],
                         ids=lambda case: f"{case[0]}-{case[3]}")
def test_older_versions_compute_the_same(ogc, tmp_path, case):
    op, inputs, attributes, opset, _ = case
    model, fed = harness.single_node(op, inputs, attributes, 2 if op == "Split" else 1, range(1, len(inputs)), opset)
    bundle = ogc.compile(save(model, tmp_path), tmp_path / "m.ogc")
    harness.check_outputs(ogc.run(bundle, fed), harness.reference(model, fed), 1e-6)


def test_broadcast_along_an_axis(ogc, tmp_path):
    node = helper.make_node("Add", ["x", "b"], ["y"], name="n", broadcast=1, axis=1)
    model = harness.make_model([node], {"x": (F32, (2, 3, 4))}, {"y": (F32, (2, 3, 4))}, {"b": np.ones(3, np.float32)}, opset=6, ir_version=3)
    text = ir(ogc, model, tmp_path)
    assert '"onnx.Unsqueeze"' in text and "tensor<3x1xf32>" in text and "broadcast" not in text


@pytest.mark.parametrize("op, attributes, words", [
    ("BatchNormalization", {"spatial": 0}, ["spatial"]),
    ("Tile", {}, ["Tile", "below 6"]),
], ids=["spatial", "Tile"])
def test_old_forms_that_are_refused(ogc, tmp_path, op, attributes, words):
    one = np.ones(3, np.float32)
    inputs = {"BatchNormalization": [X, one, one, one, one], "Tile": [X, np.array([2], np.int64), np.array([0], np.int64)]}[op]
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], name="n", **attributes)
    model = harness.make_model([node], {"x0": (F32, X.shape)}, {"y": (F32, None)}, dict(zip(names[1:], inputs[1:])), opset=7 if op[0] == "B" else 5,
                               ir_version=3)
    message = problems(ogc, model, tmp_path)
    for word in words:
        assert word in message, message


# ------------------------------------------------------------------------------------------- values of inputs, sparse initializers

def sum_over_axes():
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], name="sum", keepdims=0)
    return harness.make_model([node], {"x": (F32, (2, 3, 4)), "axes": (I64, (1,))}, {"y": (F32, None)})


@pytest.mark.parametrize("value", ["axes=[1]", "axes=@axes.pb"])
def test_value_of_an_input(ogc, tmp_path, value):
    """The input is a constant, and the bundle has none of its name."""
    axes = np.array([1], np.int64)
    (tmp_path / "axes.pb").write_bytes(numpy_helper.from_array(axes).SerializeToString())
    bundle = ogc.compile(save(sum_over_axes(), tmp_path), tmp_path / "m.ogc", value=value.replace("@", f"@{tmp_path}/"))
    assert [entry["name"] for entry in ogc.inspect(bundle)["graphs"][0]["inputs"]] == ["x"]
    harness.check_outputs(ogc.run(bundle, {"x": X}), {"y": X.sum(1)}, 1e-6)


@pytest.mark.parametrize("value, words", [
    ("axes=[1.5]", ["'axes'", "'1.5'"]), ("axes=[1, 2]", ["'axes'", "tensor<2xi64>"]), ("axes=[1", ["not closed"]), ("other=1", ["no input 'other'", "'axes'"]),
    ("x=[[1], [2, 3]]", ["lists of 1 and of 2"]), ("axes=@absent.pb", ["cannot be read"]),
])
def test_bad_value_of_an_input(ogc, tmp_path, value, words):
    with pytest.raises(harness.OgcError) as caught:
        ogc.compile(save(sum_over_axes(), tmp_path), tmp_path / "m.ogc", value=value)
    assert caught.value.code == 1
    for word in words:
        assert word in caught.value.message, caught.value.message


def sparse_model(values, indices, dims):
    model = harness.make_model([helper.make_node("Add", ["x", "s"], ["y"])], {"x": (F32, (2, 3))}, {"y": (F32, (2, 3))})
    tensor = helper.make_sparse_tensor(numpy_helper.from_array(np.array(values, np.float32), "s"), numpy_helper.from_array(np.array(indices, np.int64)), dims)
    model.graph.sparse_initializer.append(tensor)
    return model


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["flat", "by dimension"])
def test_sparse_initializers(ogc, tmp_path, indices):
    text = ir(ogc, sparse_model([1.5, -2], indices, [2, 3]), tmp_path)
    assert "dense<[[0.000000e+00, 1.500000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, -2.000000e+00]]>" in text


@pytest.mark.parametrize("indices, dims, words", [
    ([1, 6], [2, 3], ["sparse index 1 outside"]), ([5, 1], [2, 3], ["sparse index 1", "not above"]), ([1], [2, 3], ["sparse indices"]),
    ([1, 5], [2**40, 2**20], ["is sparse", "bytes when dense"]),
], ids=["outside", "order", "count", "size"])
def test_bad_sparse_initializers(ogc, tmp_path, indices, dims, words):
    message = problems(ogc, sparse_model([1.5, -2], indices, dims), tmp_path)
    for word in ["'s'", *words]:
        assert word in message, message
