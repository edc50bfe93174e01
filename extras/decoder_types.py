#!/usr/bin/env python3
"""The table of decoders' parameters and FLOPs that tests/decoder_types_test.cc compares Tilecast with.

The default config of each model type of transformers is instantiated on PyTorch's meta device (nothing is
computed or loaded). torch.utils.flop_counter counts a forward pass with eager attention. Not counted: the
tables of rotary angles, and within recurrent layers (Mamba-2, gated delta nets) everything but their
linear layers, for transformers' slow fallback runs other products than the libraries' kernels. A line of
tests/decoder_types.jsonl is one type:
    {"label", "type", "class", "batch", "seq", "parameters", "forward_flops", "training_flops", "config"}
`forward_flops` is null where transformers does other work than the model needs. `training_flops` is null: experts and scans have no products in the backward pass that PyTorch counts.
Needs torch and transformers.

    extras/decoder_types.py [TYPE...]     rewrites the table, or only the lines of some types
"""
import json
import sys
import warnings
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "tests" / "decoder_types.jsonl"
TYPES = """afmoe arcee bamba biogpt bloom codegen cohere cohere2 cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4
ernie4_5 ernie4_5_moe exaone4 exaone_moe falcon flex_olmo gemma gemma2 gemma3_text gemma4_text glm glm4 glm4_moe glm4_moe_lite
glm_moe_dsa gpt2 gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granite_swa granitemoe granitemoe_swa granitemoehybrid
granitemoeshared helium hy_v3 jais2 llama llama4_text mamba2 mimo_v2_flash minimax_m2 ministral3 mistral mixtral mpt nanochat
nemotron nemotron_h olmo olmo2 olmo3 olmoe opt persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_5_moe_text qwen3_5_text
qwen3_moe qwen3_next seed_oss smollm3 solar_open stablelm starcoder2 vaultgemma xglm youtu""".split()
# Fields that a default config lacks, or in which it contradicts itself.
FIELDS = {"deepseek_v2": {"num_experts_per_tok": 6}, "nemotron": {"num_key_value_heads": 8},
          "glm4_moe": {"head_dim": 128}}
# Fields of all models that say nothing about their shape.
NOISE = ("transformers_version", "_attn_implementation", "id2label", "label2id", "dtype", "_name_or_path",
         "initializer_range", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id", "problem_type",
         "output_attentions", "output_hidden_states", "return_dict", "chunk_size_feed_forward")
# transformers computes every expert for every token.
NOT_COUNTED = ("llama4_text",)
BATCH, SEQ = 2, 128


def is_recurrent(module) -> bool:
    return hasattr(module, "conv1d") and hasattr(module, "A_log")


def counted(model) -> int:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    # A ready mask: making one looks at values, which the meta device does not have.
    inputs = {"input_ids": torch.zeros(BATCH, SEQ, dtype=torch.long, device="meta"), "use_cache": False,
              "attention_mask": torch.zeros(BATCH, 1, SEQ, SEQ, device="meta")}
    kind = model.config.model_type
    if kind in ("opt", "biogpt", "xglm"):  # which would count positions from the mask
        inputs["position_ids"] = inputs["input_ids"]
    if kind in ("bloom", "mpt", "falcon", "mamba2", "xglm"):
        inputs["attention_mask"] = None
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(**{k: v for k, v in inputs.items() if v is not None})
    by_module = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    root = type(model).__name__
    total = by_module["Global"]
    for name, module in model.named_modules():
        if name.endswith("rotary_emb") and "." in name:
            total -= by_module.get(f"{root}.{name}", 0)
        if is_recurrent(module):
            total -= by_module.get(f"{root}.{name}", 0)
            for part, child in module.named_children():
                if isinstance(child, torch.nn.Linear):
                    total += by_module.get(f"{root}.{name}.{part}", 0)
    return total


def row(name: str) -> dict:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **FIELDS.get(name, {}))
    written = {k: v for k, v in json.loads(config.to_json_string(use_diff=False)).items() if k not in NOISE}
    config._attn_implementation = "eager"
    config._experts_implementation = "batched_mm"
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.eval()
    return {"label": name, "type": name, "class": type(model).__name__, "batch": BATCH, "seq": SEQ,
            "parameters": sum(p.numel() for p in model.parameters()), "training_flops": None,
            "forward_flops": None if name in NOT_COUNTED else counted(model), "config": written}


def main() -> int:
    warnings.filterwarnings("ignore")
    known = {}
    if TABLE.exists():
        known = {r["label"]: r for r in map(json.loads, TABLE.read_text().splitlines())}
    for name in sys.argv[1:] or TYPES:
        try:
            known[name] = row(name)
            print(f"{name:22} {known[name]['parameters']:15,} {known[name]['forward_flops']:.6e}", flush=True)
        except Exception as error:  # the others are still counted
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:300]}", file=sys.stderr)
    TABLE.write_text("".join(json.dumps(known[name]) + "\n" for name in TYPES if name in known))
    return 0


if __name__ == "__main__":
    sys.exit(main())
