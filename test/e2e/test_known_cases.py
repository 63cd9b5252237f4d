"""Small cases that other compilers got wrong, with the values that the ONNX text says."""
import numpy as np
import onnx
import pytest

import harness

F32, F16, I64 = np.float32, np.float16, np.int64


def arr(values, shape=None, dtype=F32):
    array = np.array(values, dtype)
    return array if shape is None else array.reshape(shape)


def row(*values):
    return arr(values, (1, 1, -1))


INF = np.inf
CASES = {
    # One output element must not divide by zero, and has its own rule in pytorch_half_pixel.
    "resize to one, pytorch": ("Resize", [arr([1, 2, 3, 4], (1, 1, 1, 4)), None, None, arr([1, 1, 1, 1], dtype=I64)], [3],
                               dict(mode="linear", coordinate_transformation_mode="pytorch_half_pixel"), [arr([1], (1, 1, 1, 1))]),
    "resize to one, half": ("Resize", [arr([1, 2, 3, 4], (1, 1, 1, 4)), None, None, arr([1, 1, 1, 1], dtype=I64)], [3],
                            dict(mode="linear", coordinate_transformation_mode="half_pixel"), [arr([2.5], (1, 1, 1, 1))]),
    "resize to one, corners": ("Resize", [arr([1, 2, 3, 4], (1, 1, 1, 4)), None, None, arr([1, 1, 1, 1], dtype=I64)], [3],
                               dict(mode="linear", coordinate_transformation_mode="align_corners"), [arr([1], (1, 1, 1, 1))]),
    # ceil_mode makes no window out of padding alone.
    "average without empty window": ("AveragePool", [row(1, 2)], [], dict(kernel_shape=[3], strides=[3], pads=[1, 1], ceil_mode=1), [row(1.5)]),
    "average with padding": ("AveragePool", [row(1, 2)], [], dict(kernel_shape=[3], strides=[3], pads=[1, 1], ceil_mode=1, count_include_pad=1),
                             [row(1)]),
    "maximum without empty window": ("MaxPool", [row(1, 2)], [], dict(kernel_shape=[3], strides=[3], pads=[1, 1], ceil_mode=1), [row(2)]),
    "maxima of dilated windows": ("MaxPool", [row(1, 9, 2, 8, 3, 7, 4, 6, 5)], [], dict(kernel_shape=[2], dilations=[2], pads=[1, 1]),
                                  [row(9, 2, 9, 3, 8, 4, 7, 5, 6), row(1, 2, 1, 4, 3, 6, 5, 8, 7).astype(I64)]),
    "transposed": ("ConvTranspose", [row(1, 2, 3), row(1, 10, 100)], [], dict(strides=[2]), [row(1, 10, 102, 20, 203, 30, 300)]),
    "transposed, output_padding": ("ConvTranspose", [row(1, 2, 3), row(1, 10, 100)], [], dict(strides=[2], output_padding=[1]),
                                   [row(1, 10, 102, 20, 203, 30, 300, 0)]),
    "transposed, SAME_UPPER": ("ConvTranspose", [row(1, 2, 3), row(1, 10, 100)], [], dict(strides=[2], auto_pad="SAME_UPPER"),
                               [row(1, 10, 102, 20, 203, 30)]),
    "transposed, SAME_LOWER": ("ConvTranspose", [row(1, 2, 3), row(1, 10, 100)], [], dict(strides=[2], auto_pad="SAME_LOWER"),
                               [row(10, 102, 20, 203, 30, 300)]),
    "reflects several times": ("Pad", [arr([1, 2, 3]), arr([5, 0], dtype=I64)], [1], dict(mode="reflect"), [arr([2, 1, 2, 3, 2, 1, 2, 3])]),
    "reflects": ("Pad", [arr([[1, 1.2], [2.3, 3.4], [4.5, 5.7]]), arr([0, 2, 0, 0], dtype=I64)], [1], dict(mode="reflect"),
                 [arr([[1, 1.2, 1, 1.2], [2.3, 3.4, 2.3, 3.4], [4.5, 5.7, 4.5, 5.7]])]),
    "pads and crops an axis": ("Pad", [arr([[1, 2, 3], [4, 5, 6]]), arr([1, -1], dtype=I64), F32(9), arr([-1], dtype=I64)], [1, 2, 3], {},
                               [arr([[9, 1, 2], [9, 4, 5]])]),
    "reduces nothing, squares": ("ReduceSumSquare", [arr([1, -2, 3])], [], dict(noop_with_empty_axes=1), [arr([1, 4, 9])]),
    "reduces nothing, norm": ("ReduceL1", [arr([1, -2, 3])], [], dict(noop_with_empty_axes=1), [arr([1, 2, 3])]),
    "no axes are all": ("ReduceSum", [arr([1, -2, 3]), arr([], dtype=I64)], [1], dict(keepdims=0), [arr(2)]),
    "maximum of bools": ("ReduceMax", [np.array([[True, False], [False, False]]), arr([1], dtype=I64)], [1], dict(keepdims=0), [np.array([True, False])]),
    "mean of integers": ("ReduceMean", [arr([[-7, 2], [3, 4]], dtype=np.int32), arr([1], dtype=I64)], [1], dict(keepdims=0),
                         [arr([-2, 3], dtype=np.int32)]),
    "exact integer power": ("Pow", [arr([3], dtype=I64), arr([39], dtype=I64)], [], {}, [arr([4052555153018976267], dtype=I64)]),
    "power of the type of its base": ("Pow", [arr([2], dtype=I64), arr([0.5])], [], {}, [arr([1], dtype=I64)]),
    "clips 64 bits": ("Clip", [arr([2**32 + 5, -2**40, 7], dtype=I64), I64(-100), I64(100)], [1, 2], {}, [arr([100, -100, 7], dtype=I64)]),
    "clips NaN to NaN": ("Clip", [arr([np.nan, -2, 5]), F32(-1), F32(1)], [1, 2], {}, [arr([np.nan, -1, 1])]),
    "mod, sign of the divisor": ("Mod", [arr([-5, 5, -5, 5], dtype=I64), arr([3, -3, -3, 3], dtype=I64)], [], {}, [arr([1, -1, -2, 2], dtype=I64)]),
    "mod, sign of the dividend": ("Mod", [arr([-5.5, 5.5]), arr([3, -3])], [], dict(fmod=1), [arr([-2.5, 2.5])]),
    "integer division truncates": ("Div", [arr([8, -8, 7, -7], dtype=I64), arr([-3, 3, -2, 2], dtype=I64)], [], {}, [arr([-2, -2, -3, -3], dtype=I64)]),
    "hyperbolic cosine near the end": ("Cosh", [arr([88.9, -89.2, 89.5, 90])], [], {}, [np.cosh(arr([88.9, -89.2, 89.5, 90]).astype(np.float64)).astype(F32)]),
    "infinities of one sign": ("IsInf", [arr([INF, -INF, np.nan, 1])], [], dict(detect_negative=0), [np.array([True, False, False, False])]),
    "normalization of the batch": ("BatchNormalization", [arr([[[1, 3]], [[5, 7]]]), arr([1]), arr([0]), arr([10]), arr([4])], [1, 2, 3, 4],
                                   dict(epsilon=0.0), [arr([[[-4.5, -3.5]], [[-2.5, -1.5]]])]),
    "statistics of the batch": ("BatchNormalization", [arr([[[1, 3]], [[5, 7]]]), arr([1]), arr([0]), arr([10]), arr([4])], [],
                                dict(training_mode=1, momentum=0.9, epsilon=0.0),
                                [(arr([1, 3, 5, 7], (2, 1, 2)) - 4) / np.sqrt(F32(5)), arr([9.4]), arr([4.1])]),
    "half sums of squares": ("LayerNormalization", [arr([[300, -300, 300, -300]], dtype=F16), np.ones(4, F16)], [1], {},
                             [arr([[1, -1, 1, -1]], dtype=F16), arr([[0]]), arr([[1 / 300]])]),
    "half softmax": ("Softmax", [arr([60000, 60000, 0], dtype=F16)], [], dict(axis=0), [arr([0.5, 0.5, 0], dtype=F16)]),
}
VALUES = arr([[1] * 8, [2] * 8, [4] * 8], (1, 1, 3, 8))
Q, K = np.zeros((1, 1, 1, 8), F32), np.zeros((1, 1, 3, 8), F32)
for name, attributes, expected in (("all keys", {}, 7 / 3), ("causal from the first key", dict(is_causal=1), 1.0)):
    CASES["attention, " + name] = ("Attention", [Q, K, VALUES], [], attributes, [np.full((1, 1, 1, 8), expected, F32)])
CASES["attention, causal after the past"] = (
    "Attention", [Q, K[:, :, 2:], VALUES[:, :, 2:], None, K[:, :, :2], VALUES[:, :, :2]], [], dict(is_causal=1),
    [np.full((1, 1, 1, 8), 7 / 3, F32), K, VALUES])
for count, expected in ((3, 7 / 3), (2, 1.5)):
    CASES[f"attention, causal with {count} valid keys"] = ("Attention", [Q, K, VALUES, None, None, None, arr([count], dtype=I64)], [], dict(is_causal=1),
                                                           [np.full((1, 1, 1, 8), expected, F32)])


@pytest.mark.parametrize("name", CASES)
def test_case(ogc, tmp_path, name):
    op, inputs, constants, attributes, expected = CASES[name]
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    opset = {"BatchNormalization": 15, "Attention": 24}.get(op, 22)
    model, fed = harness.single_node(op, inputs, attributes, len(expected), constants, opset)
    onnx.save(model, tmp_path / "m.onnx")
    actual = ogc.run(ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), fed)
    for got, want in zip(actual.values(), expected, strict=True):
        want = np.asarray(want)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-3 if want.dtype == F16 else 2e-6, atol=1e-3 if want.dtype == F16 else 1e-6)
