#!/usr/bin/env python3
"""Compares Tilecast's FLOPs of matrix products with PyTorch's flop counter.

Models are built from the bundled configs on PyTorch's meta device: nothing is computed or loaded.
Needs torch and transformers. Exit status 1 where a configuration differs by more than 1 %.

    tests/pytorch/count_flops.py
"""
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# model, batch, seq, training
CONFIGURATIONS = [
    ("bert", 4, 512, False), ("bert", 2, 128, True), ("bert-base", 8, 384, False), ("bert_large", 8, 512, False),
    ("bert_large", 2, 512, True), ("gpt2_med", 2, 1024, False), ("gpt2_large", 4, 1024, False),
    ("gpt2_large", 1, 1024, True), ("gpt2_xl", 1, 512, True), ("gpt3_xl", 2, 2048, False), ("gpt3_27", 8, 2048, False),
    ("gpt3_67", 1, 2048, False), ("gpt3_13", 1, 1024, True), ("opt_13", 2, 2048, False), ("opt_13", 1, 1024, True),
    ("t5-large", 2, 512, False), ("t5-large", 1, 256, True), ("llama-2-7b", 1, 1024, False),
    ("llama-3-8b", 2, 2048, True), ("mistral-7b", 1, 4096, False), ("qwen2-7b", 4, 512, False),
    ("qwen2-7b", 1, 2048, True), ("qwen3-32b", 1, 512, False), ("gemma-2-9b", 1, 1024, False),
    ("gemma-3-1b", 1, 1024, True), ("phi-3-mini", 1, 1024, True), ("phi-4", 1, 512, False),
    ("glm-4-9b", 1, 512, False), ("falcon-7b", 1, 512, False), ("llama-3.2-1b", 2, 1024, True), ("vit-base", 8, 0, True),
    ("clip-vit-large", 4, 0, False), ("whisper-large-v3", 1, 448, False),
]
MATRIX_OPS = {"linear", "gemm", "matmul", "conv2d", "conv2d_input_backward", "conv2d_weight_backward"}
IMAGES = {"vit", "clip"}  # their length follows from the config


def counted(config: dict, batch: int, seq: int, training: bool) -> int:
    """FLOPs by torch.utils.flop_counter of a forward pass, or forward and backward."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    # In fp32, as the inputs: FLOPs are the same in all dtypes.
    left_out = ("model_type", "architectures", "torch_dtype", "torch_dtype_source")
    fields = {k: v for k, v in config.items() if k not in left_out}
    settings = transformers.AutoConfig.for_model(config["model_type"], **fields)
    settings._attn_implementation = "eager"
    with torch.device("meta"):
        model = getattr(transformers, config["architectures"][0])._from_config(settings)
        ids = torch.zeros(batch, seq or 77, dtype=torch.long)
    model.train(training)
    inputs = {"input_ids": ids}
    if config["model_type"] in IMAGES:
        vision = config.get("vision_config", config)
        inputs = {"pixel_values": torch.zeros(batch, 3, vision["image_size"], vision["image_size"], device="meta")}
        if config["model_type"] == "clip":
            inputs["input_ids"] = ids
    elif config["model_type"] == "whisper":
        inputs = {"input_features": torch.zeros(batch, config["num_mel_bins"], 3000, device="meta"),
                  "decoder_input_ids": ids, "use_cache": False,
                  "decoder_attention_mask": torch.zeros(batch, 1, seq, seq, device="meta"),
                  "decoder_position_ids": torch.zeros(seq, dtype=torch.long, device="meta")}
    elif config["model_type"] == "t5":
        inputs["decoder_input_ids"] = ids
    elif config["model_type"] != "bert":
        # A ready mask: making one looks at values, which the meta device does not have.
        inputs["attention_mask"] = torch.zeros(batch, 1, seq, seq, device="meta")
        if config["model_type"] == "opt":  # which would count positions from the mask
            inputs["position_ids"] = ids
    if config["model_type"] not in ("bert", *IMAGES):
        inputs["use_cache"] = False
    counter = FlopCounterMode(display=False)
    with counter, torch.set_grad_enabled(training):
        output = model(**inputs)
        if training:
            tensors = [t for t in output.to_tuple() if torch.is_tensor(t) and t.requires_grad]
            sum(t.sum() for t in tensors).backward()
    return counter.get_total_flops()


def forecast(model: str, batch: int, seq: int, training: bool) -> int:
    command = [str(ROOT / "build/release/tilecast"), "forecast", model, "--gpu", "A100", "--batch", str(batch),
               *(["--seq", str(seq)] if seq else []), "--mode", "training" if training else "inference",
               "--dtype", "fp32", "--attention", "eager", "--format", "json", *(["--optimizer", "none"] if training else [])]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return sum(k["flops"] * k["count"] for k in result["kernels"] if k["op"] in MATRIX_OPS)


def main() -> int:
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}; install torch and transformers to compare FLOPs")
        return 0
    worst = 0.0
    print(f"{'model':12} {'batch':>5} {'seq':>5} {'mode':9} {'PyTorch':>12} {'Tilecast':>12} {'difference':>10}")
    for model, batch, seq, training in CONFIGURATIONS:
        config = json.loads((ROOT / "data/models" / f"{model}.json").read_text())
        theirs, ours = counted(config, batch, seq, training), forecast(model, batch, seq, training)
        difference = 100 * (ours / theirs - 1)
        worst = max(worst, abs(difference))
        print(f"{model:12} {batch:5} {seq:5} {'training' if training else 'inference':9} {theirs:12.4e} "
              f"{ours:12.4e} {difference:+9.3f} %", flush=True)
    print(f"{len(CONFIGURATIONS)} configurations, worst difference {worst:.3f} %")
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
