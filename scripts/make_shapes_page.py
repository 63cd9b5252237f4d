#!/usr/bin/env python3
"""Writes docs/shapes.md: shapes, graph IDs, padding and buckets, with examples that are executed.

usage: make_shapes_page.py [--ogc build/bin/ogc] [--check]     --check fails when the page is not what would be written
needs: onnx, numpy
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "shapes.md"

TEMPLATE = r"""# Shapes and graph IDs

Written by `scripts/make_shapes_page.py`, which `--check` holds against the programs: every example is executed.

A bundle holds one graph a *graph ID*, each compiled for static shapes. All share the weights, one arena, and kernels of equal text. `--shapes` says which
graphs there are. The examples use a model with `x` `[batch, seq, 8]` and `y` = softmax(`x` W) `[batch, seq, 5]`.

## What `--shapes` takes

| form | means |
|---|---|
| `x=1x3x224x224,mask=1x8` | shapes of inputs; blanks separate as well as commas; empty behind `=` is a scalar |
| `batch=1,2,4 seq=32..512:x2` | sizes of named dimensions; several values stand for the product of all lists |
| `32..512:x2`, `64..256:+64`, `1..4` | from the first size to the last, times 2, plus 64, plus 1; the last one always belongs to it |
| `b8: batch=8 x=8x128` | an ID in front (colon and blank), inputs and named dimensions mixed |
| `@buckets.yaml` | a YAML list of such texts, or of mappings from names to values; also under a key `shapes` |

A name that is an input of the model is one, any other a named dimension. A dimension that is given once holds for all inputs that name it; dimensions without
a name are independent of each other. Size 0 is a size. Without an ID a lone graph is `default`; others are named after the sizes of their named
dimensions. IDs also have numbers, in order from 0: those of `ogc_bundle_find_graph`.

@@ ogc compile m.onnx -o m.ogc --target cpu --shapes 'batch=1,4 seq=8..16:x2' --shapes 'odd: x=3x5x8'
@@ cat buckets.yaml
@@ ogc compile m.onnx -o file.ogc --target cpu --shapes @buckets.yaml

What contradicts itself, or the model, is an error that names the dimension and both sizes:

@@ ogc compile m.onnx -o n.ogc --target cpu --shapes 'batch=2 x=3x8x8'
@@ ogc compile m.onnx -o n.ogc --target cpu --shapes 'rows=2'
@@ ogc compile sum.onnx -o n.ogc --target cpu --shapes 'n=3 m=4'

## Which graph runs

`ogc run --graph ID` picks by name. Else the shapes of the files given with `--input` pick: the graph of exactly these shapes; without one, the cheapest
that is larger along named dimensions whose padding is proved safe. Its inputs are filled up with zeros, and its outputs are cut to the caller's rows.
(The cost of a graph is the number of bytes that its nodes read and write.) In C, `ogc_bundle_select` picks and `ogc_run_arrays` runs (`ogc/runtime.h`).

@@ ogc run m.ogc --input x=x_3x8x8.npy
@@ ogc run m.ogc --input x=x_9x8x8.npy

## When padding is safe

A call with 3 rows may run in the graph for 4 when no value of the first three rows depends on the fourth. The compiler proves this for every named
dimension of the inputs (`ogc-prove-padding`, `compiler/analysis/PaddingSafety.h`): it lowers the model for two sizes of the dimension and compares them
operation by operation. The dimension is where the sizes differ. Every operation must keep positions along it apart, and constants must agree on the
positions that both have, so that a factor computed from the size is found. Arithmetic on the size that two sizes agree on and others do not, such as a
quotient, a limit or a condition, is found by trying every size up to the largest one of the bundle (`ogc-trace-sizes`). Outputs must have the same form for
size 1. What is not known to keep positions apart is refused. The answer is in the bundle; `ogc explain` prints it for a model or a bundle:

@@ ogc explain m.onnx
@@ ogc explain mean.onnx --symbol batch
@@ ogc run mean.ogc --input x=x_3x8x8.npy

Zeros as rows may give infinities or NaN in the rows that are cut off, never in the caller's.

## Proof of a bundle

