"""Models, inputs and steps whose memory is measured (measure_memory.py) or counted (memory_reference.py).

A case is a row of a CSV file: model (a bundled config, a model of measure/kit/zoo.py, or the path of a config.json), mode
(inference, training), batch, seq (0 for images), dtype (fp32, bf16: weights and computation; amp: fp32 weights, bf16 autocast),
attention (eager, sdpa), checkpointing (none, full: every layer), optimizer (none, sgd, adamw-foreach, adamw-fused, adamw-forloop).
"""
import contextlib
import csv
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
ROOT = Path(__file__).resolve().parent.parent
COLUMNS = ["model", "mode", "batch", "seq", "dtype", "attention", "checkpointing", "optimizer"]


def read_cases(path):
    """The cases of a CSV file, batch and seq as numbers."""
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    if not rows or not set(COLUMNS) <= set(rows[0]):
        raise SystemExit(f"{path}: expected the columns {','.join(COLUMNS)}")
    return [{**{key: row[key] for key in COLUMNS}, "batch": int(row["batch"]), "seq": int(row["seq"])} for row in rows]


def config_of(name):
    """(class of Transformers, config as a dict) of a bundled model, a model of the zoo or a path."""
    path = Path(name) if name.endswith(".json") else ROOT / "data" / "models" / f"{name}.json"
    if path.exists():
        config = json.loads(path.read_text())
        return config["architectures"][0], config
    sys.path.insert(0, str(ROOT / "measure"))
    from kit import zoo
    if name not in zoo.MODELS and name not in zoo.TINY:
        raise SystemExit(f"model '{name}': neither {path}, nor a model of measure/kit/zoo.py")
    kind, config = zoo.config_of(name)
    if kind not in zoo.AUTO_CLASSES:
        raise SystemExit(f"model '{name}': a '{kind}' is no model of Transformers")
    return zoo.AUTO_CLASSES[kind], config


def build(case, device, shrink=False):
    """The model on `device` with random weights. `shrink` makes every size tiny, for a dry run."""
    import torch
    import transformers
    name, fields = config_of(case["model"])
    if shrink:
        fields = small(fields)
    config = transformers.AutoConfig.for_model(fields["model_type"],
                                               **{k: v for k, v in fields.items() if k not in ("model_type", "architectures")})
    config.use_cache = False
    dtype = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
    options = {"attn_implementation": case["attention"]} if case["attention"] else {}
    maker = getattr(transformers, name)
    with torch.device(device):
        make = maker.from_config if name.startswith("Auto") else maker._from_config
        model = make(config, dtype=dtype, **options)
    model.train(case["mode"] == "training")
    if case["checkpointing"] == "full":
        if not model.supports_gradient_checkpointing:
            raise ValueError(f"{name} has no gradient checkpointing")
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def small(fields):
    """The same config with few layers and narrow ones."""
    limits = {"num_hidden_layers": 2, "n_layer": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
              "num_decoder_layers": 2, "vocab_size": 128, "hidden_size": 64, "n_embd": 64, "d_model": 64,
              "intermediate_size": 128, "ffn_dim": 128, "d_ff": 128, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
              "word_embed_proj_dim": 64, "num_attention_heads": 4, "n_head": 4, "num_heads": 4, "encoder_attention_heads": 4,
              "decoder_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "d_kv": 16, "n_positions": 1024,
              "max_position_embeddings": 1024}
    changed = {k: min(v, limits[k]) if isinstance(v, int) and k in limits else v for k, v in fields.items()}
    changed.update(pad_token_id=0, bos_token_id=0, eos_token_id=0, decoder_start_token_id=1)
    if fields["model_type"] == "gemma3_text" and "layer_types" in fields:
        changed["layer_types"] = fields["layer_types"][:2]
    return changed


def inputs_of(model, case, device):
    """Keyword arguments of the model, with labels in training where the model makes its loss of them."""
    import torch
    config, name = model.config, type(model).__name__
    batch, seq = case["batch"], case["seq"]
    real = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
    training = case["mode"] == "training"

    def ids(*shape, below):
        return torch.randint(0, below, shape, device=device)

    def tokens():
        return ids(batch, seq, below=config.get_text_config().vocab_size)

    def images():
        vision = getattr(config, "vision_config", config)
        side = getattr(vision, "image_size", 224)
        return torch.randn(batch, getattr(vision, "num_channels", 3), side, side, dtype=real, device=device)

    if model.main_input_name == "pixel_values":
        labels = {"labels": ids(batch, below=config.num_labels)} if training and "Classification" in name else {}
        return {"pixel_values": images(), **labels}
    if model.main_input_name == "input_features":
        inputs = {"input_features": torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions, dtype=real,
                                                device=device)}
    else:
        inputs = {"input_ids": tokens()}
    if hasattr(config, "vision_config") and hasattr(config, "text_config"):
        inputs["pixel_values"] = images()
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens()
    if training and ("LM" in name or "PreTraining" in name or "ForConditionalGeneration" in name):
        inputs["labels"] = tokens()
        if "PreTraining" in name:
            inputs["next_sentence_label"] = ids(batch, below=2)
    return inputs


def optimizer_of(model, case):
    """AdamW or SGD over all parameters, with the implementation that the case names; None in inference."""
    import torch
    kind, _, implementation = case["optimizer"].partition("-")
    if case["mode"] != "training" or kind == "none":
        return None
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=1e-5, foreach=True)
    return torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=implementation == "foreach",
                             fused=implementation == "fused")


def autocast_of(case, device):
    """Autocast to bf16 where the case asks for it, else nothing."""
    import torch
    return torch.autocast(device, torch.bfloat16) if case["dtype"] == "amp" else contextlib.nullcontext()


def backward(output):
    """From the loss, or from the model's outputs with gradients that share their memory (so they cost nothing)."""
    import torch
    loss = getattr(output, "loss", None)
    if loss is not None:
        loss.backward()
        return
    heads = [t for t in output.to_tuple() if torch.is_tensor(t) and t.requires_grad]
    torch.autograd.backward(heads, [t.detach() for t in heads])
