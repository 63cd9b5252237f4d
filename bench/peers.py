#!/usr/bin/env python3
"""Times ogc against what a user would pick instead, on one GPU in one run; called by peers.sh on a machine that has one.

Peers: PyTorch eager and Inductor, each under a CUDA graph of its own; onnxruntime with its CUDA provider, where that is installed. Everything is
prepared side by side first; then each graph is timed with nothing beside it: an event before and behind a replay, waited for, median and 90th
percentile. After each figure the table is written, so a run that is cut keeps what it has.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "test/e2e")]

import harness  # noqa: E402
from peer_models import MODELS  # noqa: E402
from peer_table import Row, write_table  # noqa: E402

PRECISIONS = ["fp16", "tf32"]
TORCH_PEERS = ["eager", "inductor"]
PEERS = [*TORCH_PEERS, "onnxruntime", "ogc"]


def onnxruntime_reason():
    """Why onnxruntime cannot take part, or nothing."""
    try:
        import onnxruntime
    except ImportError:
        return "not installed"
    available = onnxruntime.get_available_providers()
    if "CUDAExecutionProvider" not in available:
        return f"version {onnxruntime.__version__} is installed without its CUDA provider ({', '.join(available)})"
    return "its CUDA provider is installed, but this script does not measure it yet"


class TorchTask:
    """A process with the PyTorch graphs of one model in one precision."""

    def __init__(self, row, peers, options):
        self.row, self.peers, self.options, self.process = row, peers, options, None

    def prepare(self):
        environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": str(self.options.threads), "OMP_NUM_THREADS": str(self.options.threads),
                       "OGC_PEERS_LOCK": str(self.options.work / "lock")}
        with open(self.options.work / f"{self.row.model}-{self.row.precision}-torch.log", "w") as log:
            self.process = subprocess.Popen(
                [sys.executable, ROOT / "bench/peer_worker.py", self.row.model, self.row.precision, str(self.options.iterations), *self.peers],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        if not self.process.stdout.readline():
            raise RuntimeError(f"the process ended, see {log.name}")

    def measure(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or "{}")
        for peer in self.peers:
            self.row.set(peer, answer.get("results", {}).get(peer, {"failure": "the process ended"}))
        return answer.get("torch")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class OgcTask:
    """A bundle of one model in one precision."""

    peers = ["ogc"]

    def __init__(self, row, options):
        self.row, self.options, self.process, self.stopped = row, options, None, False
        self.bundle = options.work / f"{row.model}-{row.precision}.ogc"

    def run(self, program, *arguments):
        if self.stopped:
            raise RuntimeError("stopped")
        command = [str(self.options.bin / program), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, errors = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError((errors or output).strip().splitlines()[-1] if (errors or output).strip() else f"exit code {self.process.returncode}")
        return output

    def prepare(self):
        model = MODELS[self.row.model]
        shapes = ["--shapes", model.shapes] if model.shapes else []
        self.run("ogc", "compile", harness.shared_model(model.file), "-o", self.bundle, "--target", self.options.target, "--precision", self.row.precision,
                 "--threads", self.options.threads, *shapes, *self.options.compile)

    def measure(self):
        common = ["bench", self.bundle, "--device", self.options.device]
        times = json.loads(self.run("ogc-rt", *common, "--iterations", self.options.iterations, "--warmup", 200, "--json"))
        self.row.set("ogc", {"us": {key: times["device_us"][key] for key in ("p50", "p90")}, "nodes": times["nodes"]})
        roofline = json.loads(self.run("ogc-rt", *common, "--roofline", "--replays", 20, "--json"))
        if "floor_us" in roofline:
            self.row.floors = {"nodes": roofline["floor_us"], "model": roofline["model_floor_us"]}

    def stop(self):
        self.stopped = True
        if self.process and self.process.poll() is None:
            self.process.kill()


def prepare_all(tasks, options):
    """Prepares the tasks side by side and yields those that are ready, all at the end; what is not ready in time is stopped."""
    deadline = options.start + options.budget
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    futures = {pool.submit(task.prepare): task for task in tasks}
    finished, late = concurrent.futures.wait(futures, timeout=max(0, deadline - time.monotonic()))
    for future in late:
        future.cancel()
    for future, task in futures.items():
        failure = "not ready in time" if future in late else future.exception() and f"{type(future.exception()).__name__}: {future.exception()}"
        if failure:
            task.stop()
            for peer in task.peers:
                task.row.set(peer, {"failure": str(failure)[:200]})
    pool.shutdown(wait=False, cancel_futures=True)
    return [futures[future] for future in futures if future in finished and not future.exception()]


def make_tasks(rows, options):
    """Those that take longest first: gigabytes of weights, then PyTorch's compiler."""
    peers = [peer for peer in options.peers if peer in TORCH_PEERS]
    tasks = [TorchTask(row, peers, options) for row in rows] if peers else []
    tasks += [OgcTask(row, options) for row in rows] if "ogc" in options.peers else []
    return sorted(tasks, key=lambda task: (task.row.model != "llama1b_decode", isinstance(task, OgcTask)))


