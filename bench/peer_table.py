"""The table of peers.py."""


class Row:
    """One model in one precision: `results` by peer are {"us": {"p50": ..., "p90": ...}, "variant": ...} or {"failure": ...}, `floors` in microseconds."""

    def __init__(self, model, precision):
        self.model, self.precision, self.results, self.floors = model, precision, {}, {}

    def set(self, peer, result):
        self.results[peer] = result

    def time(self, peer):
        return self.results.get(peer, {}).get("us", {}).get("p50")

    def best_peer(self):
        """The fastest that is not ogc, and its time; nothing where none was measured."""
        times = {peer: self.time(peer) for peer in self.results if peer != "ogc" and self.time(peer)}
        return min(times.items(), key=lambda item: item[1]) if times else None


def cell(row, peer):
    result = row.results.get(peer)
    if not result:
        return "–"
    if "failure" in result:
        return "failed"
    variant = f", {result['variant']}" if result.get("variant") else ""
    return f"{result['us']['p50']:.0f} / {result['us']['p90']:.0f}{variant}"


def table(rows, peers):
    """Markdown; one line a model and precision."""
    others = [peer for peer in peers if peer != "ogc" and any(peer in row.results for row in rows)]
    yield "| model | precision | ogc µs | nodes | " + "".join(f"{peer} µs | " for peer in others) + "best peer / ogc | floor of the nodes µs (of the time) | floor of the model µs (of the time) |"
    yield "|---|---|---|---|" + "---|" * len(others) + "---|---|---|"
    for row in rows:
        ogc, best = row.time("ogc"), row.best_peer()
        ratio = f"{best[1] / ogc:.2f}" if ogc and best else "–"
        floors = [f"{row.floors[key]:.0f} ({row.floors[key] / ogc:.2f})" if ogc and key in row.floors else "–" for key in ("nodes", "model")]
        cells = [row.model, row.precision, cell(row, "ogc"), str(row.results.get("ogc", {}).get("nodes", "–")), *(cell(row, peer) for peer in others), ratio, *floors]
        yield "| " + " | ".join(cells) + " |"


def failures(rows):
    for row in rows:
        for peer, result in row.results.items():
            if "failure" in result:
                yield f"- {row.model} {row.precision}, {peer}: {result['failure']}"


def report(rows, machine, peers):
    lines = ["# Results against peers on a GPU", "", "Written by `bench/peers.sh`; not edited by hand. `bench/README.md` says how it is measured.", ""]
    lines += [f"- {key}: {value}" for key, value in machine.items()]
    lines += ["- times are of one replay, median / 90th percentile, at batch 1 or the batch behind @; eager and inductor are PyTorch under a CUDA graph", "",
              *table(rows, peers)]
    failed = list(failures(rows))
    return "\n".join(lines + (["", "## What failed", "", *failed] if failed else [])) + "\n"


def write_table(rows, machine, peers, path):
    """Replaces the file in one step, so that a cut run leaves a whole one."""
    part = path.with_suffix(".part")
    part.write_text(report(rows, machine, peers))
    part.rename(path)
