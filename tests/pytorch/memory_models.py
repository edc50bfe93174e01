"""Models, inputs and steps whose memory is measured (measure_memory.py) or counted (memory_reference.py).

A case is a row of a CSV file: model (a bundled config, types/LABEL: a family of tests/model_types with few layers, a model of
measure/kit/zoo.py, or the path of a config.json), mode
(inference, training), batch, seq (0 for images), dtype (fp32, bf16: weights and computation; amp: fp32 weights, bf16 autocast),
attention (eager, sdpa), checkpointing (none, full: every layer, selective: eager attention from the scores on), optimizer (none,
sgd-foreach, sgd-forloop, adamw-foreach, adamw-fused, adamw-forloop, muon-IMPL: beside AdamW of that implementation, adafactor, and
adam8bit and lion of bitsandbytes). Where the file has it, adapters (none, lora-R: adapters of rank R
by peft beside all linear layers, qlora-R: beside weights in bitsandbytes' NF4 with double quantization).
"""
import contextlib
import csv
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ["model", "mode", "batch", "seq", "dtype", "attention", "checkpointing", "optimizer"]
ADAPTERS = "adapters"


def read_cases(path):
    """The cases of a CSV file, batch and seq as numbers."""
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    if not rows or not set(COLUMNS) <= set(rows[0]):
        raise SystemExit(f"{path}: expected the columns {','.join(COLUMNS)}")
    return [{**{key: row[key] for key in COLUMNS}, ADAPTERS: row.get(ADAPTERS) or "none", "batch": int(row["batch"]),
             "seq": int(row["seq"])} for row in rows]


def config_of(name):
    """(class of Transformers, config as a dict) of a bundled model, "types/LABEL", a model of the zoo or a path."""
    if name.startswith("types/"):
        sys.path.insert(0, str(ROOT / "tests"))
        import memory_families
        architecture, config = memory_families.config_of(name)
        return architecture, json.loads(json.dumps(config), object_hook=_number)
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


def _number(fields):
    """Transformers' way to write infinity in a config."""
    return float(fields["__float__"]) if list(fields) == ["__float__"] else fields


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
    as_loaded(model, dtype)
    model.train(case["mode"] == "training")
    if case["checkpointing"] == "full":
        if not model.supports_gradient_checkpointing:
            raise ValueError(f"{name} has no gradient checkpointing")
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if case["checkpointing"] == "selective":
        repeat_attention(model)
    kind, _, rank = case.get(ADAPTERS, "none").partition("-")
    if kind == "qlora":
        quantize_linears(model, device)
    return model if kind == "none" else add_adapters(model, int(rank))


def as_loaded(model, dtype):
    """Parameters that a constructor makes in fp32 (of routers) in the dtype in which `from_pretrained(dtype=...)` has them."""
    import torch
    for part in model.modules():
        for name, old in list(part.named_parameters(recurse=False)):
            if old.is_floating_point() and old.dtype != dtype:
                setattr(part, name, torch.nn.Parameter(torch.empty(old.shape, dtype=dtype, device=old.device),
                                                       requires_grad=old.requires_grad))


def repeat_attention(model):
    """Eager attention is not saved for the backward pass, which computes it again."""
    from torch.utils.checkpoint import checkpoint
    from transformers import masking_utils, modeling_utils

    def repeated(module, *args, **kwargs):
        eager = sys.modules[type(module).__module__].eager_attention_forward
        return checkpoint(eager, module, *args, use_reentrant=False, **kwargs)

    modeling_utils.ALL_ATTENTION_FUNCTIONS["repeated"] = repeated
    masking_utils.ALL_MASK_ATTENTION_FUNCTIONS["repeated"] = masking_utils.eager_mask
    for module in model.modules():
        if getattr(module, "config", None) is not None:
            module.config._attn_implementation = "repeated"