def names(known):
    """An argument's type: a list of known names."""
    def parse(text):
        chosen = [name for name in text.split(",") if name]
        unknown = [name for name in chosen if name not in known]
        if unknown or not chosen:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown) or 'nothing'} is not of {', '.join(known)}")
        return chosen
    return parse


def parse_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names(list(MODELS)), default=list(MODELS), help="%(default)s; the batch behind @")
    parser.add_argument("--precisions", type=names(PRECISIONS), default=PRECISIONS)
    parser.add_argument("--peers", type=names(PEERS), default=PEERS)
    parser.add_argument("--iterations", type=int, default=200, help="replays that are timed")
    parser.add_argument("--budget", type=float, default=390, help="seconds after which what is not compiled is left out; timing takes about two more minutes")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="what is prepared side by side")
    parser.add_argument("--threads", type=int, default=2, help="of each compiler")
    parser.add_argument("--compile", default="", help="more options of ogc compile: --compile='--no-pdl --serial'")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--target", default="", help="of ogc compile; default: the GPU's architecture")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/gpu_results_peers.md")
    options = parser.parse_args(arguments)
    options.compile = options.compile.split()
    build = Path(os.environ.get("OGC_BUILD_DIR", ROOT / "build"))
    options.bin, options.work, options.start = build / "bin", build / "peers", time.monotonic()
    return options


def describe_machine(options):
    commit = ROOT / "gpu/commit"
    return {"date": datetime.date.today().isoformat(), "commit": commit.read_text().strip() if commit.exists() else harness.first_line("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
            "device, driver": harness.first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
            **({"options of ogc compile": " ".join(options.compile)} if options.compile else {})}


def main():
    options = parse_options()
    if not options.target:
        capability = harness.first_line("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
        if capability == "unknown":
            sys.exit("error: no GPU found; --device cpu --target cpu --peers ogc tries the script without one")
        options.target = "sm_" + capability.replace(".", "")
    options.work.mkdir(parents=True, exist_ok=True)
    rows = [Row(model, precision) for model in options.models for precision in options.precisions if precision in MODELS[model].precisions]
    machine = describe_machine(options)
    if "onnxruntime" in options.peers:
        machine["onnxruntime"] = onnxruntime_reason()
    tasks = make_tasks(rows, options)
    try:
        # Row by row, so that those of a run that is cut are complete.
        for task in sorted(prepare_all(tasks, options), key=lambda task: rows.index(task.row)):
            try:
                version = task.measure()
                machine.update({"PyTorch": version} if version else {})
            except (RuntimeError, OSError, ValueError, KeyError) as error:
                for peer in task.peers:
                    task.row.set(peer, {"failure": f"{type(error).__name__}: {error}"[:200]})
            task.stop()
            write_table(rows, machine, options.peers, options.output)
            print(task.row.model, task.row.precision, {peer: task.row.results.get(peer) for peer in task.peers}, flush=True)
    finally:
        for task in tasks:
            task.stop()
    write_table(rows, machine, options.peers, options.output)
    print(options.output.read_text())
    failed = [row for row in rows if any("failure" in result for result in row.results.values())]
    sys.stdout.flush()
    # Threads may still wait for a compilation that was given up.
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
