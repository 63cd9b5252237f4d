"""If, Loop and Scan that become straight-line code, against onnxruntime; the others are refused by name."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def body(nodes, inputs, outputs, initializers=()):
    def info(values):
        return [helper.make_tensor_value_info(name, *rest) for name, *rest in values]

    return helper.make_graph(nodes, "body", info(inputs), info(outputs), initializer=list(initializers))


def check(ogc, folder, nodes, inputs, outputs, initializers, fed):
    model = harness.make_model(nodes, inputs, outputs, initializers)
    onnx.save(model, folder / "m.onnx")
    harness.check_outputs(ogc.run(ogc.compile(folder / "m.onnx", folder / "m.ogc"), fed), harness.reference(model, fed), 1e-5)


X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
STEP = [helper.make_node("Cast", ["i"], ["fi"], to=FLOAT), helper.make_node("Mul", ["s", "w"], ["m"]), helper.make_node("Add", ["m", "fi"], ["s2"])]
ARGS = [("i", INT64, []), ("c", BOOL, []), ("s", FLOAT, [2, 3])]


def test_loop_of_known_count(ogc, tmp_path):
    """Carried values, scan outputs, the iteration number and a value of the outer scope."""
    nodes = [*STEP, helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("ReduceSum", ["s2"], ["r"], keepdims=0)]
    loop = helper.make_node("Loop", ["n", "", "x"], ["y", "all", "sums"], name="loop",
                            body=body([*nodes, helper.make_node("Identity", ["s2"], ["s3"])], ARGS,
                                      [("c2", BOOL, []), ("s2", FLOAT, [2, 3]), ("s3", FLOAT, [2, 3]), ("r", FLOAT, [])]))
    check(ogc, tmp_path, [loop], {"x": (FLOAT, [2, 3]), "w": (FLOAT, [3])}, {"y": (FLOAT, [2, 3]), "all": (FLOAT, [None, 2, 3]), "sums": (FLOAT, [None])},
          {"n": np.int64(5)}, {"x": X, "w": X[0]})


def test_loop_stops_by_condition(ogc, tmp_path):
    """The condition follows from the iteration number, so it is known; the trip count is not given."""
    nodes = [*STEP, helper.make_node("Less", ["i", "last"], ["c2"])]
    loop = helper.make_node("Loop", ["", "go", "x"], ["y"], name="loop", body=body(nodes, ARGS, [("c2", BOOL, []), ("s2", FLOAT, [2, 3])]))
    check(ogc, tmp_path, [loop], {"x": (FLOAT, [2, 3]), "w": (FLOAT, [3])}, {"y": (FLOAT, [2, 3])}, {"go": np.bool_(True), "last": np.int64(3)}, {"x": X, "w": X[0]})


def test_loop_that_grows(ogc, tmp_path):
    nodes = [helper.make_node("Concat", ["s", "w"], ["s2"], axis=0), helper.make_node("Identity", ["c"], ["c2"])]
    args = [("i", INT64, []), ("c", BOOL, []), ("s", FLOAT, [None])]
    loop = helper.make_node("Loop", ["n", "", "w"], ["y"], name="loop", body=body(nodes, args, [("c2", BOOL, []), ("s2", FLOAT, [None])]))
    check(ogc, tmp_path, [loop], {"w": (FLOAT, [3])}, {"y": (FLOAT, [None])}, {"n": np.int64(3)}, {"w": X[0]})


def test_loop_without_iterations(ogc, tmp_path):
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop",
                            body=body([*STEP, helper.make_node("Identity", ["c"], ["c2"])], ARGS, [("c2", BOOL, []), ("s2", FLOAT, [2, 3])]))
    relu = helper.make_node("Relu", ["y"], ["z"])
    check(ogc, tmp_path, [loop, relu], {"x": (FLOAT, [2, 3]), "w": (FLOAT, [3])}, {"z": (FLOAT, [2, 3])}, {"n": np.int64(0)}, {"x": X, "w": X[0]})


def test_loop_in_loop(ogc, tmp_path):
    inner = helper.make_node("Loop", ["m", "", "s"], ["t"], name="inner",
                             body=body([helper.make_node("Add", ["u", "w"], ["u2"]), helper.make_node("Identity", ["d"], ["d2"])],
                                       [("j", INT64, []), ("d", BOOL, []), ("u", FLOAT, [2, 3])], [("d2", BOOL, []), ("u2", FLOAT, [2, 3])]))
    nodes = [inner, helper.make_node("Mul", ["t", "w"], ["s2"]), helper.make_node("Identity", ["c"], ["c2"])]
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body(nodes, ARGS, [("c2", BOOL, []), ("s2", FLOAT, [2, 3])]))
    check(ogc, tmp_path, [loop], {"x": (FLOAT, [2, 3]), "w": (FLOAT, [3])}, {"y": (FLOAT, [2, 3])}, {"n": np.int64(2), "m": np.int64(3)}, {"x": X, "w": X[0]})


@pytest.mark.parametrize("attributes", [{}, {"scan_input_directions": [1]}, {"scan_output_directions": [1]}, {"scan_input_axes": [1], "scan_output_axes": [-1]}], ids=str)
def test_scan(ogc, tmp_path, attributes):
    size = 2 if "scan_input_axes" in attributes else 3
    nodes = [helper.make_node("Add", ["s", "e"], ["s2"]), helper.make_node("Mul", ["s2", "e"], ["o"])]
    scan = helper.make_node("Scan", ["s0", "x"], ["y", "all"], name="scan", num_scan_inputs=1,
                            body=body(nodes, [("s", FLOAT, [size]), ("e", FLOAT, [size])], [("s2", FLOAT, [size]), ("o", FLOAT, [size])]), **attributes)
    check(ogc, tmp_path, [scan], {"s0": (FLOAT, [size]), "x": (FLOAT, [2, 3])}, {"y": (FLOAT, [size]), "all": (FLOAT, [None, None])}, {},
          {"s0": X.ravel()[:size], "x": X})


def long_scan(rows):
    scan = helper.make_node("Scan", ["s0", "x"], ["y", "all"], name="scan", num_scan_inputs=1,
                            body=body([helper.make_node("Add", ["s", "e"], ["s2"]), helper.make_node("Identity", ["s2"], ["o"])],
                                      [("s", FLOAT, [3]), ("e", FLOAT, [3])], [("s2", FLOAT, [3]), ("o", FLOAT, [3])]))
    return [scan], {"s0": (FLOAT, [3]), "x": (FLOAT, [rows, 3])}, {"y": (FLOAT, [3]), "all": (FLOAT, [rows, 3])}


def test_scan_of_many_rows(ogc, tmp_path):
    """A result of as many parts as there are rows takes four times as long for four times as many, and as much again for what differs between runs. A chain of
    branches took the square, a search for constants in all branches that had been left the cube."""
    rows = np.random.default_rng(1).standard_normal((1000, 3)).astype(np.float32)
    check(ogc, tmp_path, *long_scan(1000), {}, {"s0": X[0], "x": rows})
    seconds = []
    for count in (250, 1000):
        onnx.save(harness.make_model(*long_scan(count)), tmp_path / "scan.onnx")
        seconds.append(harness.compile_seconds(ogc, tmp_path / "scan.onnx", tmp_path))
    print(f"250 rows: {seconds[0]:.2f} s, 1,000 rows: {seconds[1]:.2f} s")
    assert seconds[1] < 8 * seconds[0]


@pytest.mark.parametrize("condition", [np.array(True), np.array(False), np.array([True])], ids=str)
def test_if_of_unknown_condition(ogc, tmp_path, condition):
    """Branches of one shape are both computed and one is selected."""
    branches = {f"{name}_branch": body([helper.make_node(op, ["x"], ["b"])], [], [("b", FLOAT, [2, 3])]) for name, op in (("then", "Relu"), ("else", "Neg"))}
    choose = helper.make_node("If", ["c"], ["y"], name="choose", **branches)
    check(ogc, tmp_path, [choose], {"x": (FLOAT, [2, 3]), "c": (BOOL, condition.shape)}, {"y": (FLOAT, [2, 3])}, {}, {"x": X, "c": condition})


def refused(ogc, folder, nodes, inputs, outputs, initializers):
    model = harness.make_model(nodes, inputs, outputs, initializers)
    onnx.save(model, folder / "m.onnx")
    with pytest.raises(harness.OgcError) as error:
        ogc.compile(folder / "m.onnx", folder / "m.ogc")
    assert error.value.code == 1
    return error.value.message


def test_refused(ogc, tmp_path):
    identity = helper.make_node("Identity", ["c"], ["c2"])
    simple = body([*STEP, identity], ARGS, [("c2", BOOL, []), ("s2", FLOAT, [2, 3])])
    shapes = {"x": (FLOAT, [2, 3]), "w": (FLOAT, [3])}
    y = {"y": (FLOAT, [2, 3])}
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=simple)
    assert "Loop node 'loop': its trip count is known only at run time" in refused(ogc, tmp_path, [loop], {**shapes, "n": (INT64, [])}, y, {})
    assert "Loop node 'loop': has more than 1024 iterations" in refused(ogc, tmp_path, [loop], shapes, y, {"n": np.int64(1025)})
    sign = [*STEP, helper.make_node("ReduceSum", ["s2"], ["r"], keepdims=0), helper.make_node("Less", ["r", "zero"], ["c2"])]
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body(sign, ARGS, [("c2", BOOL, []), ("s2", FLOAT, [2, 3])]))
    message = refused(ogc, tmp_path, [loop], shapes, y, {"n": np.int64(5), "zero": np.float32(0)})
    assert "Loop node 'loop': its condition is known only at run time (before iteration 1)" in message
    branches = {"then_branch": body([helper.make_node("Relu", ["x"], ["b"])], [], [("b", FLOAT, [2, 3])]),
                "else_branch": body([helper.make_node("Relu", ["w"], ["b"])], [], [("b", FLOAT, [3])])}
    choose = helper.make_node("If", ["c"], ["y"], name="choose", **branches)
    message = refused(ogc, tmp_path, [choose], {**shapes, "c": (BOOL, [])}, {"y": (FLOAT, None)}, {})
    assert "If node 'choose': its condition is known only at run time, and its branches yield" in message
