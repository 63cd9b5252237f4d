#!/usr/bin/env python3
"""Proves the pool of executable graphs on a GPU: 32 graph IDs through a pool of 4, 100,000 random calls with the bits of each graph alone, and no memory
that grows. Nothing else may use the GPU meanwhile, since memory in use is that of all programs.

usage: OGC_BUILD_DIR=... pool_test.py [--calls 100000]     as scripts/gpu_env.sh sets it up
"""
import argparse
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/e2e"))

import harness  # noqa: E402

IDS, POOL = 32, 4
# Of the host: what its allocator may keep beside what is in use.
MOST_HOST_KIB = 1024


def save_model(folder):
    """Three nodes: a product, and two norms of its rows that no fusion joins."""
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["b"], axis=-1), helper.make_node("Softmax", ["b"], ["y"], axis=0)]
    constants = {"w": rng.standard_normal((64, 64)).astype(np.float32)}
    path = folder / "pool.onnx"
    onnx.save(harness.make_model(nodes, {"x": (TensorProto.FLOAT, ("rows", 64))}, {"y": (TensorProto.FLOAT, ("rows", 64))}, constants), path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--target", default="sm_90,cpu")
    parser.add_argument("--calls", type=int, default=100_000)
    options = parser.parse_args()
    ogc = harness.Ogc()
    with tempfile.TemporaryDirectory() as folder:
        path = save_model(Path(folder))
        sizes = ",".join(str(8 * (i + 1)) for i in range(IDS))
        bundle = ogc.compile(path, Path(folder) / "pool.ogc", f"rows={sizes}", target=options.target)
        output = ogc.verify(bundle, "--random-calls", options.calls, "--pool", POOL, device=options.device)
    print(output.strip(), flush=True)
    host, device = (int(text) for text in re.search(r"host ([+-]\d+) KiB, device ([+-]\d+) KiB", output).groups())
    good = f"ok    {options.calls} random calls of {IDS} graphs" in output and host <= MOST_HOST_KIB and device <= 0
    print("passed" if good else "FAIL: wrong bits or memory that grows")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
