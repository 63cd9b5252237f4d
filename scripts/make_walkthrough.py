#!/usr/bin/env python3
"""Writes docs/walkthrough.md: one small model followed from file to bundle, with the IR after each phase.

usage: make_walkthrough.py [--ogc build/bin/ogc] [--check]     --check fails when the page is not what would be written
needs: onnx, numpy
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "walkthrough.md"
LONGEST = 60  # lines of IR shown a phase

INTRO = """# One model, from file to replay

Written by `scripts/make_walkthrough.py` and checked in CI: every listing is what the compiler prints.

The model is one step of a small classifier, `y = softmax(relu(x W1 + b1) W2)`, with an unknown batch dimension. It is compiled by

```
ogc compile mlp.onnx -o mlp.ogc --shapes 'x=4x16' --target sm_90,cpu --dump-dir ir
```
"""

PHASES = {
    "import": "The protobuf becomes the `onnx` dialect: names are locations, weights are constants, each operator has its newest form.",
    "normalize": "Operators stay whole, or are made whole again (attention, layer normalization, GELU); nothing to do here.",
    "specialize": "One function a graph ID. `--shapes` fixes the batch; every dimension is known from here on.",
    "lower": "Structured operations on static tensors. The products are anchors, with weights brought into panels; all else is `linalg`.",
    "fuse": "Regions became kernels: bias and ReLU are the epilogue of the first product, softmax is one row kernel. Constants were evaluated.",
    "plan": "The graph: sections, offsets and edges. This is what the bundle holds, one to one.",
}


def model() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((16, 32)).astype(np.float32), "w1"),
        numpy_helper.from_array(rng.standard_normal(32).astype(np.float32), "b1"),
        numpy_helper.from_array(rng.standard_normal((32, 8)).astype(np.float32), "w2"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], name="dense1"),
        helper.make_node("Add", ["h", "b1"], ["hb"], name="bias1"),
        helper.make_node("Relu", ["hb"], ["a"], name="relu"),
        helper.make_node("MatMul", ["a", "w2"], ["z"], name="dense2"),
        helper.make_node("Softmax", ["z"], ["y"], name="softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 8])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def shorten(text: str) -> str:
    lines = [line if len(line) <= 180 else line[:177] + "..." for line in text.rstrip().splitlines()]
    if len(lines) > LONGEST:
        lines = lines[:LONGEST] + [f"// ... {len(lines) - LONGEST} more lines"]
    return "\n".join(lines)


def page(ogc: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        onnx.save(model(), path / "mlp.onnx")
        command = [ogc, "compile", "mlp.onnx", "-o", "mlp.ogc", "--shapes", "x=4x16", "--target", "sm_90,cpu", "--cpu", "x86-64-v3", "--dump-dir", "ir"]
        subprocess.run(command, cwd=path, check=True, stdout=subprocess.DEVNULL)
        parts = [INTRO]
        for number, (phase, text) in enumerate(PHASES.items(), 1):
            ir = (path / "ir" / f"{number}-{phase}.mlir").read_text()
            parts.append(f"## After {phase}\n\n{text}\n\n```mlir\n{shorten(ir)}\n```\n")
        summary = subprocess.run([ogc, "inspect", "mlp.ogc"], cwd=path, check=True, capture_output=True, text=True).stdout
        parts.append(f"## The bundle\n\n`ogc inspect mlp.ogc` prints what was stored:\n\n```\n{shorten(summary)}\n```\n")
        return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ogc", default=str(ROOT / "build" / "bin" / "ogc"))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = page(str(pathlib.Path(arguments.ogc).resolve()))
    if not arguments.check:
        PAGE.write_text(text)
        return 0
    if not PAGE.exists() or PAGE.read_text() != text:
        print(f"{PAGE.relative_to(ROOT)} is not current: run scripts/make_walkthrough.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
