"""The onnx package's backend node cases as files that ogc-conformance reads, made once for a version of the package.

A folder of cases holds models/NAME.onnx, NAME.folded.onnx and NAME.half.onnx (all, or every second, of the inputs as initializers), tensors.bin with the
bytes of all inputs and expected outputs, and cases.json, which says what lies where. For each string attribute of an operator one case also has
NAME.nonsense.onnx, where the string is one that no operator knows.
"""
import argparse
import collections
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CACHE = Path(os.environ.get("OGC_CACHE_DIR") or Path.home() / ".cache/ogc")

# Cases whose expected values come out of numpy's random generator: no implementation can give them. Type, shape and the law of the values are checked
# instead; docs/operators.md says so.
LAWS = {
    r"test_bernoulli.*": {"y": "zero or one"},
    r"test_training_dropout(?!_zero_ratio).*": {"y": "dropped", "z": "mask"},
}
# Cases whose expected values hold rounding errors of f32 where the exact value is zero.
ABSOLUTE = {r"test_dft_inverse.*": 1e-6}


def type_name(tensor_type):
    """"float32", "int4", "float8e4m3fn": the names of the bundle format where it has the type."""
    name = TensorProto.DataType.Name(tensor_type).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


def as_numbers(array):
    """Integers of 2 and 4 bits as ogc holds them, one number a byte: ml_dtypes leaves the high bits of negative ones zero."""
    wide = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}.get(array.dtype.name)
    return array if wide is None else array.astype(wide)


def array_of(value):
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def why_not_tensors(case):
    """Why a case lies outside of what is counted: it has values that are no numeric or bool tensors."""
    for info in [*case.model.graph.input, *case.model.graph.output]:
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            return kind.replace("_type", "")
        if info.type.tensor_type.elem_type == TensorProto.STRING:
            return "string"
        if info.type.tensor_type.elem_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
            return "complex"
    return ""


