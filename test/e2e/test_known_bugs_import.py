"""Small cases from public bug reports of other projects, on what the importer makes of a model."""
import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper

import harness

F32, I64, I32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
N = helper.make_node


def f32(*values):
    return np.array(values, np.float32)


def run(ogc, tmp_path, model, inputs, shapes=()):
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return ogc.run(ogc.compile(path, tmp_path / "m.ogc", shapes), inputs)


def same(ogc, tmp_path, model, inputs, expected, shapes=()):
    outputs = run(ogc, tmp_path, model, inputs, shapes)
    assert list(outputs) == list(expected)
    for name, value in expected.items():
        value = np.asarray(value)
        assert outputs[name].shape == value.shape, name
        np.testing.assert_allclose(outputs[name].astype(np.float64), value.astype(np.float64), rtol=1e-6, err_msg=name)


def graph(name, nodes, outputs, initializers=()):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, F32, None) for output in outputs], list(initializers))


def with_condition(nodes, value, initializers=None):
    """A model whose `cond` is a constant: which branch is taken is known when it is compiled."""
    return harness.make_model(nodes, {"x": (F32, (2,))}, {"y": (F32, None)}, {**(initializers or {}), "cond": np.array(value)})


@pytest.mark.parametrize("value, expected", [(True, [11, 22]), (False, [1, 4])])
def test_initializer_that_only_a_branch_reads(ogc, tmp_path, value, expected):
    """microsoft/onnxruntime#729, #32131"""
    branches = {"then_branch": graph("then", [N("Add", ["x", "W"], ["t"])], ["t"]), "else_branch": graph("else", [N("Mul", ["x", "x"], ["e"])], ["e"])}
    same(ogc, tmp_path, with_condition([N("If", ["cond"], ["y"], **branches)], value, {"W": f32(10, 20)}), {"x": f32(1, 2)}, {"y": expected})


def test_outputs_that_nothing_computes(ogc, tmp_path):
    """openvinotoolkit/openvino#35261, microsoft/onnxruntime#7260: an initializer, an input, and a copy of it; an input without use."""
    model = harness.make_model([N("Identity", ["x"], ["y"])], {"x": (F32, (2,)), "u": (F32, (3,))}, {"w": (F32, (3,)), "x": (F32, (2,)), "y": (F32, (2,))},
                               {"w": f32(1, 2, 3)})
    same(ogc, tmp_path, model, {"x": f32(5, 6), "u": f32(0, 0, 0)}, {"w": [1, 2, 3], "x": [5, 6], "y": [5, 6]})


@pytest.mark.parametrize("value, expected", [(True, [1, 2]), (False, [7, 8])])
def test_branches_without_nodes(ogc, tmp_path, value, expected):
    branches = {"then_branch": graph("then", [], ["x"]), "else_branch": graph("else", [], ["own"], [helper.make_tensor("own", F32, [2], [7, 8])])}
    same(ogc, tmp_path, with_condition([N("If", ["cond"], ["y"], **branches)], value), {"x": f32(1, 2)}, {"y": expected})


@pytest.mark.parametrize("kind, dims, fields, expected", [
    (TensorProto.FLOAT16, [2], {"int32_data": [15360, 49152]}, [1, -2]), (TensorProto.BFLOAT16, [2], {"int32_data": [16256, 49152]}, [1, -2]),
    (TensorProto.FLOAT16, [2], {"raw_data": bytes([0, 0x3C, 0, 0xC0])}, [1, -2]), (TensorProto.BFLOAT16, [2], {"raw_data": bytes([0x80, 0x3F, 0, 0xC0])}, [1, -2]),
    (BOOL, [2], {"int32_data": [1, 0]}, [1, 0]), (TensorProto.INT8, [2], {"int32_data": [-1, 5]}, [-1, 5]),
    (TensorProto.UINT64, [1], {"uint64_data": [2**63]}, [2.0**63]), (TensorProto.FLOAT8E4M3FN, [2], {"raw_data": bytes([0x38, 0xB8])}, [1, -1]),
    (TensorProto.DOUBLE, [2], {"double_data": [0.5, -3]}, [0.5, -3]), (F32, [], {"float_data": [4]}, 4), (F32, [0], {}, np.zeros(0)),
], ids=lambda value: TensorProto.DataType.Name(value) if isinstance(value, int) else "")
def test_encodings(ogc, tmp_path, kind, dims, fields, expected):
    """openvinotoolkit/openvino#6338, onnx/onnx#6646: bit patterns, not numbers."""
    tensor = TensorProto(name="c", data_type=kind, dims=dims, **fields)
    model = harness.make_model([N("Cast", ["c"], ["y"], to=F32)], {"x": (F32, (1,))}, {"y": (F32, None)})
    model.graph.initializer.append(tensor)
    same(ogc, tmp_path, model, {"x": f32(0)}, {"y": expected})


