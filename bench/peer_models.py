"""The models of peers.py as PyTorch modules, with random weights: nothing is downloaded. Each is what the ONNX file of the same name computes."""
import dataclasses

# Layers, heads and so on of llama1b_decode.onnx: one step of decoding with a cache of SLOTS tokens.
LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN, VOCABULARY, SLOTS = 16, 2048, 32, 8, 64, 8192, 128256, 512


@dataclasses.dataclass(frozen=True)
class Model:
    """`file` is the ONNX model of the shared folder, `shapes` what ogc compiles it for where it leaves that open."""
    file: str
    batch: int = 1
    shapes: str = ""
    precisions: tuple = ("fp16", "tf32")
    images: bool = False


MODELS = {"resnet50": Model("resnet50", images=True), "mobilenet_v3_large": Model("mobilenet_v3_large", images=True), "vit_b_16": Model("vit_b_16"),
          "bert_base": Model("bert_base"), "gpt2": Model("gpt2"), "llama1b_decode": Model("llama1b_decode", precisions=("fp16",)),
          "resnet50@8": Model("resnet50_dyn_bn", 8, "x=8x3x224x224", images=True),
          "resnet50@64": Model("resnet50_dyn_bn", 64, "x=64x3x224x224", images=True),
          "bert_base@8": Model("bert_base_dyn", 8, "batch=8 seq=128")}


def vision(name):
    """A network of torchvision and a picture for it."""
    import torch
    import torchvision
    return getattr(torchvision.models, name.partition("@")[0])(weights=None), (torch.randn(MODELS[name].batch, 3, 224, 224),)


def language(name):
    """BERT without its pooler, or GPT-2 with all logits, over 128 tokens with a mask as the ONNX models take it."""
    import torch
    import transformers

    class Masked(torch.nn.Module):
        """Makes the mask of positions a mask of scores: what the library makes of one it looks at on the host, which a CUDA graph cannot record."""

        def __init__(self, inner, causal):
            super().__init__()
            self.inner, self.causal = inner, causal

        def forward(self, ids, mask):
            length = ids.shape[1]
            scores = (mask[:, None, None, :] > 0).expand(-1, 1, length, length)
            if self.causal:
                scores = scores & torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
            return self.inner(input_ids=ids, attention_mask=scores, **({"use_cache": False} if self.causal else {}))[0]

    if name == "gpt2":
        inner = transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="sdpa"))
    else:
        inner = transformers.BertModel(transformers.BertConfig(attn_implementation="sdpa"), add_pooling_layer=False)
    batch = MODELS[name].batch
    mask = (torch.arange(128) < 112).long().expand(batch, -1).contiguous()
    return Masked(inner, name == "gpt2"), (torch.randint(0, 100, (batch, 128)), mask)


def llama(_):
    """One step of a decoder with grouped queries and a static cache, which the step updates in place."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.RMSNorm(WIDTH, 1e-5), nn.RMSNorm(WIDTH, 1e-5)
            self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, width, bias=False) for width in (WIDTH, KV_HEADS * HEAD, KV_HEADS * HEAD, WIDTH))
            self.gate, self.up, self.down = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)
            for cache in ("keys", "values"):
                self.register_buffer(cache, torch.randn(1, KV_HEADS, SLOTS, HEAD))

        def forward(self, x, position, mask, cosine, sine):
            def rotate(heads):
                first, second = heads.chunk(2, -1)
                return heads * cosine + torch.cat((-second, first), -1) * sine

            h = self.before(x)
            query = rotate(self.q(h).view(1, HEADS, 1, HEAD))
            self.keys.index_copy_(2, position, rotate(self.k(h).view(1, KV_HEADS, 1, HEAD)))
            self.values.index_copy_(2, position, self.v(h).view(1, KV_HEADS, 1, HEAD))
            # The queries of one key head are the rows of a product: no head is repeated.
            heads = F.scaled_dot_product_attention(query.view(1, KV_HEADS, HEADS // KV_HEADS, HEAD), self.keys, self.values, attn_mask=mask)
            x = x + self.o(heads.reshape(1, 1, WIDTH))
            h = self.after(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.norm, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.RMSNorm(WIDTH, 1e-5), nn.Linear(WIDTH, VOCABULARY, bias=False)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            # No buffer, so that a cast of the model leaves them f32: angles must not be rounded.
            self.frequencies = 500000.0 ** (-torch.arange(HEAD // 2, dtype=torch.float32) * 2 / HEAD)

        def forward(self, ids, position, mask):
            angles = position.float()[:, None] * self.frequencies
            angles = torch.cat((angles, angles), -1)
            x = self.embedding(ids)
            cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            for layer in self.layers:
                x = layer(x, position, mask, cosine, sine)
            return self.head(self.norm(x))

    mask = torch.where(torch.arange(SLOTS) <= 300, 0.0, -1e4).view(1, 1, 1, SLOTS)
    return Step(), (torch.tensor([[77]]), torch.tensor([300]), mask)


def build(name, precision, device="cuda"):
    """The module in evaluation mode and its inputs, in the precision: tf32 is f32 storage."""
    import torch
    torch.manual_seed(0)
    make = {"bert_base": language, "gpt2": language, "llama1b_decode": llama}.get(name.partition("@")[0], vision)
    with torch.device(device):
        module, inputs = make(name)
    module = module.eval().requires_grad_(False).to(device)
    if precision == "fp16":
        module = module.half()
        inputs = tuple(value.half() if value.is_floating_point() else value for value in inputs)
    return module, tuple(value.to(device) for value in inputs)
