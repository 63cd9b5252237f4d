#!/usr/bin/env python3
"""Writes the models that the fuzzer begins with: some of the onnx package's node cases for every operator, and graphs of our own that
hold what single nodes do not: chains that are fused, subgraphs, functions, shape arithmetic, older opsets, every encoding of weights.

usage: make_corpus.py FOLDER
"""
import sys
import warnings
from pathlib import Path

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

F32, F16, I64, BOOL, U8, I8 = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8,
                               TensorProto.INT8)
CASES_AN_OPERATOR = 3
MOST_BYTES = 20_000
rng = np.random.default_rng(0)


def node_cases():
    """A few small cases of every operator, those with the most different attributes first."""
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    chosen = {}
    for case in sorted(cases, key=lambda case: case.name):
        if case.model is None or len(case.model.SerializeToString()) > MOST_BYTES:
            continue
        node = case.model.graph.node[0]
        kinds = chosen.setdefault(node.op_type, {})
        kinds.setdefault((frozenset(attribute.name for attribute in node.attribute), len(node.input)), case)
    for operator, kinds in sorted(chosen.items()):
        for _, case in sorted(kinds.items(), key=lambda kind: (-len(kind[0][0]), kind[1].name))[:CASES_AN_OPERATOR]:
            yield f"node-{operator}-{case.name}", case.model


def weight(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def model(nodes, inputs, outputs, weights=(), opset=21, ir_version=10, functions=(), domains=()):
    infos = [[helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in values.items()] for values in (inputs, outputs)]
    tensors = [value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value), name)
               for name, value in dict(weights).items()]
    graph = helper.make_graph(nodes, "g", *infos, initializer=tensors)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, functions=list(functions))


N = helper.make_node


def convolutions():
    nodes = [N("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
             N("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"], name="norm"), N("Relu", ["n"], ["r"]),
             N("Conv", ["r", "dw"], ["d"], group=8, strides=[2, 2], auto_pad="SAME_UPPER"), N("Clip", ["d", "zero", "six"], ["k"]),
             N("GlobalAveragePool", ["k"], ["p"]), N("Flatten", ["p"], ["f"]), N("Gemm", ["f", "fc", "fb"], ["y"], transB=1)]
    weights = {"w": weight(8, 3, 3, 3), "b": weight(8), "s": weight(8), "t": weight(8), "m": weight(8), "v": np.ones(8, np.float32),
               "dw": weight(8, 1, 3, 3), "zero": np.float32(0), "six": np.float32(6), "fc": weight(5, 8), "fb": weight(5)}
    return model(nodes, {"x": (F32, ["batch", 3, 8, 8])}, {"y": (F32, ["batch", 5])}, weights)


