"""How the models of the shared folder with free dimensions are called: by the end-to-end tests, and on a GPU by scripts/gpu_test.py."""
import numpy as np

import harness

# Sizes of the free dimensions, three calls of each model.
SIZES = {
    "resnet50_dyn_bn": [{"batch": 1}, {"batch": 2}, {"batch": 3}],
    "bert_base_dyn": [{"batch": 1, "seq": 17}, {"batch": 2, "seq": 32}, {"batch": 1, "seq": 128}],
    "bert_tiny_legacy_dyn": [{"batch": 1, "seq": 5}, {"batch": 3, "seq": 16}, {"batch": 2, "seq": 33}],
    "mlp_nbits4": [{"seq": 1}, {"seq": 7}, {"seq": 32}],
    "lstm_gru": [{"batch": 1, "time": 1}, {"batch": 3, "time": 7}, {"batch": 2, "time": 20}],
}
# Tokens in the caches, and new ones.
GROWING = [(0, 1), (0, 5), (1, 1), (8, 1), (31, 2)]


def growing_cache(past, length):
    """Inputs of llama_tiny_gqa, whose keys and values are appended to the past."""
    rng = np.random.default_rng(past + length)
    caches = {name: rng.standard_normal((1, 2, past, 16)).astype(np.float32) for name in ("k0", "v0", "k1", "v1")}
    return {"input_ids": rng.integers(0, 256, (1, length)), "attention_mask": np.ones((1, past + length), np.int64), **caches}


def decode_step(position=300):
    """Inputs of llama1b_decode: one step with `position` of its 512 slots in use, whose rotation angles must not be rounded to 16 bits."""
    rng = np.random.default_rng(0)
    cache = (16, 1, 8, 512, 64)
    return {"ids": np.array([[77]]), "pos": np.array([position]),
            "mask": np.where(np.arange(512) <= position, 0, -1e4).astype(np.float32).reshape(1, 1, 1, 512),
            "kc": rng.standard_normal(cache).astype(np.float32), "vc": rng.standard_normal(cache).astype(np.float32)}


def calls(model):
    """The inputs of each call of a model; one call where every dimension is fixed."""
    if model == "llama_tiny_gqa":
        return [growing_cache(*lengths) for lengths in GROWING]
    if model == "llama1b_decode":
        return [decode_step()]
    path = harness.shared_model(model)
    return [harness.model_inputs(path, sizes, seed) for seed, sizes in enumerate(SIZES.get(model, [None]))]


def shapes(inputs):
    """The text of --shapes for a call."""
    return ",".join(f"{name}={'x'.join(map(str, array.shape))}" for name, array in inputs.items())


def named_shapes(given):
    """One --shapes a call, with the graph IDs g0, g1 ..."""
    return [f"g{number}: {shapes(inputs)}" for number, inputs in enumerate(given)]
