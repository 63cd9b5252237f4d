#!/usr/bin/env python3
"""Writes docs/walkthrough.md: one small model followed from file to bundle, with the IR after each phase.

usage: make_walkthrough.py [--ogc build/bin/ogc] [--check]     --check fails when the page is not what would be written
needs: onnx, numpy
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "walkthrough.md"
CLASSES = 40  # rows shorter than 32 would not become a row kernel
LONGEST = 110  # lines of a listing
WIDEST = 300
COMMAND = ["compile", "mlp.onnx", "-o", "mlp.ogc", "--shapes", "x=4x16", "--target", "sm_90,cpu", "--cpu", "x86-64-v3", "--dump-dir", "ir"]

INTRO = f"""# One model, from file to replay

Written by `scripts/make_walkthrough.py`, which `--check` holds against the compiler: every listing is what it prints, without empty ends
and without what differs between machines (sizes and checksums of code).

The model is a small classifier, `y = softmax(relu(x W1 + b1) W2)`, with an unknown batch dimension. It is compiled by

```
ogc {' '.join(COMMAND)}
```

`--dump-dir` writes the listings below; `--stop-after PHASE` prints a single one.
"""

PHASES = {
    "import": "The protobuf becomes the `onnx` dialect: weights are constants, each operator has its newest form, attributes their defaults."
    "\nNode names are locations, which the listings leave out.",
    "normalize": "What needs no shapes: identities are dropped, batch normalization goes into convolutions. Nothing to do here.",
    "specialize": "One function a graph ID. `--shapes` fixes the batch; every dimension is known from here on.",
    "lower": "Structured operations on static tensors. The products are anchors, with weights brought into panels; all else is `linalg`.",
    "fuse": "Regions became kernels: bias and ReLU are the epilogue of the first product, softmax is one row kernel. Constants were evaluated:"
    "\nthe panels of `w2` are a new one, `folded`.",
    "plan": "The graph: sections, offsets and edges (`edge_kinds` 1: programmatic). The kernels are those of the phase before (left out).",
}


def model() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((16, 32)).astype(np.float32), "w1"),
        numpy_helper.from_array(rng.standard_normal(32).astype(np.float32), "b1"),
        numpy_helper.from_array(rng.standard_normal((32, CLASSES)).astype(np.float32), "w2"),
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
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", CLASSES])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def shorten(text: str) -> str:
    text = text.replace("{-#\n\n#-}", "").strip()
    lines = [line if len(line) <= WIDEST else line[: WIDEST - 3] + "..." for line in text.splitlines()]
    if len(lines) > LONGEST:
        lines = lines[:LONGEST] + [f"// ... {len(lines) - LONGEST} more lines"]
    return "\n".join(lines)


def without_kernels(text: str) -> str:
    """The graph of a planned module: its weights, nodes and edges."""
    text = re.sub(r"^#map.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^  kern\.kernel .*?^  \}\n", "", text, flags=re.MULTILINE | re.DOTALL)


def kernel_text(cuda: str, schedule: str) -> str:
    """The CUDA text of the first kernel of a schedule, with the comment that names its nodes."""
    parts = re.split(r"\n(?=// )", cuda)
    return next(part for part in parts if f"_{schedule}(" in part)


def listing(title: str, text: str, code: str, language: str = "") -> str:
    return f"## {title}\n\n{text}\n\n```{language}\n{shorten(code)}\n```\n"


def page(ogc: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)

        def run(*arguments: str) -> str:
            return subprocess.run([ogc, *arguments], cwd=path, check=True, capture_output=True, text=True).stdout

        onnx.save(model(), path / "mlp.onnx")
        run(*COMMAND)
        parts, before = [INTRO], None
        for number, (phase, text) in enumerate(PHASES.items(), 1):
            ir = (path / "ir" / f"{number}-{phase}.mlir").read_text()
            if ir == before:
                parts.append(f"## After {phase}\n\n{text}\n")
            else:
                parts.append(listing(f"After {phase}", text, without_kernels(ir) if phase == "plan" else ir, "mlir"))
            before = ir
        row = kernel_text((path / "ir" / "sm_90_0.cu").read_text(), "row")
        text = "The softmax kernel as CUDA text, which NVRTC compiles; the same body becomes a function of a shared object for the cpu."
        parts.append(listing("Code", text, row, "cuda"))
        nodes = run("inspect", "mlp.ogc", "--nodes").splitlines()
        first = next(i for i, line in enumerate(nodes) if line.startswith("targets: "))
        nodes = [line.split(" (cpu needs")[0] for line in nodes[first:] if not line.startswith("section ")]
        text = "`ogc inspect mlp.ogc --nodes` shows what was stored (`after 0p`: a programmatic edge from node 0):"
        parts.append(listing("The bundle", text, "\n".join(nodes)))
        text = "`ogc run mlp.ogc` replays the graph, here on the cpu with an input drawn from `--seed 0`:"
        parts.append(listing("Replay", text, run("run", "mlp.ogc")))
        text = """`ogc verify mlp.ogc --random-orders 10 --poison` runs the nodes in random topological orders (a chain has only one), with scratch filled
with NaN patterns before each run:"""
        parts.append(listing("Proof", text, run("verify", "mlp.ogc", "--random-orders", "10", "--poison")))
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
