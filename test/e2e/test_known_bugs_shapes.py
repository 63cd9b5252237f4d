"""Small cases from public bug reports of other projects, on shapes that a model leaves open. test_shapes.py has those on symbols of --shapes (B32, B34,
B36 of a whole model) and test_control_flow.py those on loops; here is the rest."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
N = helper.make_node


def save(tmp_path, nodes, inputs, outputs, constants=None):
    path = tmp_path / "m.onnx"
    onnx.save(harness.make_model(nodes, inputs, outputs, constants), path)
    return path


def expect(ogc, bundle, inputs, *expected):
    for actual, wanted in zip(ogc.run(bundle, inputs).values(), expected, strict=True):
        assert actual.shape == np.shape(wanted)
        np.testing.assert_allclose(actual, wanted, rtol=1e-6)


def fives(*shape):
    return np.full(shape, 5, np.float32)


# More than one open dimension in a group of operators (B33)

def test_rows_gathered_from_joined_parts(ogc, tmp_path):
    path = save(tmp_path, [N("Concat", ["data", "ones"], ["all"], axis=0), N("Gather", ["all", "idx"], ["y"], axis=0)],
                {"data": (F32, ("m", "k")), "idx": (I64, ("i",))}, {"y": (F32, None)}, {"ones": np.ones((3, 12), np.float32)})
    bundle = ogc.compile(path, tmp_path / "m.ogc", ["m=2 k=12 i=3", "m=1 k=12 i=2"])
    expect(ogc, bundle, {"data": fives(2, 12), "idx": np.array([0, 4, -1])}, np.concatenate([fives(1, 12), np.ones((2, 12))]))
    expect(ogc, bundle, {"data": fives(1, 12), "idx": np.array([1, 0])}, np.concatenate([np.ones((1, 12)), fives(1, 12)]))


@pytest.mark.parametrize("p, q", [(1, 1), (2, 3), (4, 1)])
def test_rows_by_a_matrix_of_indices(ogc, tmp_path, p, q):
    path = save(tmp_path, [N("GatherND", ["data", "idx"], ["y"])], {"data": (F32, (5, 3)), "idx": (I64, ("p", "q", 1))}, {"y": (F32, None)})
    data, idx = np.arange(15, dtype=np.float32).reshape(5, 3), np.arange(p * q).reshape(p, q, 1) * 2 % 5
    expect(ogc, ogc.compile(path, tmp_path / "m.ogc", f"p={p} q={q}"), {"data": data, "idx": idx}, data[idx[..., 0]])


# Nothing to compute, or to sum (B36)

NOTHING = {
    "BatchNormalization": (["x", "c", "c", "c", "c"], {}, {"x": (1, 2, 0)}, {"c": np.ones(2, np.float32)}, np.zeros((1, 2, 0))),
    "Conv": (["x", "w"], {}, {"x": (0, 1, 4)}, {"w": np.ones((2, 1, 3), np.float32)}, np.zeros((0, 2, 2))),
    "MatMul of no rows": (["x", "w"], {}, {"x": (0, 4)}, {"w": np.ones((4, 3), np.float32)}, np.zeros((0, 3))),
    "MatMul of no columns": (["x", "w"], {}, {"x": (2, 0)}, {"w": np.ones((0, 3), np.float32)}, np.zeros((2, 3))),
    "Concat": (["x", "w"], {"axis": 2}, {"x": (1, 1, 0, 8)}, {"w": np.ones((1, 1, 1, 8), np.float32)}, np.ones((1, 1, 1, 8))),
    "ReduceSum": (["x", "a"], {"keepdims": 0}, {"x": (1, 0)}, {"a": np.array([1])}, np.zeros(1)),
    "Softmax": (["x"], {}, {"x": (2, 0)}, {}, np.zeros((2, 0))),
}


@pytest.mark.parametrize("case", NOTHING)
def test_length_zero(ogc, tmp_path, case):
    inputs, attributes, shapes, constants, expected = NOTHING[case]
    path = save(tmp_path, [N(case.split()[0], inputs, ["y"], **attributes)], {name: (F32, shape) for name, shape in shapes.items()}, {"y": (F32, None)}, constants)
    expect(ogc, ogc.compile(path, tmp_path / "m.ogc"), {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, expected)


def test_best_of_no_rows(ogc, tmp_path):
    path = save(tmp_path, [N("TopK", ["x", "k"], ["v", "i"], axis=1)], {"x": (F32, (0, 4))}, {"v": (F32, None), "i": (I64, None)}, {"k": np.array([1])})
    expect(ogc, ogc.compile(path, tmp_path / "m.ogc"), {"x": np.zeros((0, 4), np.float32)}, np.zeros((0, 1)), np.zeros((0, 1)))


def test_sum_of_a_mask_of_length_zero(ogc, tmp_path):
    """The first step of a decoder: its past is empty (B66)."""
    path = save(tmp_path, [N("ReduceSum", ["mask", "one"], ["count"], keepdims=0), N("Concat", ["past", "new"], ["present"], axis=2)],
                {"mask": (F32, (1, "p")), "past": (F32, (1, 1, "p", 8)), "new": (F32, (1, 1, 1, 8))}, {"count": (F32, None), "present": (F32, None)},
                {"one": np.array([1])})
    bundle, new = ogc.compile(path, tmp_path / "m.ogc", "p=0,1,2"), np.ones((1, 1, 1, 8), np.float32)
    for past in range(3):
        expect(ogc, bundle, {"mask": np.ones((1, past), np.float32), "past": fives(1, 1, past, 8), "new": new},
               [past], np.concatenate([fives(1, 1, past, 8), new], 2))


# Branches of unequal shapes (B38)

def branch(nodes, output):
    return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info(output, F32, None)])


def choice(**attributes):
    return N("If", ["c"], ["y"], name="choose", then_branch=branch([N("Identity", ["x"], ["t"])], "t"),
             else_branch=branch([N("Concat", ["x", "x"], ["e"], axis=0)], "e"), **attributes)


@pytest.mark.parametrize("condition", [True, False, [True], [False]], ids=str)
def test_branch_of_a_given_condition(ogc, tmp_path, condition):
    """The value given to the compiler decides, and is no input any more; a condition of one element counts as a scalar."""
    path = save(tmp_path, [choice()], {"x": (F32, (2,)), "c": (BOOL, np.shape(condition))}, {"y": (F32, ("k",))})
    bundle = ogc.compile(path, tmp_path / "m.ogc", value=f"c={str(condition).lower()}")
    x, taken = np.array([1, 2], np.float32), np.ravel(condition)[0]
    expect(ogc, bundle, {"x": x}, x if taken else [1, 2, 1, 2])


def test_branches_whose_shapes_only_a_run_knows(ogc, tmp_path):
    path = save(tmp_path, [choice()], {"x": (F32, (2,)), "c": (BOOL, ())}, {"y": (F32, ("k",))})
    with pytest.raises(harness.OgcError) as caught:
        ogc.compile(path, tmp_path / "m.ogc")
    assert caught.value.code == 1 and "If node 'choose'" in caught.value.message


def test_condition_that_the_shape_decides(ogc, tmp_path):
    """The branch that is not taken need not fit this shape: a matrix has two axes, a vector one."""
    rank = [N("Shape", ["x"], ["s"]), N("Gather", ["s", "zero"], ["n"]), N("Equal", ["n", "four"], ["c"])]
    fits = branch([N("Reshape", ["x", "two_by_two"], ["t"])], "t")
    path = save(tmp_path, [*rank, N("If", ["c"], ["y"], name="choose", then_branch=fits, else_branch=branch([N("Identity", ["x"], ["e"])], "e"))],
                {"x": (F32, ("n",))}, {"y": (F32, None)}, {"zero": np.array(0), "four": np.array(4), "two_by_two": np.array([2, 2])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", "n=4,5")
    x = np.arange(5, dtype=np.float32)
    for _ in range(5):
        expect(ogc, bundle, {"x": x[:4]}, [[0, 1], [2, 3]])
        expect(ogc, bundle, {"x": x}, x)


# Shapes that are computed (B39)

def test_fill_of_the_shape_of_an_input(ogc, tmp_path):
    path = save(tmp_path, [N("Shape", ["x"], ["s"]), N("ConstantOfShape", ["s"], ["y"])], {"x": (F32, ("n", 2))}, {"y": (F32, None)})
    bundle = ogc.compile(path, tmp_path / "m.ogc", "n=1,3")
    for n in (1, 3):
        expect(ogc, bundle, {"x": fives(n, 2)}, np.zeros((n, 2)))


@pytest.mark.parametrize("count, carried, sums", [(3, [7, 0, 1, 2], [[7], [8], [10]]), (0, [7], np.zeros((0, 1)))])
def test_loop_whose_state_grows(ogc, tmp_path, count, carried, sums):
    """The trip count is an input whose value the compiler is given."""
    body = helper.make_graph([N("Cast", ["i"], ["f"], to=F32), N("Reshape", ["f", "one"], ["r"]), N("Concat", ["v", "r"], ["w"], axis=0),
                              N("ReduceSum", ["w"], ["s"]), N("Identity", ["go"], ["on"])], "body",
                             [helper.make_tensor_value_info("i", I64, []), helper.make_tensor_value_info("go", BOOL, []), helper.make_tensor_value_info("v", F32, None)],
                             [helper.make_tensor_value_info("on", BOOL, []), helper.make_tensor_value_info("w", F32, None), helper.make_tensor_value_info("s", F32, [1])])
    path = save(tmp_path, [N("Loop", ["m", "", "start"], ["y", "scan"], name="grow", body=body)], {"m": (I64, ()), "start": (F32, (1,))},
                {"y": (F32, None), "scan": (F32, None)}, {"one": np.array([1])})
    bundle = ogc.compile(path, tmp_path / "m.ogc", value=f"m={count}")
    expect(ogc, bundle, {"start": np.array([7], np.float32)}, carried, sums)
