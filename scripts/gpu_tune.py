#!/usr/bin/env python3
"""Tunes the models of the shared folder on a GPU; called by gpu_tune.sh on a machine that has one.

Each model is compiled with all its kernels' choices, for each precision, with the table so far, and `ogc-rt tune` writes the best choices into
the table. Models early in the list lose to later ones where they share a problem.
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/e2e"))

import harness  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="mobilenet_v3_large,resnet50,gpt2,vit_b_16,bert_base")
    parser.add_argument("--precisions", default="fp16")
    parser.add_argument("--jobs", type=int, default=3, help="compilations at a time")
    parser.add_argument("--seconds", type=float, default=60, help="of measuring a model and precision")
    parser.add_argument("--starts", type=int, default=2)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--output", default=ROOT / "compiler/codegen/cuda/tuning", help="folder of ARCH.txt")
    options = parser.parse_args()
    work = Path(os.environ["OGC_BUILD_DIR"]) / "tuning"
    work.mkdir(parents=True, exist_ok=True)
    table = work / f"{options.arch}.txt"
    shutil.copy(ROOT / f"compiler/codegen/cuda/tuning/{options.arch}.txt", table)
    program = str(harness.BIN / "ogc")
    begin = time.time()

    def compile(case):
        model, precision = case
        bundle = work / f"{model}-{precision}.ogc"
        done = subprocess.run([program, "compile", harness.shared_model(model), "-o", bundle, "--target", options.arch, "--precision", precision,
                               "--weights", "none", "--tuning-candidates"], capture_output=True, text=True)
        print(f"{time.time() - begin:.0f} s: {model} {precision} compiled", done.stderr[-2000:] if done.returncode else "", flush=True)
        return bundle if done.returncode == 0 else None

    cases = [(model, precision) for precision in options.precisions.split(",") for model in options.models.split(",")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        bundles = list(pool.map(compile, cases))  # all of them before, since a busy processor disturbs the measurements
    for case, bundle in zip(cases, bundles):
        if bundle is not None:
            done = subprocess.run([str(harness.BIN / "ogc-rt"), "tune", bundle, "--output", table, "--seconds", str(options.seconds), "--starts",
                                   str(options.starts)], capture_output=True, text=True)
            print(*case, "|", " | ".join((done.stdout + done.stderr).strip().splitlines()), flush=True)
            Path(options.output).mkdir(parents=True, exist_ok=True)
            shutil.copy(table, Path(options.output) / table.name)  # what is known is not lost when time runs out


if __name__ == "__main__":
    main()
