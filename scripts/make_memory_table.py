#!/usr/bin/env python3
"""Writes the table of docs/memory.md: scratch and its bound for the models of the shared folder, and the proof of orders where it was run.

usage: make_memory_table.py [--models a,b] [--orders 200] [--check]
    --orders N also runs the first graph of each bundle in N random topological orders with poisoned scratch on the cpu; minutes. Without it the page
    keeps what is known.
    --check writes nothing and fails where the page differs in what was computed, or a ratio is above 1.02.
needs: numpy, onnx, onnxruntime (as the end-to-end tests); the large model only with OGC_LARGE_MODELS=1
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/e2e"))

import harness  # noqa: E402

PAGE = ROOT / "docs/memory.md"
BEGIN, END = "<!-- written by scripts/make_memory_table.py -->\n", "<!-- end of the table -->\n"
MOST = 1.02


def past(length, new):
    caches = " ".join(f"{name}=1x2x{length}x16" for name in ("k0", "v0", "k1", "v1"))
    return f"past{length}_new{new}: {caches} input_ids=1x{new} attention_mask=1x{length + new}"


# Model -> --shapes of its graphs. loop_if is not among them: its Loop has a condition that only a run knows, and is refused by name.
MODELS = {"resnet50": [], "resnet50_dyn_bn": ["batch=1,8,32"], "mobilenet_v3_large": [], "mobilenet_v2_qdq": [], "vit_b_16": [], "bert_base": [],
          "bert_base_dyn": ["batch=1,8 seq=32,512"], "bert_tiny_legacy_dyn": ["batch=1,3 seq=33"], "gpt2": [], "llama_tiny_gqa": [past(0, 5), past(31, 2)],
          "mlp_nbits4": ["seq=7"], "lstm_gru": ["batch=3 time=20"]}
LARGE = {"llama1b_decode": []}
PRECISIONS = ["fp32", "fp16"]
GRAPH = re.compile(r"cg\.graph @(\S+) .*?peak_buffers = \[(.*?)\], peak_node = (\d+).*?scratch_bound_bytes = (\d+).*?scratch_bytes = (\d+)")


def flags(model, precision):
    shapes = {**MODELS, **LARGE}[model]
    return [harness.shared_model(model), "--target", "cpu", "--precision", precision, *(word for text in shapes for word in ("--shapes", text))]


def planned(ogc, model, precision, folder):
    """A row for each graph: the cells that the compiler alone decides."""
    ogc("compile", *flags(model, precision), "--stop-after", "plan", "-o", Path(folder) / "plan.mlir")
    rows = {}
    for line in open(Path(folder) / "plan.mlir"):
        match = GRAPH.search(line)
        if match:
            graph, buffers, _, bound, peak = match.groups()
            ratio = int(peak) / int(bound) if int(bound) else 1.0
            rows[model, precision, graph] = [peak, bound, f"{ratio:.3f}", str(buffers.count("#cg.slice"))]
    if not rows:
        raise SystemExit(f"{model}: no graph in the plan")
    return rows


def orders_of(ogc, model, precision, graph, count, folder):
    bundle = Path(folder) / "m.ogc"
    ogc("compile", *flags(model, precision), "-o", bundle)
    ogc.verify(bundle, "--random-orders", count, "--poison", "--graph", graph)
    return f"{count}: same bits"


def parsed(page):
    """The rows of the table in the page."""
    rows = {}
    for line in page[page.index(BEGIN):page.index(END)].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[0] in {**MODELS, **LARGE}:
            rows[tuple(cells[:3])] = cells[3:]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ogc", default=str(harness.BIN / "ogc"))
    parser.add_argument("--models")
    parser.add_argument("--orders", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    ogc, known, failures = harness.Ogc(options.ogc), parsed(PAGE.read_text()), []
    every = [*MODELS, *(LARGE if os.environ.get("OGC_LARGE_MODELS") else [])]
    for model in options.models.split(",") if options.models else every:
        for precision in PRECISIONS if model not in LARGE else ["fp16"]:
            with tempfile.TemporaryDirectory() as folder:
                rows = planned(ogc, model, precision, folder)
                for number, (key, cells) in enumerate(rows.items()):
                    old = known.get(key)
                    if float(cells[2]) > MOST:
                        failures.append(f"{' '.join(key)}: {cells[2]} times the bound")
                    if options.check and (old is None or old[:4] != cells):
                        failures.append(f"{' '.join(key)}: {cells}, the page has {old}")
                    orders = old[4] if old else "–"
                    if options.orders and number == 0 and not options.check and model not in LARGE:
                        try:
                            orders = orders_of(ogc, model, precision, key[2], options.orders, folder)
                        except harness.OgcError as error:
                            orders = "FAILED"
                            failures.append(str(error))
                    known[key] = cells + [orders]
                    print(*key, *known[key], flush=True)
    order = {key: number for number, key in enumerate([*MODELS, *LARGE])}
    lines = ["| model | precision | graph | scratch | bound | ratio | buffers that determine it | random orders |", "|---|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join([*key, *cells]) + " |" for key, cells in sorted(known.items(), key=lambda row: (order[row[0][0]], row[0][1] != "fp32"))]
    if not options.check:
        head, rest = PAGE.read_text().split(BEGIN)  # as it is by now
        PAGE.write_text(head + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1])
    for failure in failures:
        print(f"FAIL {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
