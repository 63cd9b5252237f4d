#!/usr/bin/env python3
"""Compiles Magika, a small trained network that tells file types, and asks it what some files are. Called by demo.sh.

usage: demo.py OGC [FILE...]
Exit code 1 when an answer differs from that of onnxruntime, or the answer for a file of this tree is not its type.
"""
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[1]
# Files that every checkout has, with the answers that a person would give.
KNOWN = {"scripts/demo.py": "python", "scripts/setup.sh": "shell", "CMakeLists.txt": "cmake", "CMakePresets.json": "json",
         "compiler/dialect/kern/Kern.cpp": "cpp", "docs/architecture.md": "markdown"}


def model_folder():
    """The folder of the model in the installed package, without importing the package."""
    package = Path(importlib.util.find_spec("magika").submodule_search_locations[0])
    return next((package / "models").glob("standard_*"))


def features(path, config):
    """What the network reads: the first and the last bytes of a file without the white space at its ends, as integers, padded with a
    token that is no byte (the first part behind, the last part in front)."""
    data, block = path.read_bytes(), config["block_size"]
    first, last = data[:block].lstrip(), data[-block:].rstrip()
    head, tail = list(first[:config["beg_size"]]), list(last[-config["end_size"]:])
    padding = config["padding_token"]
    return head + [padding] * (config["beg_size"] - len(head)) + [padding] * (config["end_size"] - len(tail)) + tail


def gpu():
    """The architecture of the first GPU, such as "sm_90", or None."""
    if not shutil.which("nvidia-smi"):
        return None
    done = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True)
    lines = done.stdout.split()
    return "sm_" + lines[0].replace(".", "") if done.returncode == 0 and lines else None


def run_ogc(ogc, *arguments):
    done = subprocess.run([ogc, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"ogc {arguments[0]} failed:\n{done.stderr}")
    return done.stdout


def print_plan(facts):
    graph, mib = facts["graphs"][0], 1024 * 1024
    nodes, edges, arena = graph["nodes"], graph["edges"], graph["arena"]
    kinds = ", ".join(f"{count} {kind}" for kind, count in nodes.items() if kind != "total" and count)
    print(f"graph:   {nodes['total']} nodes ({kinds}), {edges['full']} full and {edges['programmatic']} programmatic edges")
    print(f"memory:  {facts['weights_bytes'] / mib:.2f} MiB weights, {arena['peak_bytes'] / mib:.2f} MiB scratch, "
          f"{arena['ratio']:.2f} times the bytes that live at once")


def main():
    ogc, paths = sys.argv[1], [Path(name) for name in sys.argv[2:]] or [ROOT / name for name in KNOWN]
    folder = model_folder()
    config = json.loads((folder / "config.min.json").read_text())
    labels, model = config["target_labels_space"], folder / "model.onnx"
    x = np.array([features(path, config) for path in paths], np.int32)

    arch = gpu()
    targets = sorted({"cpu", arch or "sm_90"})
    devices = ["cpu"] + (["cuda:0"] if arch else [])
    (expected,) = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, {"bytes": x})
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        bundle, array = Path(work, "magika.ogc"), Path(work, "bytes.npy")
        np.save(array, x)
        run_ogc(ogc, "compile", model, "-o", bundle, "--shapes", f"bytes={x.shape[0]}x{x.shape[1]}", "--target", ",".join(targets))
        print(f"model:   {model.parent.name} of Magika, {model.stat().st_size / 1e6:.1f} MB ONNX -> {bundle.stat().st_size / 1e6:.1f} MB bundle "
              f"for {', '.join(targets)}")
        print_plan(json.loads(run_ogc(ogc, "inspect", bundle, "--json")))
        for device in devices:
            run_ogc(ogc, "run", bundle, "--device", device, "--input", f"bytes={array}", "--output-dir", work)
            scores = np.load(Path(work, "target_label.npy"))
            times = json.loads(run_ogc(ogc, "bench", bundle, "--device", device, "--iterations", 20, "--json"))
            error = np.linalg.norm(scores - expected) / np.linalg.norm(expected)
            print(f"\n{device}: {times['wall_us']['p50'] / 1000:.2f} ms for {len(paths)} files, relative error against onnxruntime {error:.1e}")
            for path, row, reference in zip(paths, scores, expected):
                name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
                answer = labels[row.argmax()]
                right = answer == labels[reference.argmax()] and KNOWN.get(name, answer) == answer
                wrong += not right
                print(f"  {name:36} is {answer:12} ({100 * row.max():.1f} %){'' if right else '  WRONG, onnxruntime: ' + labels[reference.argmax()]}")
            wrong += not error < 1e-4
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
