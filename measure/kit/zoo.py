"""The whole models that are measured: published architectures as configs, with random weights.

A config is that of the model's config.json (Hugging Face); `unet` and `dlrm` are the kit's own
(measure/kit/own_models.py). Sizes are taken from the published models, or of the family at a size
that fits one GPU.
"""

from kit.design import generator


def _gpt2(layers, hidden, heads, positions=1024):
    return "causal", dict(model_type="gpt2", n_layer=layers, n_embd=hidden, n_head=heads,
                          n_positions=positions, vocab_size=50257)


def _opt(layers, hidden, heads):
    return "causal", dict(model_type="opt", num_hidden_layers=layers, hidden_size=hidden,
                          num_attention_heads=heads, ffn_dim=4 * hidden, vocab_size=50272,
                          word_embed_proj_dim=hidden, max_position_embeddings=2048)


def _bert(layers, hidden, heads):
    return "masked", dict(model_type="bert", num_hidden_layers=layers, hidden_size=hidden,
                          num_attention_heads=heads, intermediate_size=4 * hidden, vocab_size=30522)


def _llama(layers, hidden, feed, heads, kv_heads, vocabulary, model_type="llama", **more):
    return "causal", {**dict(model_type=model_type, num_hidden_layers=layers, hidden_size=hidden,
                             intermediate_size=feed, num_attention_heads=heads,
                             num_key_value_heads=kv_heads, vocab_size=vocabulary,
                             max_position_embeddings=8192, tie_word_embeddings=False), **more}


def _t5(layers, hidden, feed, heads):
    return "seq2seq", dict(model_type="t5", num_layers=layers, d_model=hidden, d_ff=feed,
                           num_heads=heads, d_kv=64, vocab_size=32128)


def _vit(layers, hidden, heads, patch=16):
    return "image", dict(model_type="vit", num_hidden_layers=layers, hidden_size=hidden,
                         num_attention_heads=heads, intermediate_size=4 * hidden, image_size=224,
                         patch_size=patch)


def _resnet(depths, layer_type="bottleneck", sizes=(256, 512, 1024, 2048)):
    return "image", dict(model_type="resnet", depths=list(depths), layer_type=layer_type,
                         hidden_sizes=list(sizes))


def _convnext(depths, sizes):
    return "image", dict(model_type="convnext", depths=list(depths), hidden_sizes=list(sizes))


def _efficientnet(width, depth, image):
    return "image", dict(model_type="efficientnet", width_coefficient=width, depth_coefficient=depth,
                         image_size=image)


TIED = {"tie_word_embeddings": True}

# The class of Transformers that builds a kind of model, with its loss. `unet` and `dlrm` are our own.
AUTO_CLASSES = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM", "seq2seq": "AutoModelForSeq2SeqLM",
                "image": "AutoModelForImageClassification"}

MODELS = {
    "gpt2": _gpt2(12, 768, 12), "gpt2-medium": _gpt2(24, 1024, 16), "gpt2-large": _gpt2(36, 1280, 20),
    "gpt2-xl": _gpt2(48, 1600, 25),
    "gpt3-xl": _gpt2(24, 2048, 16, 2048),
    "gpt3-2.7b": _gpt2(32, 2560, 32, 2048), "gpt3-6.7b": _gpt2(32, 4096, 32, 2048),
    "opt-125m": _opt(12, 768, 12), "opt-1.3b": _opt(24, 2048, 32), "opt-2.7b": _opt(32, 2560, 32),
    "bert-base": _bert(12, 768, 12), "bert-large": _bert(24, 1024, 16),
    "tinyllama-1.1b": _llama(22, 2048, 5632, 32, 4, 32000),
    "llama-3.2-1b": _llama(16, 2048, 8192, 32, 8, 128256, head_dim=64, **TIED),
    "llama-3.2-3b": _llama(28, 3072, 8192, 24, 8, 128256, head_dim=128, **TIED),
    "llama-2-7b": _llama(32, 4096, 11008, 32, 32, 32000),
    "llama-3-8b": _llama(32, 4096, 14336, 32, 8, 128256),
    "mistral-7b": _llama(32, 4096, 14336, 32, 8, 32000, "mistral", sliding_window=None),
    "qwen2-0.5b": _llama(24, 896, 4864, 14, 2, 151936, "qwen2", **TIED),
    "qwen2-1.5b": _llama(28, 1536, 8960, 12, 2, 151936, "qwen2", **TIED),
    "qwen2-7b": _llama(28, 3584, 18944, 28, 4, 152064, "qwen2"),
    "mixtral-small": _llama(8, 1024, 3584, 16, 4, 32000, "mixtral", num_local_experts=8,
                            num_experts_per_tok=2),
    "mixtral-2b": _llama(16, 1536, 5376, 24, 8, 32000, "mixtral", num_local_experts=8,
                         num_experts_per_tok=2),
    "t5-small": _t5(6, 512, 2048, 8), "t5-base": _t5(12, 768, 3072, 12), "t5-large": _t5(24, 1024, 4096, 16),
    "vit-small": _vit(12, 384, 6), "vit-base": _vit(12, 768, 12), "vit-large": _vit(24, 1024, 16),
    "vit-huge": _vit(32, 1280, 16, 14),
    "resnet-18": _resnet((2, 2, 2, 2), "basic", (64, 128, 256, 512)),
    "resnet-50": _resnet((3, 4, 6, 3)), "resnet-101": _resnet((3, 4, 23, 3)), "resnet-152": _resnet((3, 8, 36, 3)),
    "convnext-tiny": _convnext((3, 3, 9, 3), (96, 192, 384, 768)),
    "convnext-base": _convnext((3, 3, 27, 3), (128, 256, 512, 1024)),
    "convnext-large": _convnext((3, 3, 27, 3), (192, 384, 768, 1536)),
    "efficientnet-b0": _efficientnet(1.0, 1.0, 224), "efficientnet-b3": _efficientnet(1.2, 1.4, 300),
    "efficientnet-b7": _efficientnet(2.0, 3.1, 600),
    "unet-small": ("unet", dict(model_type="unet", channels=[128, 256, 512], image_size=64)),
    "unet-sd": ("unet", dict(model_type="unet", channels=[320, 640, 1280, 1280], image_size=64)),
    "dlrm-small": ("dlrm", dict(model_type="dlrm", tables=26, rows=100_000, dim=64, pooling=1,
                                bottom=[512, 256, 64], top=[512, 256, 1])),
    "dlrm-pooled": ("dlrm", dict(model_type="dlrm", tables=40, rows=200_000, dim=128, pooling=20,
                                 bottom=[512, 256, 128], top=[1024, 1024, 512, 1])),
}