def quantize_linears(model, device):
    """bitsandbytes' Linear4bit in place of all linear layers but the output layer, as transformers/integrations/bitsandbytes.py
    replaces them, with the state of a weight in NF4: bitsandbytes/functional.py, quantize_4bit (blocks of 64, whose maxima are
    quantized in blocks of 256)."""
    import bitsandbytes as bnb
    import torch
    from bitsandbytes.functional import QuantState
    head = model.get_output_embeddings()
    for module in list(model.modules()):
        if type(module) is not torch.nn.Linear or module is head:
            continue
        count, dtype = module.weight.numel(), module.weight.dtype
        blocks = -(-count // 64)

        def new(size, kind):
            return torch.empty(size, dtype=kind, device=device)

        state = QuantState(absmax=new(blocks, torch.uint8), shape=module.weight.shape, code=new(16, torch.float32), blocksize=64,
                           quant_type="nf4", dtype=dtype, offset=new((), torch.float32),
                           state2=QuantState(absmax=new(-(-blocks // 256), torch.float32), code=new(256, torch.float32),
                                             blocksize=256, dtype=torch.float32))
        # Made without its constructor: fake tensors can have no other subclass, such as Params4bit.
        weight = torch.nn.Parameter(new(((count + 1) // 2, 1), torch.uint8), requires_grad=False)
        weight.quant_state, weight.quant_type, weight.compress_statistics, weight.bnb_quantized = state, "nf4", True, True
        module.__class__, module.weight = bnb.nn.Linear4bit, weight
        module.compute_dtype, module.compute_type_is_set, module.quant_storage = dtype, True, torch.uint8
        module.quant_state, module.support_avx512bf16_for_cpu = state, False
    model.is_loaded_in_4bit = True


def add_adapters(model, rank):
    """peft's adapters, in fp32, beside all linear layers; all other parameters are frozen."""
    from unittest import mock

    import peft
    import torch

    def moved(module, *args, **kwargs):
        """`Module.to` for fake tensors, whose data cannot be exchanged: new parameters where something changes."""
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        for part in module.modules():
            for name, old in list(part.named_parameters(recurse=False)):
                to_device = old.device if device is None or device.type == old.device.type else device
                to_dtype = dtype if dtype and old.is_floating_point() else old.dtype
                if (to_device, to_dtype) != (old.device, old.dtype):
                    made = torch.empty(old.shape, dtype=to_dtype, device=to_device)
                    setattr(part, name, torch.nn.Parameter(made, requires_grad=old.requires_grad))
        return module

    config = peft.LoraConfig(r=rank, target_modules="all-linear", lora_dropout=0.0, task_type=peft.TaskType.CAUSAL_LM)
    with mock.patch.object(torch.nn.Module, "to", moved):
        return peft.get_peft_model(model, config)


def stored_beside(model):
    """What weights have in memory that is neither a parameter nor a buffer: the states of quantized ones."""
    for parameter in model.parameters():
        state = getattr(parameter, "quant_state", None)
        while state is not None:
            yield from (tensor for tensor in (state.absmax, state.code, state.offset) if tensor is not None)
            state = state.state2


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
    model = model.get_base_model() if hasattr(model, "get_base_model") else model
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
    if model.main_input_name == "input_values":
        return {"input_values": torch.randn(batch, seq, dtype=real, device=device)}
    if model.main_input_name == "input_features":
        inputs = {"input_features": torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions, dtype=real,
                                                device=device)}
    else:
        inputs = {"input_ids": tokens()}
    if hasattr(config, "vision_config") and hasattr(config, "text_config"):
        inputs["pixel_values"] = images()
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens()
    if training and ("LM" in name or "PreTraining" in name or "ForConditionalGeneration" in name or name.endswith("MTModel")):
        inputs["labels"] = tokens()
        if "PreTraining" in name:
            inputs["sentence_order_label" if name.startswith("Albert") else "next_sentence_label"] = ids(batch, below=2)
    return inputs


class Both:
    """Two optimizers that step one after the other."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()

    @property
    def state(self):
        return {parameter: state for optimizer in self.optimizers for parameter, state in optimizer.state.items()}


def hidden_matrices(model):
    """Weights of linear layers but the output layer's, as users of Muon choose them."""
    import torch
    from transformers.pytorch_utils import Conv1D
    output = model.get_output_embeddings()
    chosen = [module.weight for module in model.modules()
              if isinstance(module, (torch.nn.Linear, Conv1D)) and module is not output]
    return [weight for weight in chosen if output is None or weight is not output.weight]


def bitsandbytes_optimizer(kind, trained):
    """Without its kernels, which work in place."""
    import bitsandbytes
    from bitsandbytes.optim import optimizer as module
    for name in ("optimizer_update_32bit", "optimizer_update_8bit_blockwise"):
        setattr(module.F, name, lambda *args, **kwargs: None)
    module.sync_gpu = lambda tensor: None
    return (bitsandbytes.optim.Adam8bit if kind == "adam8bit" else bitsandbytes.optim.Lion)(trained, lr=1e-5)


def optimizer_of(model, case):
    """Over all trained parameters, with the implementation that the case names; None in inference."""
    import torch
    kind, _, implementation = case["optimizer"].partition("-")
    if case["mode"] != "training" or kind == "none":
        return None
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def adamw(parameters):
        return torch.optim.AdamW(parameters, lr=1e-5, foreach=implementation == "foreach", fused=implementation == "fused")

    if kind == "sgd":
        return torch.optim.SGD(trained, lr=1e-5, foreach=implementation != "forloop")
    if kind == "muon":
        matrices = hidden_matrices(model)
        own = {id(matrix) for matrix in matrices}
        return Both(torch.optim.Muon(matrices, lr=1e-5), adamw([one for one in trained if id(one) not in own]))
    if kind == "adafactor":
        return torch.optim.Adafactor(trained, lr=1e-5)
    if kind in ("adam8bit", "lion"):
        return bitsandbytes_optimizer(kind, trained)
    return adamw(trained)


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