# ------------------------------------------------------------------------------------------------------------- functions

def reference(name, parameter, kind):
    return AttributeProto(name=name, ref_attr_name=parameter, type=kind)


def constant_of(parameter, output="c"):
    node = N("Constant", [], [output])
    node.attribute.append(reference("value_int", parameter, AttributeProto.INT))
    return node


def with_functions(nodes, functions):
    model = harness.make_model(nodes, {"x": (I64, (2,))}, {"y": (I64, (2,))}, domains=["local"])
    model.functions.extend(functions)
    return model


IMPORTS = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
ZEROS = np.zeros(2, np.int64)


def test_attributes_through_nested_functions(ogc, tmp_path):
    """microsoft/onnxruntime#12506, #22687: names differ between the two calls."""
    f1 = helper.make_function("local", "f1", ["x"], ["y"], [constant_of("inner"), N("Add", ["x", "c"], ["y"])], IMPORTS, ["inner"])
    call = N("f1", ["x"], ["y"], domain="local")
    call.attribute.append(reference("inner", "outer", AttributeProto.INT))
    f2 = helper.make_function("local", "f2", ["x"], ["y"], [call], IMPORTS, ["outer"])
    nodes = [N("f2", ["x"], ["a"], domain="local", outer=1), N("f2", ["x"], ["b"], domain="local", outer=5), N("Add", ["a", "b"], ["y"])]
    same(ogc, tmp_path, with_functions(nodes, [f1, f2]), {"x": ZEROS}, {"y": [6, 6]})


def test_attribute_inside_of_a_branch_of_a_function(ogc, tmp_path):
    """onnx/onnx-mlir#2297"""
    def branch(name, nodes, output):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, I64, None)])
    body = [N("Constant", [], ["yes"], value=helper.make_tensor("v", BOOL, [], [1])),
            N("If", ["yes"], ["y"], then_branch=branch("then", [constant_of("inner"), N("Add", ["x", "c"], ["t"])], "t"),
              else_branch=branch("else", [N("Neg", ["x"], ["e"])], "e"))]
    function = helper.make_function("local", "f", ["x"], ["y"], body, IMPORTS, ["inner"])
    same(ogc, tmp_path, with_functions([N("f", ["x"], ["y"], domain="local", inner=9)], [function]), {"x": ZEROS}, {"y": [9, 9]})


def test_attribute_with_a_default(ogc, tmp_path):
    function = helper.make_function("local", "f", ["x"], ["y"], [constant_of("inner"), N("Add", ["x", "c"], ["y"])], IMPORTS,
                                    attribute_protos=[helper.make_attribute("inner", 4)])
    nodes = [N("f", ["x"], ["a"], domain="local"), N("f", ["a"], ["y"], domain="local", inner=10)]
    same(ogc, tmp_path, with_functions(nodes, [function]), {"x": ZEROS}, {"y": [14, 14]})


def test_overloads(ogc, tmp_path):
    """onnx/onnx#4792, IR 10"""
    functions = [helper.make_function("local", "f", ["x"], ["y"], [N("Add", ["x", "x"], ["y"])], IMPORTS, overload="sum"),
                 helper.make_function("local", "f", ["x"], ["y"], [N("Mul", ["x", "x"], ["y"])], IMPORTS, overload="product")]
    nodes = [N("f", ["x"], ["a"], domain="local", overload="sum"), N("f", ["a"], ["y"], domain="local", overload="product")]
    same(ogc, tmp_path, with_functions(nodes, functions), {"x": np.array([1, 3])}, {"y": [4, 36]})


# ----------------------------------------------------------------------------------------------------------------- names

def test_equal_names_in_two_functions(ogc, tmp_path):
    """onnx/onnx-tensorrt#974"""
    def function(name, op, values):
        constant = N("Constant", [], ["c"], value=helper.make_tensor("c", F32, [len(values)], values))
        return helper.make_function("local", name, ["x"], ["y"], [constant, N(op, ["x", "c"], ["y"])], IMPORTS)
    nodes = [N("fA", ["x"], ["a"], domain="local"), N("fB", ["x"], ["b"], domain="local"), N("Add", ["a", "b"], ["y"])]
    model = harness.make_model(nodes, {"x": (F32, (2,))}, {"y": (F32, (2,))}, domains=["local"])
    model.functions.extend([function("fA", "Add", [1.0]), function("fB", "Mul", [10.0, 20.0])])
    same(ogc, tmp_path, model, {"x": f32(1, 2)}, {"y": [12, 43]})