# Two that a CPU runs in a moment, for tests of the runner; they are in no campaign.
TINY = {
    "tiny-gpt2": _gpt2(2, 64, 4, 64),
    "tiny-resnet": ("image", dict(model_type="resnet", depths=[1, 1], layer_type="basic",
                                  embedding_size=8, hidden_sizes=[8, 16], image_size=32)),
    "tiny-unet": ("unet", dict(model_type="unet", channels=[8, 16], image_size=16)),
    "tiny-dlrm": ("dlrm", dict(model_type="dlrm", tables=2, rows=100, dim=8, pooling=2, bottom=[16, 8],
                               top=[16, 1])),
    "tiny-t5": _t5(1, 32, 64, 2),
}


def config_of(name):
    """(kind, config) of a model of the zoo."""
    return MODELS.get(name) or TINY[name]


# Above this many parameters (7 B with AdamW in fp32 is 112 GB) a training step is not asked for.
_LARGE = {"gpt3-6.7b", "llama-2-7b", "llama-3-8b", "mistral-7b", "qwen2-7b"}


def _case(model, mode, dtype, batch, seq, attention="sdpa", compiled=0, checkpointing=0):
    if config_of(model)[0] in ("image", "unet", "dlrm"):
        seq = ""
        attention = attention if model.startswith("vit") else ""
    return dict(model=model, mode=mode, dtype=dtype, attention=attention, compiled=compiled,
                checkpointing=checkpointing, optimizer="adamw" if mode == "training" else "none",
                batch=batch, seq=seq)


def _batches(model):
    kind = config_of(model)[0]
    if kind == "image":
        return (1, 32, 128)
    if kind == "unet":
        return (1, 8)
    if kind == "dlrm":
        return (256, 2048)
    return (1, 8) if model not in _LARGE else (1, 4)


def _sequences(model):
    return {"masked": (128, 512), "seq2seq": (128, 512)}.get(config_of(model)[0], (512, 1024))


def cases():
    """The most valuable first: every model once in both modes, then precisions, then variants."""
    rng = generator("models")
    plain, precisions, variants, compiled = [], [], [], []
    for model in MODELS:
        small, large = _batches(model)[0], _batches(model)[-1]
        short, long = _sequences(model)
        trains = model not in _LARGE
        plain.append(_case(model, "inference", "fp32", large, long, "eager"))
        if trains:
            plain.append(_case(model, "training", "fp32", small if model.startswith("gpt3") else large, short, "eager"))
        precisions.append(_case(model, "inference", "bf16", large, long))
        precisions.append(_case(model, "inference", "bf16", small, short))
        precisions.append(_case(model, "inference", "tf32", large, short))
        if trains:
            precisions.append(_case(model, "training", "amp", large, short))
            precisions.append(_case(model, "training", "bf16", large, long))
            variants.append(_case(model, "training", "amp", large, long, "eager"))
            variants.append(_case(model, "training", "amp", large, long, checkpointing=1))
            variants.append(_case(model, "training", "fp32", small, long))
        variants.append(_case(model, "inference", "fp32", small, short, "eager"))
        variants.append(_case(model, "inference", "amp", large, long))
        compiled.append(_case(model, "inference", "bf16", large, long, compiled=1))
        if trains:
            compiled.append(_case(model, "training", "amp", large, short, compiled=1))
    ordered = []
    for part in (plain, precisions, variants, compiled):
        rng.shuffle(part)
        ordered += part
    unique = {tuple(case.items()): case for case in ordered}
    return list(unique.values())


def profiled_cases():
    """Per-kernel times of one configuration of every third model, eager and compiled."""
    chosen = list(MODELS)[::3]
    return [_case(model, mode, dtype, _batches(model)[-1], _sequences(model)[0], "eager" if dtype == "fp32" else "sdpa")
            for dtype, mode in (("fp32", "inference"), ("amp", "training"), ("bf16", "inference"))
            for model in chosen if mode == "inference" or model not in _LARGE]


def pair_cases():
    """Two processes on one GPU at once (time sliced)."""
    jobs = [("gpt2", "inference", "bf16", 8, 512), ("bert-base", "training", "amp", 8, 128),
            ("resnet-50", "training", "amp", 128, ""), ("tinyllama-1.1b", "inference", "bf16", 1, 512),
            ("dlrm-small", "training", "fp32", 2048, "")]
    keys = ("model", "mode", "dtype", "batch", "seq")
    return [{**dict(zip(keys, first)), **{f"other_{key}": value for key, value in zip(keys, second)}}
            for index, first in enumerate(jobs) for second in jobs[index:]]