def attention():
    nodes = []
    for name in "qkv":
        nodes += [N("MatMul", ["x", f"w{name}"], [f"{name}0"]), N("Add", [f"{name}0", f"b{name}"], [f"{name}1"]),
                  N("Reshape", [f"{name}1", "heads"], [f"{name}2"]),
                  N("Transpose", [f"{name}2"], [f"{name}3"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
    nodes += [N("MatMul", ["q3", "k3"], ["s"]), N("Div", ["s", "scale"], ["s1"]), N("Add", ["s1", "mask"], ["s2"]),
              N("Softmax", ["s2"], ["a"], axis=-1), N("MatMul", ["a", "v3"], ["o"]), N("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
              N("Reshape", ["o1", "whole"], ["o2"]), N("Add", ["o2", "x"], ["r"]),
              N("LayerNormalization", ["r", "g", "be"], ["l"], axis=-1, epsilon=1e-5), N("Gelu", ["l"], ["y"])]
    weights = {**{f"w{n}": weight(16, 16) for n in "qkv"}, **{f"b{n}": weight(16) for n in "qkv"}, "g": weight(16), "be": weight(16),
               "heads": np.array([0, 0, 2, 8]), "whole": np.array([0, 0, 16]), "scale": np.float32(2.8)}
    return model(nodes, {"x": (F32, ["batch", "seq", 16]), "mask": (F32, ["batch", 1, 1, "seq"])}, {"y": (F32, ["batch", "seq", 16])}, weights)


def shapes():
    nodes = [N("Shape", ["x"], ["s"]), N("Gather", ["s", "zero"], ["n"]), N("Unsqueeze", ["n", "axes"], ["n1"]), N("Mul", ["n1", "two"], ["n2"]),
             N("Concat", ["n2", "minus"], ["target"], axis=0), N("Reshape", ["x", "target"], ["r"]), N("ConstantOfShape", ["target2"], ["c"]),
             N("Expand", ["r", "wide"], ["e"]), N("Slice", ["e", "starts", "ends", "axes1", "steps"], ["l"]), N("Range", ["zero", "limit", "one"], ["g"]),
             N("Cast", ["g"], ["gf"], to=F32), N("Add", ["l", "gf"], ["y"]), N("ReduceSum", ["c"], ["z"], keepdims=0)]
    weights = {"zero": np.int64(0), "axes": np.array([0]), "two": np.array([2]), "minus": np.array([-1]), "target2": np.array([2, 3]),
               "wide": np.array([1, 1]), "starts": np.array([0]), "ends": np.array([2**62]), "axes1": np.array([1]), "steps": np.array([1]),
               "limit": np.int64(2), "one": np.int64(1)}
    return model(nodes, {"x": (F32, ["n", 4])}, {"y": (F32, None), "z": (F32, [])}, weights)


def subgraphs():
    def graph(name, nodes, inputs, outputs):
        return helper.make_graph(nodes, name, [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(*o) for o in outputs])
    branches = [graph(op, [N(op, ["m"], [op])], [], [(op, F32, None)]) for op in ("Relu", "Neg")]
    body = graph("body", [N("Identity", ["go"], ["on"]), N("If", ["go"], ["p"], then_branch=branches[0], else_branch=branches[1]),
                          N("Add", ["c", "p"], ["next"])],
                 [("i", I64, ()), ("go", BOOL, ()), ("c", F32, ("a", "b"))], [("on", BOOL, ()), ("next", F32, None), ("p", F32, None)])
    scan = graph("scan", [N("Add", ["state", "row"], ["s"]), N("Identity", ["s"], ["out"])], [("state", F32, (3,)), ("row", F32, (3,))],
                 [("s", F32, (3,)), ("out", F32, (3,))])
    nodes = [N("Exp", ["x"], ["m"]), N("Loop", ["n", "", "x"], ["last", "all"], body=body), N("Scan", ["start", "last"], ["end", "rows"], body=scan,
                                                                                              num_scan_inputs=1)]
    return model(nodes, {"x": (F32, [2, 3])}, {"all": (F32, None), "end": (F32, None), "rows": (F32, None)}, {"n": np.int64(3), "start": weight(3)})


def local_functions():
    constant = N("Constant", [], ["f"])
    constant.attribute.add(name="value_float", type=AttributeProto.FLOAT, ref_attr_name="factor")
    inner = helper.make_function("local", "Scaled", ["a"], ["out"], [constant, N("Mul", ["a", "f"], ["out"])], [helper.make_opsetid("", 21)], ["factor"])
    call = N("Scaled", ["a"], ["t"], domain="local")
    call.attribute.add(name="factor", type=AttributeProto.FLOAT, ref_attr_name="outer")
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    outer = helper.make_function("local", "Twice", ["a", "b"], ["out"], [call, N("Add", ["t", "b"], ["out"])], imports, ["outer"])
    nodes = [N("Twice", ["x", "x"], ["t"], domain="local", outer=2.0), N("Scaled", ["t"], ["y"], domain="local", factor=3.0)]
    return model(nodes, {"x": (F32, [4])}, {"y": (F32, [4])}, functions=[inner, outer], domains=["local"])


def encodings():
    weights = {"a": helper.make_tensor("a", F16, [2], [1.5, -2]), "b": TensorProto(name="b", data_type=TensorProto.BFLOAT16, dims=[2], int32_data=[16256, 49152]),
               "c": helper.make_tensor("c", TensorProto.INT4, [3], [1, -2, 3]), "d": helper.make_tensor("d", TensorProto.FLOAT8E4M3FN, [2], [1, -1]),
               "e": helper.make_tensor("e", TensorProto.UINT64, [2], [1, 2**64 - 1]), "f": helper.make_tensor("f", TensorProto.DOUBLE, [2], [1, 2]),
               "g": helper.make_tensor("g", BOOL, [2], [True, False])}
    nodes = [N("Cast", [name], [f"{name}1"], to=F32) for name in weights]
    return model(nodes, {}, {f"{name}1": (F32, None) for name in weights}, weights)


def quantized():
    nodes = [N("QuantizeLinear", ["x", "xs", "xz"], ["q"]), N("DequantizeLinear", ["q", "xs", "xz"], ["xd"]),
             N("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0), N("Conv", ["xd", "wd"], ["c"], pads=[1, 1, 1, 1]),
             N("QuantizeLinear", ["c", "ys", "xz"], ["cq"]), N("DequantizeLinear", ["cq", "ys", "xz"], ["y"])]
    weights = {"xs": np.float32(0.05), "xz": np.uint8(128), "w": rng.integers(-127, 127, (4, 3, 3, 3)).astype(np.int8),
               "ws": np.abs(weight(4)), "wz": np.zeros(4, np.int8), "ys": np.float32(0.1)}
    return model(nodes, {"x": (F32, [1, 3, 6, 6])}, {"y": (F32, None)}, weights)


def old_opset():
    nodes = [N("Add", ["x", "b"], ["a"], broadcast=1, axis=1), N("Reshape", ["a"], ["r"], shape=[2, -1]), N("Clip", ["r"], ["c"], min=-1.0, max=1.0),
             N("Softmax", ["c"], ["y"], axis=1)]
    return model(nodes, {"x": (F32, [2, 3, 4]), "b": (F32, [3])}, {"y": (F32, None)}, {"b": weight(3)}, opset=4, ir_version=3)


def recurrent():
    nodes = [N("LSTM", ["x", "w", "r", "b"], ["all", "h", "c"], hidden_size=4, direction="bidirectional"), N("Squeeze", ["h", "axes"], ["y"])]
    weights = {"w": weight(2, 16, 3), "r": weight(2, 16, 4), "b": weight(2, 32), "axes": np.array([1])}
    return model(nodes, {"x": (F32, [5, 1, 3])}, {"all": (F32, None), "y": (F32, None)}, weights)


def movement():
    nodes = [N("Split", ["x"], ["a", "b", "c"], axis=1, num_outputs=3), N("Transpose", ["a"], ["t"], perm=[0, 2, 1]), N("Pad", ["b", "pads"], ["p"], mode="reflect"),
             N("Gather", ["c", "indices"], ["g"], axis=2), N("TopK", ["p", "k"], ["v", "i"]), N("Concat", ["v", "g"], ["y"], axis=2),
             N("ReduceMax", ["t", "one"], ["m"]), N("Tile", ["m", "repeats"], ["z"]), N("Resize", ["x4", "", "scales"], ["u"], mode="linear")]
    weights = {"pads": np.array([0, 0, 1, 0, 0, 1]), "indices": np.array([[0, -1]]).reshape(2), "k": np.array([2]), "one": np.array([1]),
               "repeats": np.array([1, 2, 1]), "scales": np.array([1, 1, 2, 1.5], np.float32)}
    return model(nodes, {"x": (F32, [2, 6, 4]), "x4": (F32, [1, 1, 3, 4])}, {"y": (F32, None), "i": (I64, None), "z": (F32, None), "u": (F32, None)}, weights)


OURS = [convolutions, attention, shapes, subgraphs, local_functions, encodings, quantized, old_opset, recurrent, movement]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    # Our own count ten times: they hold what single nodes do not.
    models = [(f"ours-{make.__name__}-{copy}", make()) for make in OURS for copy in range(10)] + list(node_cases())
    for name, proto in models:
        (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())
    print(f"{len(models)} models in {folder}")


if __name__ == "__main__":
    main()