`ogc verify --random-calls N` calls the graphs of a bundle in random order in one context, each with inputs of its own; every result must have the bits that the
graph gives alone. On a GPU these are compared with the cpu target too. `scripts/gpu_shapes.py` does this for 20 IDs of `bert_base_dyn` in fp16 (batch 1, 2, 4, 8 × seq 32, 64, 128, 256, 512), on a GPU
(`gpu_shapes.sh`) or with `--device cpu`; it compares every ID, and padded calls, with onnxruntime, checks the bundle (weights once, scratch within 1.02 of the bound of the
largest ID, at most 40 MB beside the weights), and with `--one` that planning takes at most four times that of one ID. On the cpu: relative errors up to 1.9e-3,
weights of 224.0 MB as for one ID, 3.2 MB beside them, scratch at its bound, 2.4 times the planning of one ID, 100 random calls with the bits of each graph alone.

@@ ogc verify m.ogc --random-calls 1000

## Buckets for observed calls

`ogc plan` reads a trace of calls (CSV: a line of named dimensions, `count` for how often, then a line a call) and proposes graphs. Dimensions that cannot be
padded get exactly the values seen. With one dimension to pad, the buckets are the best of their number (dynamic programming); with several, they are merged
greedily. Work is taken as the product of the sizes. Buckets are added while each saves at least `--gain` of the work, up to `--max-graphs` and
to what `--memory` has room for: weights, the buffers of the largest shape (both planned, not estimated) and `--graph-memory` a graph. The regret is the
work that padding adds; the last lines are ready to paste.

@@ cat trace.csv
@@ ogc plan m.onnx --trace trace.csv --memory 1GiB --max-graphs 3

## What is done once

Import, normalization, the folding of constants and the packing of weights are done once for all graphs: equal computations on equal constants are
evaluated once (`ogc-fold-constants`). Regions of equal text become one kernel (`ogc-outline-kernels`), whichever graph they are of. Code generation runs
in parallel over all kernels, and the bundle does not depend on the number of threads. `docs/performance.md` has the figures.
"""


def save(path: pathlib.Path, nodes, inputs, outputs, constants) -> None:
    infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()] for values in (inputs, outputs)]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    onnx.save(helper.make_model(helper.make_graph(nodes, "example", *infos, initializer=tensors), opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def prepare(folder: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((8, 5)).astype(np.float32)}
    rows = {"x": ["batch", "seq", 8]}
    dense = [helper.make_node("MatMul", ["x", "w"], ["h"], name="dense"), helper.make_node("Softmax", ["h"], ["y"], name="softmax", axis=-1)]
    save(folder / "m.onnx", dense, rows, {"y": ["batch", "seq", 5]}, weights)
    mean = [helper.make_node("ReduceMean", ["x", "axes"], ["y"], name="average", keepdims=1)]
    save(folder / "mean.onnx", mean, rows, {"y": [1, "seq", 8]}, {"axes": np.array([0])})
    save(folder / "sum.onnx", [helper.make_node("Add", ["a", "b"], ["y"], name="sum")], {"a": ["n"], "b": ["m"]}, {"y": ["k"]}, {})
    for batch in (3, 9):
        np.save(folder / f"x_{batch}x8x8.npy", np.ones((batch, 8, 8), np.float32))
    (folder / "buckets.yaml").write_text("shapes:\n  - batch=1 seq=8\n  - id: big\n    batch: [4, 8]\n    seq: 16\n")
    (folder / "trace.csv").write_text("batch,seq,count\n1,8,50\n2,8,20\n3,8,20\n7,8,2\n8,8,1\n")


def page(ogc: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)

        def run(command: str) -> str:
            arguments = shlex.split(command)
            arguments[0] = {"ogc": ogc}.get(arguments[0], arguments[0])
            done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stderr}")
            return re.sub(r"^(\S+\.ogc): [0-9.]+ MB$", r"\1: … MB", done.stdout + done.stderr, flags=re.MULTILINE)

        run("ogc compile mean.onnx -o mean.ogc --target cpu --shapes 'batch=4 seq=8'")
        lines, is_open = [], False
        for line in TEMPLATE.splitlines():
            is_command = line.startswith("@@ ")
            if is_command != is_open:
                lines.append("```")
                is_open = is_command
            lines.append(f"$ {line[3:]}\n{run(line[3:]).rstrip()}" if is_command else line)
        return "\n".join(lines) + "\n"


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
        print(f"{PAGE.relative_to(ROOT)} is not current: run scripts/make_shapes_page.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
