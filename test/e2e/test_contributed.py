"""Operators of com.microsoft that onnxruntime's optimizer and quantizers write, against onnxruntime."""
import zlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import harness

F32, F16, I32, I64, U8, I8 = np.float32, np.float16, np.int32, np.int64, np.uint8, np.int8
MS = "com.microsoft"


def f(*shape, dtype=F32, scale=1.0):
    return (np.random.default_rng(zlib.crc32(repr(shape).encode())).standard_normal(shape) * scale).astype(dtype)


def q(*shape, dtype=U8, low=None, high=None):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(zlib.crc32(repr((shape, str(dtype))).encode()))
    return rng.integers(info.min if low is None else low, info.max + 1 if high is None else high, shape).astype(dtype)


def s(value, dtype=F32):
    return np.array(value, dtype)


CASES = []


def case(op, *inputs, name="", constants=(), outputs=1, domain=MS, opset=21, tolerance=1e-5, valid=None, steps=0, **attributes):
    """Adds a case. `outputs` is a number, or a list of 0 and 1 (left out, used). `steps`: quantized results may differ by so much.
    `valid`: how many rows of a cache count in each batch (onnxruntime leaves the others to chance)."""
    parameter = pytest.param(op, inputs, constants, outputs, domain, opset, tolerance, valid, steps, attributes, id=f"{op} {name}".strip())
    CASES.append(parameter)


# Element-wise, fused products.
case("Gelu", f(3, 5))
case("BiasGelu", f(2, 3, 8), f(8))
case("FastGelu", f(2, 3, 8), f(8), tolerance=1e-4)
case("FastGelu", f(2, 3, 8), name="no bias", tolerance=1e-4)
case("QuickGelu", f(2, 3, 8), alpha=1.702)
for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)):
    case("FusedMatMul", f(2, *((6, 5) if a else (5, 6))), f(2, *((4, 6) if b else (6, 4))), name=f"transA={a} transB={b}", transA=a, transB=b, alpha=0.25)
case("FusedMatMul", f(3, 2, 5, 6), f(6, 4), name="weights", constants=[1])
case("FusedMatMul", f(5, 2, 6), f(2, 6, 4), name="transBatchA", transBatchA=1)
case("FusedGemm", f(3, 4), f(4, 5), f(5), activation="Relu", constants=[1, 2])
case("FusedGemm", f(3, 4), f(5, 4), f(3, 5), name="LeakyRelu", activation="LeakyRelu", activation_alpha=0.2, transB=1, alpha=0.5, beta=2.0)
case("FusedConv", f(1, 3, 8, 8), f(4, 3, 3, 3), f(4), activation="Relu", pads=[1, 1, 1, 1], constants=[1, 2])
case("FusedConv", f(1, 3, 8, 8), f(4, 3, 3, 3), f(4), f(1, 4, 6, 6), name="sum", activation="Relu", constants=[1, 2])
case("FusedConv", f(1, 3, 8, 8), f(4, 3, 3, 3), name="Clip", activation="Clip", activation_params=[-0.5, 0.5], strides=[2, 2], constants=[1])
case("FusedConv", f(1, 3, 8, 8), f(4, 3, 3, 3), name="HardSigmoid", activation="HardSigmoid", activation_params=[0.3, 0.4], auto_pad="SAME_UPPER", constants=[1])

# Normalizations.
case("SkipLayerNormalization", f(2, 3, 16), f(2, 3, 16), f(16), f(17)[:16], f(18)[:16], name="all", epsilon=1e-5, constants=[2, 3, 4], outputs=[1, 0, 0, 1])
case("SkipLayerNormalization", f(2, 3, 16), f(3, 16), f(16), name="broadcast skip", epsilon=1e-5)
case("SkipLayerNormalization", f(2, 3, 16, dtype=F16), f(2, 3, 16, dtype=F16), f(16, dtype=F16), name="fp16", epsilon=1e-5, tolerance=2e-3)
case("SkipSimplifiedLayerNormalization", f(2, 3, 16), f(2, 3, 16), f(16), epsilon=1e-5, outputs=[1, 0, 0, 1])
case("SkipSimplifiedLayerNormalization", f(2, 3, 16), f(2, 3, 16), f(16), f(17)[:16], name="bias", epsilon=1e-5)
case("SimplifiedLayerNormalization", f(2, 3, 16), f(16), domain="", epsilon=1e-5, axis=-1)
case("LayerNormalization", f(2, 3, 16), f(16), f(17)[:16], name="opset 12", domain="", opset=12, axis=-1, constants=[1, 2])
case("EmbedLayerNormalization", q(2, 5, dtype=I32, low=0, high=20), q(2, 5, dtype=I32, low=0, high=2), f(20, 8), f(9, 8), f(2, 8), f(8), f(9)[:8],
     s([[1] * 5, [1, 1, 1, 0, 0]], I32), outputs=2, epsilon=1e-5, constants=[2, 3, 4, 5, 6])