def test_names_that_differ_in_signs_only(ogc, tmp_path):
    """tracel-ai/burn#3208"""
    nodes = [N("Add", ["x", "a/b"], ["s"], name=""), N("Add", ["s", "a:b"], ["t"], name="n"), N("Add", ["t", "a_b"], ["y"], name="n")]
    model = harness.make_model(nodes, {"x": (F32, (1,))}, {"y": (F32, (1,))}, {"a/b": f32(1), "a:b": f32(10), "a_b": f32(100)})
    same(ogc, tmp_path, model, {"x": f32(0)}, {"y": [111]})


def test_names_come_back(ogc, tmp_path):
    """onnx/onnx-tensorflow#999: spaces, letters of all scripts, very long ones."""
    names = ["größe in m", "输入", "x" * 300]
    nodes = [N("Add", names[:2], ["t"], name="n"), N("Add", ["t", names[2]], ["和 / sum"], name="n")]
    model = harness.make_model(nodes, {name: (F32, (1,)) for name in names}, {"和 / sum": (F32, (1,))})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc")
    (facts,) = ogc.inspect(bundle)["graphs"]
    assert [i["name"] for i in facts["inputs"]] == names and [o["name"] for o in facts["outputs"]] == ["和 / sum"]
    assert ogc.run(bundle, dict(zip(names, (f32(1), f32(2), f32(3)))))["和 / sum"] == [6]


@pytest.mark.parametrize("ir_version", [3, 8])
def test_initializers_that_are_inputs_too(ogc, tmp_path, ir_version):
    """microsoft/onnxruntime#1324, onnx/onnx#4677: we freeze them, and say so when the caller gives another value."""
    model = harness.make_model([N("Add", ["x", "w"], ["y"])], {"x": (F32, (2,)), "w": (F32, (2,))}, {"y": (F32, (2,))}, {"w": f32(1, 2)},
                               ir_version=ir_version, opset=11)
    same(ogc, tmp_path, model, {"x": f32(0, 0)}, {"y": [1, 2]})
    with pytest.raises(harness.OgcError) as caught:
        run(ogc, tmp_path, model, {"x": f32(0, 0), "w": f32(10, 20)})
    assert caught.value.code == 1 and "no input 'w'" in caught.value.message


# ---------------------------------------------------------------------------------------------------------- absent operands

@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("names, expected", [(["x", "", "high"], [-1, 3, 6]), (["x"], [-1, 3, 9]), (["x", "low"], [0, 3, 9])])
def test_clip_without_limits(ogc, tmp_path, dtype, names, expected):
    """onnx/onnx#3564, pytorch/pytorch#61404"""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = harness.make_model([N("Clip", names, ["y"])], {"x": (kind, (3,))}, {"y": (kind, (3,))}, {"high": np.array(6, dtype), "low": np.array(0, dtype)}, 13)
    same(ogc, tmp_path, model, {"x": np.array([-1, 3, 9], dtype)}, {"y": expected})


def test_operands_that_are_left_out(ogc, tmp_path):
    nodes = [N("LayerNormalization", ["x", "scale"], ["n"], axis=-1), N("Reshape", ["n", "four"], ["r"]), N("Resize", ["r", "", "", "sizes"], ["u"], mode="nearest"),
             N("Dropout", ["u", "", ""], ["y", ""])]
    model = harness.make_model(nodes, {"x": (F32, (2, 2))}, {"y": (F32, None)}, {"scale": f32(1, 1), "four": np.array([1, 1, 2, 2]),
                                                                                "sizes": np.array([1, 1, 2, 4])}, 17)
    x = f32(1, 3, 5, 9).reshape(2, 2)
    same(ogc, tmp_path, model, {"x": x}, {"y": harness.reference(model, {"x": x})["y"]})


def test_lstm_with_one_output_and_gaps(ogc, tmp_path):
    """NVIDIA/TensorRT#3380"""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in {"w": (1, 8, 3), "r": (1, 8, 2), "h0": (1, 1, 2)}.items()}
    model = harness.make_model([N("LSTM", ["x", "w", "r", "", "", "h0"], ["", "Y_h"], hidden_size=2)], {"x": (F32, (4, 1, 3))}, {"Y_h": (F32, None)}, weights)
    x = rng.standard_normal((4, 1, 3)).astype(np.float32)
    same(ogc, tmp_path, model, {"x": x}, harness.reference(model, {"x": x}))


