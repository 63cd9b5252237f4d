"""Random models of many operators against onnxruntime, and against themselves: other orders, other memory plans, other rows.

As a program it goes on where the tests end, and keeps the models that are wrong:

    python test/e2e/test_random_graphs.py --first 1000 --count 500 [--rows] [--precision fp16] [--keep FOLDER]
"""
import argparse
from pathlib import Path

import numpy as np
import onnx
import pytest

import harness
import random_operators

ROWS = 7  # while a model with rows is built
TOLERANCES = {"fp32": 2e-5, "fp16": 5e-2}


def differences(actual, expected, tolerance):
    """What is wrong with the outputs, a line each. Outputs of nothing but rounding errors are left out."""
    faults = []
    for name, wanted in expected.items():
        found = actual[name]
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            faults.append(f"{name}: {found.dtype} {found.shape}, expected {wanted.dtype} {wanted.shape}")
        elif wanted.dtype.kind != "f":
            count = np.sum(found != wanted)
            faults += [f"{name}: {count} of {wanted.size} elements differ"] if count else []
        elif np.abs(np.nan_to_num(wanted)).max(initial=0) > 1e-4:
            error = harness.relative_error(found, wanted)
            faults += [f"{name}: relative error {error:.3g}"] if not error <= tolerance else []
    return faults


def reference(model, inputs):
    """Null where onnxruntime refuses the model: a part of another one's window, say."""
    try:
        return harness.reference(model, inputs, optimize=False)
    except Exception:  # noqa: BLE001  its exceptions have no common type
        return None


def try_static(ogc, seed, folder, precision="fp32", serial=False):
    """Faults of one model; None where there is nothing to compare with."""
    model, feed = random_operators.build(seed, jumps=precision == "fp32")
    expected = reference(model, feed())
    if expected is None:
        return None
    path, bundle = folder / f"{seed}.onnx", folder / f"{seed}.ogc"
    onnx.save(model, path)
    try:
        ogc("compile", path, "-o", bundle, "--target", "cpu", "--precision", precision, *(["--serial"] if serial else []))
        faults = differences(ogc.run(bundle, feed()), expected, TOLERANCES[precision])
        ogc.verify(bundle, "--random-orders", "20", "--poison")
    except harness.OgcError as error:
        return [str(error)]
    return faults


def try_rows(ogc, seed, folder):
    """The same for a model with a named dimension: graphs for 3 and 8 rows, calls of these and of fewer rows."""
    model, feed = random_operators.build(seed, rows=ROWS)
    path, bundle = folder / f"{seed}r.onnx", folder / f"{seed}r.ogc"
    onnx.save(model, path)
    faults, expected = [], {n: reference(model, feed(n)) for n in (3, 8, 5, 1)}
    if expected[3] is None or expected[8] is None:
        return None
    try:
        ogc.compile(path, bundle, ["n=3", "n=8"])
        for n, outputs in expected.items():
            try:
                faults += [f"{n} rows: {fault}" for fault in differences(ogc.run(bundle, feed(n)), outputs, TOLERANCES["fp32"])] if outputs else []
            except harness.OgcError as error:
                if n in (3, 8) or "no graph takes" not in error.message and "the file has shape" not in error.message:
                    raise
    except harness.OgcError as error:
        return [str(error)]
    return faults


def check(results):
    """No faults, and few models without a reference."""
    assert not {seed: faults for seed, faults in results.items() if faults}
    assert sum(faults is None for faults in results.values()) <= len(results) // 3


@pytest.mark.parametrize("first", range(0, 12, 3))
def test_random_graphs(ogc, tmp_path, first):
    check({seed: try_static(ogc, seed, tmp_path, serial=seed % 2) for seed in range(first, first + 3)})


def test_random_graphs_in_16_bits(ogc, tmp_path):
    check({seed: try_static(ogc, seed, tmp_path, "fp16") for seed in range(6000, 6004)})


def test_random_graphs_with_rows(ogc, tmp_path):
    check({seed: try_rows(ogc, seed, tmp_path) for seed in range(5000, 5009)})


def test_product_with_itself(ogc, tmp_path):
    """Both operands of the product are one value, which lies transposed in memory."""
    nodes = [onnx.helper.make_node("Conv", ["x", "w"], ["c"]), onnx.helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 1]),
             onnx.helper.make_node("MatMul", ["c", "t"], ["y"])]
    w = np.random.default_rng(0).standard_normal((7, 3, 1)).astype(np.float32)
    model = harness.make_model(nodes, {"x": (onnx.TensorProto.FLOAT, (1, 3, 7))}, {"y": (onnx.TensorProto.FLOAT, (1, 7, 7))}, {"w": w})
    onnx.save(model, tmp_path / "m.onnx")
    inputs = {"x": np.random.default_rng(1).standard_normal((1, 3, 7)).astype(np.float32)}
    harness.check_outputs(ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), inputs), harness.reference(model, inputs), 1e-6)


@pytest.mark.parametrize("batch, queries, keys", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_attention_to_nothing(ogc, tmp_path, batch, queries, keys):
    """What looks like attention, without batches, queries or keys."""
    nodes = [onnx.helper.make_node("MatMul", ["q", "k"], ["s"]), onnx.helper.make_node("Softmax", ["s"], ["p"], axis=-1),
             onnx.helper.make_node("MatMul", ["p", "v"], ["y"])]
    shapes = {"q": (batch, queries, 8), "k": (batch, 8, keys), "v": (batch, keys, 5)}
    model = harness.make_model(nodes, {name: (onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()},
                               {"y": (onnx.TensorProto.FLOAT, (batch, queries, 5))})
    onnx.save(model, tmp_path / "m.onnx")
    result = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), {name: np.ones(shape, np.float32) for name, shape in shapes.items()})
    np.testing.assert_array_equal(result["y"], np.zeros((batch, queries, 5), np.float32))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--precision", choices=sorted(TOLERANCES), default="fp32")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--keep", type=Path, default=Path("/tmp/ogc-random-graphs"))
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    ogc, wrong, tried = harness.Ogc(), 0, 0
    for seed in range(options.first, options.first + options.count):
        faults = try_rows(ogc, seed, options.keep) if options.rows else try_static(ogc, seed, options.keep, options.precision, serial=seed % 2)
        tried += faults is not None
        wrong += bool(faults)
        for fault in faults or []:
            print(f"{seed}: {fault}", flush=True)
        for file in options.keep.glob(f"{seed}*.on*" if not faults else f"{seed}*.ogc"):
            file.unlink()
        for file in options.keep.glob(f"{seed}*.ogc"):
            file.unlink()
    print(f"{tried} models compared, {wrong} wrong")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