case("EmbedLayerNormalization", q(2, 5, dtype=I32, low=0, high=20), None, f(20, 8), f(9, 8), None, f(8), f(9)[:8], name="no segments", outputs=2, epsilon=1e-5)

# Attention.
W, B3 = f(16, 48, scale=0.25), f(48)
case("Attention", f(2, 5, 16), W, B3, num_heads=4, constants=[1, 2])
case("Attention", f(2, 5, 16), W, B3, s([[1] * 5, [1, 1, 1, 0, 0]], I32), name="mask", num_heads=4, constants=[1, 2])
case("Attention", f(2, 5, 16), W, B3, s([5, 3], I32), name="mask lengths", num_heads=4, constants=[1, 2])
case("Attention", f(2, 5, 16), W, B3, s([5, 4, 0, 1], I32), name="mask ranges", num_heads=4, constants=[1, 2])
case("Attention", f(2, 5, 16), W, B3, q(2, 5, 5, dtype=I32, low=0, high=2) | np.eye(5, dtype=I32), name="mask rank 3", num_heads=4)
case("Attention", f(2, 5, 16), W, B3, name="unidirectional", num_heads=4, unidirectional=1)
case("Attention", f(2, 2, 16), W, B3, None, f(2, 2, 4, 3, 4), name="past", num_heads=4, unidirectional=1, outputs=2)
case("Attention", f(2, 5, 16), W, B3, None, None, f(2, 4, 5, 5), name="bias of the scores", num_heads=4, scale=0.3)
case("MultiHeadAttention", f(2, 3, 16), f(2, 5, 16), f(2, 5, 24), name="cross", num_heads=4)
case("MultiHeadAttention", f(2, 3, 16), f(2, 5, 16), f(2, 5, 16), f(48), s([[1] * 5, [1, 1, 1, 0, 0]], I32), name="bias, mask", num_heads=4)
case("MultiHeadAttention", f(2, 2, 16), f(2, 2, 16), f(2, 3, 16)[:, :2], None, None, f(1, 4, 2, 5), f(2, 4, 3, 4), f(3, 4, 3, 4)[:2], name="past",
     num_heads=4, outputs=3, unidirectional=1)
for queries in (1, 7):
    case("MultiHeadAttention", f(2, queries, 16), f(2, 5, 16), f(2, 5, 24), name=f"unidirectional cross, {queries} queries", num_heads=4, unidirectional=1)
for interleaved in (0, 1):
    case("RotaryEmbedding", f(2, 3, 32), s([[0, 1, 2], [4, 5, 6]], I64), f(9, 4), f(10, 4)[:9], name=f"interleaved={interleaved}", interleaved=interleaved)
case("RotaryEmbedding", f(2, 4, 3, 8), s([2], I64), f(9, 4), f(10, 4)[:9], name="rank 4, offset")
case("RotaryEmbedding", f(2, 3, 32), s([2], I64), f(9, 2), f(10, 2)[:9], name="partial", num_heads=4, rotary_embedding_dim=4)