def test_folding_around_an_absent_operand(ogc, tmp_path):
    """The shape of the reshape goes through a Clip without a lower limit."""
    nodes = [N("Clip", ["target", "", "most"], ["clipped"]), N("Reshape", ["x", "clipped"], ["y"])]
    model = harness.make_model(nodes, {"x": (F32, (6,))}, {"y": (F32, None)}, {"target": np.array([2, 9]), "most": np.array(3)}, 13)
    same(ogc, tmp_path, model, {"x": np.arange(6, dtype=np.float32)}, {"y": np.arange(6).reshape(2, 3)})


# ------------------------------------------------------------------------------------------------------------- old operators

X24 = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
OLD = {
    "Add-6 axis": (N("Add", ["x", "b"], ["y"], broadcast=1, axis=1), 6, np.zeros((2, 3, 4), np.float32), {"b": f32(1, 2, 3)},
                   np.broadcast_to(f32(1, 2, 3)[:, None], (2, 3, 4))),
    "Add-6": (N("Add", ["x", "b"], ["y"], broadcast=1, axis=1), 6, np.zeros((2, 3, 4), np.float32), {"b": X24[0]}, np.stack([X24[0]] * 2)),
    "Reshape-1": (N("Reshape", ["x"], ["y"], shape=[2, -1]), 4, X24, {}, X24.reshape(2, 12)),
    "Pad-2": (N("Pad", ["x"], ["y"], pads=[0, 0, 1, 0, 0, 0], value=5.0), 2, X24, {}, np.pad(X24, ((0, 0), (0, 0), (1, 0)), constant_values=5)),
    "Slice-1": (N("Slice", ["x"], ["y"], axes=[2], starts=[1], ends=[2**31 - 1]), 9, X24, {}, X24[..., 1:]),
    "Squeeze-11": (N("Squeeze", ["x"], ["y"], axes=[0]), 11, X24[:1], {}, X24[0]),
    "Upsample-7": (N("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0], mode="nearest"), 7, X24, {}, X24.repeat(2, 2)),
    "ReduceSum-11": (N("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0), 11, X24, {}, X24.sum(1)),
    "Clip-6": (N("Clip", ["x"], ["y"], min=3.0, max=7.0, consumed_inputs=[0]), 5, X24, {}, np.clip(X24, 3, 7)),
    "Clip-6 attributes": (N("Clip", ["x"], ["y"], min=3.0, max=7.0), 6, X24, {}, np.clip(X24, 3, 7)),
    "BatchNormalization-7": (N("BatchNormalization", ["x", "one", "zero", "zero", "one"], ["y"], spatial=1, epsilon=0.0), 7, X24,
                             {"one": f32(1, 1, 1), "zero": f32(0, 0, 0)}, X24),
}


@pytest.mark.parametrize("name", OLD)
def test_old_forms(ogc, tmp_path, name):
    """openvinotoolkit/openvino#4462, robertknight/rten#1426, pytorch/pytorch#10848: attributes that became operands, and some that went."""
    node, opset, x, constants, expected = OLD[name]
    model = harness.make_model([node], {"x": (F32, x.shape)}, {"y": (F32, None)}, constants, opset, ir_version=4)
    same(ogc, tmp_path, model, {"x": x}, {"y": expected})


def test_old_top_k(ogc, tmp_path):
    model = harness.make_model([N("TopK", ["x"], ["y", "i"], k=2, axis=2)], {"x": (F32, X24.shape)}, {"y": (F32, None), "i": (I64, None)}, {}, 9, ir_version=4)
    same(ogc, tmp_path, model, {"x": X24}, {"y": X24[..., :1:-1], "i": np.broadcast_to([3, 2], (2, 3, 2))})


def test_forms_that_never_were(ogc, tmp_path):
    """An operator at a version that has it not is named with that version."""
    model = harness.make_model([N("Mish", ["x"], ["y"], name="early")], {"x": (F32, (4,))}, {"y": (F32, None)}, {}, 11)
    with pytest.raises(harness.OgcError) as caught:
        run(ogc, tmp_path, model, {"x": f32(1, 2, 3, 4)})
    assert caught.value.code == 1 and "Mish node 'early'" in caught.value.message and "11" in caught.value.message
