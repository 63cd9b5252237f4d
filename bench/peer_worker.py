"""Measures one model in one precision with PyTorch: `peer_worker.py MODEL PRECISION ITERATIONS PEER...`

Compiles, writes {"ready": ...}, waits for a line on standard input so that nothing else runs meanwhile, measures, and writes the results by peer.
"""
import contextlib
import fcntl
import json
import os
import statistics
import sys
import time
import traceback

import peer_models


def summary(times):
    """Median and 90th percentile (nearest rank) in microseconds."""
    ordered = sorted(times)
    return {"p50": statistics.median(ordered), "p90": ordered[max(0, -(-9 * len(ordered) // 10) - 1)]}


@contextlib.contextmanager
def alone():
    """No other worker is in here meanwhile: cuDNN chooses by times."""
    with open(os.environ["OGC_PEERS_LOCK"], "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def record(function, inputs):
    """The function under a CUDA graph of its own: as fast as PyTorch gets, since no call is prepared on the host."""
    import torch
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), alone():
        torch.backends.cudnn.benchmark = True
        with torch.cuda.stream(stream):
            for _ in range(3):
                function(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = function(*inputs)
    graph.keeps = (function, inputs, output)  # their memory is part of the graph
    return graph


def compiled(module, inputs):
    """By Inductor, which works in the first call."""
    import torch
    torch.backends.cudnn.benchmark = False
    function = torch.compile(module)
    with torch.no_grad():
        function(*inputs)
    return function


def measure(graph, iterations):
    """Times between two events around a replay, each waited for."""
    import torch
    end = time.monotonic() + 0.3
    while time.monotonic() < end:  # clock rates
        graph.replay()
        torch.cuda.synchronize()
    begin, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(iterations):
        begin.record()
        graph.replay()
        done.record()
        done.synchronize()
        times.append(1000 * begin.elapsed_time(done))
    return summary(times)


def reason(error):
    """The first line of an exception, for a table."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"[:200]


def prepare(name, precision, peer):
    """Graphs of the peer by variant. Networks of pictures are tried with both orders of dimensions, as their libraries differ."""
    import torch
    graphs = {}
    layouts = ["channels last"] if peer == "inductor" else ["", "channels last"]
    for layout in layouts if peer_models.MODELS[name].images else [""]:
        module, inputs = peer_models.build(name, precision)
        if layout:
            module, inputs = module.to(memory_format=torch.channels_last), tuple(value.to(memory_format=torch.channels_last) for value in inputs)
        graphs[layout] = record(compiled(module, inputs) if peer == "inductor" else module, inputs)
    return graphs


def main():
    name, precision, iterations, *peers = sys.argv[1:]
    # What libraries print must not come between the lines of JSON.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    graphs, failures = {}, {}
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    for peer in peers:
        try:
            graphs[peer] = prepare(name, precision, peer)
        except Exception as error:  # noqa: BLE001  the other peers go on, and the table says why
            failures[peer] = reason(error)
            traceback.print_exc()
    print(json.dumps({"ready": sorted(graphs)}), file=output)
    if not sys.stdin.readline():
        return
    results = {peer: {"failure": reason} for peer, reason in failures.items()}
    for peer, variants in graphs.items():
        try:
            times = {layout: measure(graph, int(iterations)) for layout, graph in variants.items()}
        except RuntimeError as error:  # of CUDA
            results[peer] = {"failure": reason(error)}
            traceback.print_exc()
            continue
        layout = min(times, key=lambda layout: times[layout]["p50"])
        results[peer] = {"us": times[layout], "variant": layout}
    print(json.dumps({"results": results, "torch": torch.__version__}), file=output)


if __name__ == "__main__":
    main()