def gqa(name, batch, queries, capacity, lengths, heads=4, key_heads=2, size=8, packed=False, rotary=False, total=None, past=True, **attributes):
    """Grouped queries after `lengths` less `queries` tokens of a cache."""
    total = max(lengths) if total is None else total
    size = 16 if rotary else size
    query = f(batch, queries, (heads + 2 * key_heads if packed else heads) * size)
    key, value = (None, None) if packed else (f(batch, queries, key_heads * size), f(batch + 1, queries, key_heads * size)[:batch])
    cache = (f(batch, key_heads, capacity, size), f(batch + 1, key_heads, capacity, size)[:batch]) if past else (None, None)
    tables = (f(32, size // 2), f(33, size // 2)[:32]) if rotary else (None, None)
    case("GroupQueryAttention", query, key, value, *cache, s([n - 1 for n in lengths], I32), s(total, I32), *tables, name=name, outputs=3,
         constants=[6] if total != capacity or not past else [], valid=lengths, num_heads=heads, kv_num_heads=key_heads, do_rotary=int(rotary), **attributes)


gqa("decode, shared buffer", 2, 1, 8, [8, 3])
gqa("decode, rotary", 2, 1, 8, [8, 3], rotary=True)
gqa("decode, packed, rotary", 2, 1, 8, [8, 5], packed=True, rotary=True)
gqa("decode, interleaved", 1, 1, 8, [8], rotary=True, rotary_interleaved=1)
gqa("prompt", 1, 5, 0, [5], past=False)
gqa("prompt, rotary, packed", 1, 5, 0, [5], past=False, packed=True, rotary=True)
gqa("growing cache", 1, 1, 6, [7], total=7, rotary=True)
gqa("window", 1, 1, 12, [12], local_window_size=4)
gqa("window, prompt", 1, 6, 0, [6], past=False, local_window_size=3)
gqa("soft cap, scale", 1, 1, 12, [12], softcap=2.0, scale=0.5)
gqa("smooth softmax", 1, 1, 12, [12], smooth_softmax=1)


def nbits(m, k, n, block, bits=4, zero=None, dtype=F32, name="", bias=False, order=None, **attributes):
    """A product with weights of few bits; `zero` is None, "packed" or "float"."""
    blocks, row = -(-k // block), block * bits // 8
    weights = q(n, blocks, row)
    scales = np.abs(f(n, blocks, dtype=dtype, scale=0.05)) + dtype(0.01)
    zeros = {None: None, "packed": q(n, -(-blocks * bits // 8)), "float": f(n, blocks, dtype=dtype) + dtype(1 << (bits - 1))}[zero]
    case("MatMulNBits", f(*m, k, dtype=dtype), weights, scales, zeros, order, f(n, dtype=dtype) if bias else None,
         name=name or f"{m}x{k}x{n} block {block}, {bits} bits, zeros {zero}, {np.dtype(dtype)}", constants=[1, 2, 3, 4, 5], K=k, N=n, bits=bits,
         block_size=block, tolerance=1e-5 if dtype == F32 else 2e-3, **attributes)


for zero in (None, "packed", "float"):
    nbits((1, 1), 96, 5, 32, zero=zero)
    nbits((3,), 256, 40, 64, zero=zero)
nbits((2, 17), 128, 24, 16)
nbits((1, 1), 100, 7, 32, name="last block not full")
nbits((2, 3), 128, 16, 32, bits=8, zero="packed")
nbits((2, 3), 128, 16, 32, bits=2, zero="packed")
nbits((1, 4), 128, 32, 32, bias=True, zero="packed", name="bias")
nbits((1, 1), 256, 48, 32, dtype=F16, zero="packed")
nbits((1, 20), 256, 48, 32, dtype=F16)
nbits((1, 2), 64, 8, 16, order=(np.arange(64) % 4).astype(I32), name="g_idx")
case("GatherBlockQuantized", q(10, 16), s([[1, 3], [9, 0]], I64), np.abs(f(10, 2)) + F32(0.1), q(10, 1), name="uint8", constants=[0, 2, 3], gather_axis=0,
     quantize_axis=1, block_size=16, bits=4)
case("GatherBlockQuantized", q(10, 32), s([[1, 3], [9, 0]], I64), np.abs(f(10, 2)) + F32(0.1), q(10, 2), name="8 bits", constants=[0, 2, 3], gather_axis=0,
     quantize_axis=1, block_size=16, bits=8)

# Quantized operators.
SA, SB, SC = s(0.02), s(0.03), s(0.05)
for dtype, zero in ((U8, 120), (I8, -5)):
    z = s(zero, dtype)
    for op in ("QLinearAdd", "QLinearMul"):
        case(op, q(2, 3, 40, dtype=dtype), SA, z, q(40, dtype=dtype), SB, z, SC, z, name=str(np.dtype(dtype)), steps=1)
    case("QLinearLeakyRelu", q(2, 40, dtype=dtype), SA, z, SB, z, name=str(np.dtype(dtype)), alpha=0.1, steps=1)
    case("QLinearSigmoid", q(2, 40, dtype=dtype), SA, z, s(1 / 256), s(0 if dtype == U8 else -128, dtype), name=str(np.dtype(dtype)), steps=1)
    case("QLinearConcat", SC, z, q(2, 3, dtype=dtype), SA, z, q(2, 5, dtype=dtype), SB, z, name=str(np.dtype(dtype)), axis=1, steps=1)
    case("QLinearGlobalAveragePool", q(2, 3, 5, 7, dtype=dtype), SA, z, SB, z, name=str(np.dtype(dtype)), channels_last=0, steps=1)
case("QLinearGlobalAveragePool", q(2, 5, 7, 3), SA, s(7, U8), SB, s(9, U8), name="channels last", channels_last=1, steps=1)
case("QLinearAveragePool", q(1, 3, 9, 9), SA, s(100, U8), SB, s(120, U8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], steps=1)
QSOFTMAX = q(3, 20), SA, s(3, U8), s(1 / 256), s(0, U8)
case("QLinearWhere", q(3, 4) > 100, q(3, 4), SA, s(3, U8), q(4), SB, s(9, U8), SC, s(100, U8), steps=1)
case("QGemm", q(4, 8), SA, s(120, U8), q(8, 6, dtype=I8), SB, s(0, I8), q(6, dtype=I32, low=-999, high=999), SC, s(120, U8), constants=[3, 4, 5, 6])
case("QGemm", q(4, 8), SA, s(120, U8), q(6, 8, dtype=I8), SB, s(0, I8), name="float result", transB=1, constants=[3])
case("MatMulIntegerToFloat", q(2, 4, 8), q(8, 6, dtype=I8), SA, SB, s(120, U8), s(3, I8), f(6), constants=[1])
case("MatMulIntegerToFloat", q(4, 8), q(8, 6, dtype=U8), SA, f(6) ** 2, s(120, U8), name="scale a column", constants=[1])
case("DynamicQuantizeMatMul", f(2, 4, 8), q(8, 6, dtype=I8), SB, s(3, I8), f(6), constants=[1, 2, 3, 4])
case("QAttention", q(2, 5, 16), q(16, 48, dtype=I8), B3, SA, s(0.01), None, s(120, U8), s(0, I8), num_heads=4, constants=[1, 2, 4])
case("QuantizeLinear", f(3, 4), s(0.001), s(-7, np.int16), name="int16")
case("DequantizeLinear", q(3, 4, dtype=np.uint16), s(0.001), s(700, np.uint16), name="uint16")
case("Trilu", f(4, 5), upper=0)


def build(op, inputs, constants, outputs, domain, opset, attributes):
    names, infos, tensors, fed = [], [], [], {}
    for number, array in enumerate(inputs):
        names.append("" if array is None else f"x{number}")
        if array is None:
            continue
        array = np.asarray(array)
        if number in constants:
            tensors.append(numpy_helper.from_array(array, f"x{number}"))
        else:
            fed[f"x{number}"] = array
            infos.append(helper.make_tensor_value_info(f"x{number}", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    used = [1] * outputs if isinstance(outputs, int) else outputs
    results = [f"y{number}" if use else "" for number, use in enumerate(used)]
    node = helper.make_node(op, names, results, name=f"the_{op}", domain=domain, **attributes)
    graph = helper.make_graph([node], "test", infos, [onnx.ValueInfoProto(name=name) for name in results if name], initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)], ir_version=10), fed


def compiled(ogc, folder, model):
    onnx.save(model, folder / "m.onnx")
    return ogc.compile(folder / "m.onnx", folder / "m.ogc", target="sm_90,cpu")


@pytest.mark.parametrize("op, inputs, constants, outputs, domain, opset, tolerance, valid, steps, attributes", CASES)
def test_contributed(ogc, tmp_path, op, inputs, constants, outputs, domain, opset, tolerance, valid, steps, attributes):
    model, fed = build(op, inputs, constants, outputs, domain, opset, attributes)
    bundle = compiled(ogc, tmp_path, model)
    expected = harness.reference(model, fed)
    actual = ogc.run(bundle, fed)
    for name in ("y1", "y2") if valid else ():
        for results in (actual, expected):
            results[name] = np.stack([np.where(np.arange(rows.shape[1])[None, :, None] < length, rows, 0) for rows, length in zip(results[name], valid)])
    if steps:  # onnxruntime rounds a float result that differs in its last bits
        for name in expected:
            difference = np.abs(actual[name].astype(int) - expected[name].astype(int))
            assert difference.max() <= steps and (difference > 0).mean() < 0.05, difference
    else:
        harness.check_outputs(actual, expected, tolerance)


def run(ogc, folder, op, inputs, constants=(), outputs=1, domain=MS, opset=23, **attributes):
    model, fed = build(op, inputs, constants, outputs, domain, opset, attributes)
    return list(ogc.run(compiled(ogc, folder, model), fed).values())


def test_quantized_softmax(ogc, tmp_path):
    """onnxruntime wants an attribute `opset` that helper.make_node takes for its own; so numpy is the oracle."""
    x, scale, zero, y_scale, _ = QSOFTMAX
    node = dict(axis=-1)
    (y,) = run(ogc, tmp_path, "QLinearSoftmax", QSOFTMAX, **node)
    real = (x.astype(F32) - zero) * scale
    expected = np.exp(real - real.max(-1, keepdims=True))
    expected = np.rint(expected / expected.sum(-1, keepdims=True) / y_scale).clip(0, 255)
    assert np.abs(y.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("packs", ["query, key, value", "key, value"])
def test_packed_attention(ogc, tmp_path, packs):
    """onnxruntime's CPU has no packed forms: they are the form with three inputs."""
    heads, size, batch, queries = 2, 8, 2, 3
    keys = queries if packs.startswith("query") else 5
    q_, k, v = f(batch, queries, heads, size), f(batch, keys, heads, size), f(batch + 1, keys, heads, size)[:batch]
    flat = [x.reshape(x.shape[0], x.shape[1], -1) for x in (q_, k, v)]
    packed = [np.stack([q_, k, v], 3)] if packs.startswith("query") else [flat[0], np.stack([k, v], 3)]
    (y,) = run(ogc, tmp_path, "MultiHeadAttention", packed, num_heads=heads)
    model, fed = build("MultiHeadAttention", flat, (), 1, MS, 21, dict(num_heads=heads))
    assert harness.relative_error(y, harness.reference(model, fed)["y0"]) < 1e-5


@pytest.mark.parametrize("dtype, rows", [(F32, 1), (F32, 2), (F32, 17), (F16, 1)])
@pytest.mark.parametrize("zeros", ["packed", "float"])
def test_zero_points_of_odd_block_counts(ogc, tmp_path, dtype, rows, zeros):
    """microsoft/onnxruntime#22253: each row of packed zero points ends in a whole byte."""
    points = np.array([[0x21, 0x03], [0x54, 0x06]], U8) if zeros == "packed" else np.array([[1, 2, 3], [4, 5, 6]], dtype)
    inputs = np.ones((rows, 96), dtype), np.full((2, 3, 16), 0x88, U8), np.ones((2, 3), dtype), points
    (y,) = run(ogc, tmp_path, "MatMulNBits", inputs, constants=[1, 2, 3], K=96, N=2, bits=4, block_size=32)
    np.testing.assert_array_equal(y, np.tile(np.array([[576, 288]], dtype), (rows, 1)))


def test_packed_weights_stay_packed(ogc, tmp_path):
    inputs = f(1, 1024), q(1024, 32, 16), np.abs(f(1024, 32))
    model, _ = build("MatMulNBits", inputs, [1, 2], 1, MS, 21, dict(K=1024, N=1024, bits=4, block_size=32))
    assert compiled(ogc, tmp_path, model).stat().st_size < 1024 * 1024 // 2 + 1024 * 32 * 4 + 200_000


def cache(*rows):
    """[1, 1, capacity, 8] with one number a row."""
    return np.repeat(np.array(rows, F32), 8).reshape(1, 1, len(rows), 8)


GQA = dict(num_heads=2, kv_num_heads=1)


@pytest.mark.parametrize("packed", [False, True])
def test_capacity_is_not_length(ogc, tmp_path, packed):
    """ROCm/hip-ep#753: a shared buffer of capacity 8 with two valid rows; the others must not be seen."""
    past = cache(1, 2, *[99] * 6)
    new = np.full((1, 1, 8), 3, F32)
    inputs = [np.zeros((1, 1, 16), F32), np.zeros((1, 1, 8), F32), new]
    if packed:
        inputs = [np.concatenate(inputs, -1), None, None]
    inputs += [past * 0.1, past, s([2], I32), s(3, I32)]
    y, _, present = run(ogc, tmp_path, "GroupQueryAttention", inputs, outputs=3, **GQA)
    np.testing.assert_allclose(y, np.full((1, 1, 16), 2.0), rtol=1e-6)
    np.testing.assert_array_equal(present, cache(1, 2, 3, *[99] * 5))


def test_decode_steps_of_one_graph(ogc, tmp_path):
    """Five steps change only seqlens_k and the inputs; outputs omitted: the attention still covers the past."""
    model, _ = build("GroupQueryAttention", [np.zeros((1, 1, 16), F32), np.zeros((1, 1, 8), F32), np.zeros((1, 1, 8), F32), cache(*[0] * 8), cache(*[0] * 8),
                                             s([0], I32), s(1, I32)], (), 3, MS, 21, GQA)
    bundle = compiled(ogc, tmp_path, model)
    values = np.full((1, 1, 8, 8), np.nan, F32)  # an untouched cache
    for step in range(5):
        fed = {"x0": np.zeros((1, 1, 16), F32), "x1": np.zeros((1, 1, 8), F32), "x2": np.full((1, 1, 8), step + 1, F32),
               "x3": np.zeros((1, 1, 8, 8), F32), "x4": np.nan_to_num(values) if step else values, "x5": s([step], I32), "x6": s(step + 1, I32)}
        results = ogc.run(bundle, fed)
        values = results["y2"]
        np.testing.assert_allclose(results["y0"], np.full((1, 1, 16), np.mean(np.arange(step + 1) + 1)), rtol=1e-6)


def test_lengths_differ_in_a_batch(ogc, tmp_path):
    past = np.concatenate([cache(1, 2, *[99] * 6)] * 2)
    inputs = [np.zeros((2, 1, 16), F32), np.zeros((2, 1, 8), F32), np.full((2, 1, 8), 3, F32), past * 0, past, s([2, 0], I32), s(3, I32)]
    y, _, present = run(ogc, tmp_path, "GroupQueryAttention", inputs, outputs=3, **GQA)
    np.testing.assert_allclose(y[:, 0, 0], [2, 3], rtol=1e-6)
    np.testing.assert_array_equal(present[1, 0, :2, 0], [3, 2])


def test_prompt_into_shared_buffer(ogc, tmp_path):
    """microsoft/onnxruntime#29719: three tokens at once."""
    past, new = cache(*[99] * 8), np.repeat(np.array([1, 2, 3], F32), 8).reshape(1, 3, 8)
    inputs = [np.zeros((1, 3, 16), F32), np.zeros((1, 3, 8), F32), new, past, past, s([2], I32), s(3, I32)]
    y, _, present = run(ogc, tmp_path, "GroupQueryAttention", inputs, outputs=3, **GQA)
    np.testing.assert_allclose(y[0, :, 0], [1, 1.5, 2], rtol=1e-6)
    np.testing.assert_array_equal(present, cache(1, 2, 3, *[99] * 5))


def test_heads_of_one_key_head(ogc, tmp_path):
    value = np.repeat(np.array([1, 5], F32), 8).reshape(1, 1, 16)
    inputs = [np.zeros((1, 1, 32), F32), np.zeros((1, 1, 16), F32), value, None, None, s([0], I32), s(1, I32)]
    (y,) = run(ogc, tmp_path, "GroupQueryAttention", inputs, constants=[6], num_heads=4, kv_num_heads=2)
    np.testing.assert_allclose(y.reshape(4, 8)[:, 0], [1, 1, 5, 5])


ROWS = np.repeat(np.array([1, 2, 4], F32), 8).reshape(1, 1, 3, 8)


@pytest.mark.parametrize("case, expected", [("all", 7 / 3), ("causal", 1.0), ("causal with past", 7 / 3), ("valid 3", 7 / 3), ("valid 2", 1.5)])
def test_causal_alignment(ogc, tmp_path, case, expected):
    """microsoft/onnxruntime#29020: which keys a single query sees."""
    q0, k, past = np.zeros((1, 1, 1, 8), F32), np.zeros((1, 1, 3, 8), F32), case == "causal with past"
    inputs = [q0, k[:, :, 2:] if past else k, ROWS[:, :, 2:] if past else ROWS]
    inputs += [None, k[:, :, :2], ROWS[:, :, :2]] if past else []
    inputs += [None, None, None, s([int(case[-1])], I64)] if case.startswith("valid") else []
    results = run(ogc, tmp_path, "Attention", inputs, outputs=3 if past else 1, domain="", opset=24, is_causal=int(case != "all"))
    np.testing.assert_allclose(results[0], np.full((1, 1, 1, 8), expected), rtol=1e-6)
    assert not past or results[1].shape == (1, 1, 3, 8)


def test_cache_outputs_without_past(ogc, tmp_path):
    """microsoft/onnxruntime#26262."""
    k = f(1, 1, 3, 8)
    y, key, value = run(ogc, tmp_path, "Attention", [np.zeros((1, 1, 1, 8), F32), k, ROWS], outputs=3, domain="", opset=23)
    np.testing.assert_array_equal(key, k)
    np.testing.assert_array_equal(value, ROWS)
    np.testing.assert_allclose(y, np.full((1, 1, 1, 8), 7 / 3), rtol=1e-6)


@pytest.mark.parametrize("attributes, expected", [({}, [-3, -4, 1, 2]), ({"interleaved": 1}, [-2, 1, -4, 3]), ({"rotary_embedding_dim": 2}, [-2, 1, 3, 4])])
def test_rotation(ogc, tmp_path, attributes, expected):
    """microsoft/onnxruntime#28205: partial and interleaved rotation by a right angle; with three dimensions, too."""
    width = attributes.get("rotary_embedding_dim", 4) // 2
    tables = [np.zeros((2, width), F32), np.ones((2, width), F32), s([[1]], I64)]
    x = np.array([1, 2, 3, 4], F32)
    (y,) = run(ogc, tmp_path, "RotaryEmbedding", [x.reshape(1, 1, 1, 4), *tables], domain="", **attributes)
    np.testing.assert_array_equal(y.ravel(), expected)
    (y,) = run(ogc, tmp_path, "RotaryEmbedding", [np.tile(x, 2).reshape(1, 1, 8), *tables], domain="", num_heads=2, **attributes)
    np.testing.assert_array_equal(y.ravel(), expected * 2)


def test_positions_outside_the_table(ogc, tmp_path):
    """Positions are clamped into the table, as all indices are: never memory of something else."""
    cos, sin = f(4, 2), f(5, 2)[:4]
    for position, row in ((-1, 3), (4, 3), (99, 3)):
        (y,) = run(ogc, tmp_path, "RotaryEmbedding", [f(1, 1, 1, 4), cos, sin, s([[position]], I64)], domain="")
        (expected,) = run(ogc, tmp_path, "RotaryEmbedding", [f(1, 1, 1, 4), cos, sin, s([[row]], I64)], domain="")
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("op, inputs, attributes, reason", [
    ("RotaryEmbedding", (f(1, 2, 8), s([[0, 1]], I64), f(4, 2), f(4, 2)), dict(num_heads=2, scale=2.0), "scale is"),
    ("MultiHeadAttention", (f(1, 2, 8), f(1, 2, 8), f(1, 2, 8), None, s([0] * 5, I32)), dict(num_heads=2), "key_padding_mask has shape [5]"),
    ("MultiHeadAttention", (f(1, 3, 8), f(1, 5, 8), f(1, 5, 8)), dict(num_heads=2, unidirectional=1), "unidirectional is 1 with 3 queries and 5 keys"),
    ("GroupQueryAttention", (f(1, 1, 16), f(1, 1, 8), f(1, 1, 8), None, None, s([0], I32), s(1, I32)), dict(qk_output=1, **GQA), "qk_output is 1"),
    ("MatMulNBits", (f(1, 32), q(4, 1, 12), f(4, 1)), dict(K=32, N=4, bits=3, block_size=32), "bits is 3, expected 2, 4 or 8"),
    ("FusedConv", (f(1, 1, 4, 4), f(1, 1, 3, 3)), dict(activation="Swirl"), "activation is 'Swirl'"),
    ("FusedConv", (f(1, 1, 4, 4), f(1, 1, 3, 3)), dict(strides=[0, 1]), "strides is not 2 positive numbers"),
    ("QLinearAveragePool", (q(1, 3, 9, 9), SA, s(100, U8), SB, s(120, U8)), dict(kernel_shape=[3, 3], strides=[2]), "strides is not 2 positive numbers"),
    ("DynamicQuantizeLSTM", (f(1, 1, 4),), {}, "unknown operator of domain 'com.microsoft'")])
def test_refused_by_name(ogc, tmp_path, op, inputs, attributes, reason):
    with pytest.raises(harness.OgcError, match="com.microsoft." + op) as error:
        run(ogc, tmp_path, op, inputs, **attributes)
    assert error.value.code == 1 and f"node 'the_{op}'" in error.value.message and reason in error.value.message
