#!/usr/bin/env python3
"""Compiles one small model and compares it on the GPU with the cpu target: programs that cannot run here at all fail in a second, not in every case."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model():
    """A product through tensor maps, a softmax and a convolution."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((64, 64)) / 8, "f": rng.standard_normal((8, 1, 3, 3)) / 3}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["b"], axis=-1), helper.make_node("Unsqueeze", ["b", "axes"], ["c"]),
             helper.make_node("Conv", ["c", "f"], ["y"], pads=[1] * 4)]
    initializers = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()] + [numpy_helper.from_array(np.array([0, 1]), "axes")]
    graph = helper.make_graph(nodes, "preflight", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [128, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 128, 64])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def main():
    ogc, target = Path(os.environ["OGC_BUILD_DIR"]) / "bin/ogc", sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path, bundle = Path(folder) / "m.onnx", Path(folder) / "m.ogc"
        onnx.save(model(), path)
        for command in ([ogc, "compile", path, "-o", bundle, "--target", f"{target},cpu", "--precision", "fp16"],
                        [ogc, "verify", bundle, "--device", "cuda:0", "--replays", "3", "--tolerance", "2e-2"]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"error: nothing can be tested here, a model of four nodes fails: {(done.stderr or done.stdout).strip()}")


if __name__ == "__main__":
    main()
