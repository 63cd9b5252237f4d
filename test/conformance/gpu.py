#!/usr/bin/env python3
"""Runs the node cases on a GPU, on a machine that has one; called there with the folder gpu/ that scripts/gpu_pack.sh made.

The carried ogc-conformance-run runs the bundles that were compiled with it, many in a process, on cuda:0. Writes
conformance_gpu.json to the output folder; `test/conformance/run.py --cuda-report FILE` takes the results into docs/operators.md.
"""
import argparse
import collections
import json
import lzma
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def unpack(folder):
    """Puts the driver, the cases and their bundles into the folder; the path of the driver."""
    driver = folder / "ogc-conformance-run"
    with lzma.open(ROOT / "gpu/ogc-conformance-run.xz") as source, open(driver, "wb") as target:
        shutil.copyfileobj(source, target)
    driver.chmod(0o755)
    for name, target in {"cases": folder / "cases", "bundles": folder}.items():
        with tarfile.open(ROOT / f"gpu/{name}.tar.xz") as archive:
            archive.extractall(target)
    return driver


def report(path):
    return {line["case"]: line for line in map(json.loads, Path(path).read_text().splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/ogc-conformance"))
    parser.add_argument("--filter", default="")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--processes", type=int, default=4, help="that share the GPU")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    driver = unpack(options.work)
    start = time.time()
    subprocess.run([str(part) for part in [
        driver, options.work / "cases", "--bundles", options.work / "bundles", "--keep", "--filter", options.filter, "--device", options.device,
        "--jobs", options.processes, "--batch", 64, "--memory", 0, "--seconds", 10, "-o", options.work / "run.json"]], check=True, stdin=subprocess.DEVNULL)
    print(f"run: {time.time() - start:.1f} s", flush=True)
    compiled, ran = report(options.work / "compile.json"), report(options.work / "run.json")
    merged = [compiled[name] if ran.get(name, {}).get("status", "missing") == "missing" else ran[name] for name in sorted(compiled)]
    for line in merged:
        # Right once values were given: the compiler's message says why they had to be.
        if line["status"] == "right" and compiled[line["case"]].get("given"):
            line.update(status="given", message=compiled[line["case"]]["message"])
        if line["status"] in ("wrong", "crashed"):
            print(line["case"], line["status"], line["message"])
    (options.output / "conformance_gpu.json").write_text("".join(json.dumps(line) + "\n" for line in merged))
    print(dict(collections.Counter(line["status"] for line in merged)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