def with_initializers(model, arrays, chosen):
    """The model with the inputs of the chosen numbers as initializers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = max(copy.ir_version, 4)  # initializers need not be inputs
    inputs = list(copy.graph.input)
    for number in chosen:
        tensor = numpy_helper.from_array(arrays[number], inputs[number].name)
        # numpy has no types of its own for some: what the model declares counts.
        tensor.data_type = inputs[number].type.tensor_type.elem_type
        copy.graph.initializer.append(tensor)
    del copy.graph.input[:]
    copy.graph.input.extend(info for number, info in enumerate(inputs) if number not in chosen)
    return copy


NONSENSE = "no_such_thing"


def nonsense(cases):
    """{case name: attribute}: for each operator and string attribute a case of its own to try a string that means nothing."""
    candidates = collections.defaultdict(list)
    for case in cases:
        if why_not_tensors(case):
            continue
        for node in case.model.graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.STRING:
                    candidates[node.op_type, attribute.name].append(case.name)
    chosen = {}
    for (_, attribute), names in sorted(candidates.items(), key=lambda item: (len(item[1]), item[0])):
        name = next((name for name in names if name not in chosen), None)
        if name:
            chosen[name] = attribute
    return chosen


def with_nonsense(model, attribute_name):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        for attribute in node.attribute:
            if attribute.name == attribute_name:
                attribute.s = NONSENSE.encode()
    return copy


class Writer:
    def __init__(self, folder):
        self.folder, self.size = folder, 0
        (folder / "models").mkdir(parents=True)
        self.tensors = open(folder / "tensors.bin", "wb")

    def tensor(self, info, array):
        """Appends an array; elements of less than a byte take one each, as on every boundary of the runtime."""
        data = np.ascontiguousarray(as_numbers(array)).tobytes()
        place = {"name": info.name, "type": type_name(info.type.tensor_type.elem_type), "shape": list(array.shape), "offset": self.size, "bytes": len(data)}
        self.tensors.write(data)
        self.size += len(data)
        return place

    def case(self, case, attribute):
        model, (inputs, outputs) = case.model, case.data_sets[0]
        # The node that the case is named after; an expanded case is one of the operator whose function it spells out.
        entry = {"name": case.name, "operators": sorted({node.op_type for node in model.graph.node}), "rtol": case.rtol,
                 "atol": next((atol for pattern, atol in ABSOLUTE.items() if re.fullmatch(pattern, case.name)), case.atol)}
        reason = why_not_tensors(case)
        if reason:
            return {**entry, "left_out": reason}
        arrays = [array_of(value) for value in inputs]
        entry["inputs"] = [self.tensor(*pair) for pair in zip(model.graph.input, arrays)]
        entry["outputs"] = [self.tensor(info, array_of(value)) for info, value in zip(model.graph.output, outputs)]
        for output in entry["outputs"]:
            for pattern, laws in LAWS.items():
                if re.fullmatch(pattern, case.name) and output["name"] in laws:
                    output["law"] = laws[output["name"]]
        variants = {"plain": (), "folded": range(len(arrays)), "half": range(1, len(arrays), 2)}
        entry["variants"] = [name for name, chosen in variants.items() if name == "plain" or len(chosen)]
        for name in entry["variants"]:
            suffix = "" if name == "plain" else "." + name
            onnx.save(with_initializers(model, arrays, variants[name]) if variants[name] else model, self.folder / "models" / f"{case.name}{suffix}.onnx")
        if attribute:
            entry["variants"].append("nonsense")
            onnx.save(with_nonsense(model, attribute), self.folder / "models" / f"{case.name}.nonsense.onnx")
        return entry


def warm_up_model():
    """What ogc-conformance compiles once, before it forks: a little of everything."""
    x, w, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2, 3, 8, 8]), ("w", [4, 3, 3, 3]), ("y", None)))
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("GlobalAveragePool", ["a"], ["b"]), helper.make_node("Relu", ["a"], ["c"]),
             helper.make_node("Add", ["b", "c"], ["d"]), helper.make_node("MatMul", ["d", "d"], ["e"]), helper.make_node("Softmax", ["e"], ["f"]),
             helper.make_node("Exp", ["f"], ["g"]), helper.make_node("Transpose", ["g"], ["h"], perm=[0, 2, 3, 1]), helper.make_node("Slice", ["h", "s", "t"], ["y"])]
    bounds = [numpy_helper.from_array(np.array([value], np.int64), name) for name, value in (("s", 0), ("t", 1))]
    return helper.make_model(helper.make_graph(nodes, "warmup", [x, w], [y], bounds), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def write(folder):
    from onnx.backend.test.loader import load_node_model_tests

    with contextlib.redirect_stdout(sys.stderr):
        cases = sorted(load_node_model_tests(), key=lambda case: case.name)
    writer = Writer(folder)
    entries = []
    names = {case.name: case for case in cases}
    tried = nonsense(cases)
    for case in cases:
        entry = writer.case(case, tried.get(case.name))
        base = names.get(re.sub(r"_expanded.*", "", case.name), case)
        (node, *_) = base.model.graph.node
        entry["operator"] = (node.domain + "." if node.domain not in ("", "ai.onnx") else "") + node.op_type
        entries.append(entry)
    writer.tensors.close()
    onnx.save(warm_up_model(), folder / "warmup.onnx")
    with open(folder / "cases.json", "w") as file:
        json.dump({"onnx": onnx.__version__, "cases": entries}, file, indent=0)


def folder():
    """The folder of cases for the installed package and this script, made when it is not there."""
    key = hashlib.sha256(Path(__file__).read_bytes() + onnx.__version__.encode() + np.__version__.encode()).hexdigest()[:12]
    path = CACHE / f"cases-{onnx.__version__}-{key}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "cases.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            part = path.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            write(part)
            part.rename(path)
    return path


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(folder())
