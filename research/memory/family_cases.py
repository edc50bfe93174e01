#!/usr/bin/env python3
"""The cases of tests/pytorch/memory_cases.csv that hold each family of the importer against PyTorch's memory.

    research/memory/family_cases.py > cases.csv
    tests/pytorch/memory_reference.py --cases cases.csv -o reference.csv        counts them (torch, transformers, g++)
    tests/check_memory.py build/release/tilecast --reference reference.csv      compares; --table writes the table of families.md

Four cases for each line of tests/model_types: training and inference, FP32 and bf16, each once with eager and once with fused attention.
Left out: models with layers of a recurrent state (transformers computes them step by step where the kernels of mamba-ssm and
flash-linear-attention are missing, as on a CPU), and vision towers beside decoders. Needs Python's standard library only.
"""
import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import memory_families  # noqa: E402

COLUMNS = ("model", "mode", "batch", "seq", "dtype", "attention", "checkpointing", "optimizer", "adapters")
RECURRENT = ("bamba", "mamba2", "nemotron_h", "granitemoehybrid", "qwen3_next", "qwen3_5", "kimi_linear")
VARIANTS = (("inference", "bf16", "eager"), ("inference", "fp32", "sdpa"), ("training", "bf16", "sdpa"), ("training", "fp32", "eager"))
# Sizes at which activations are a visible part of the peak: tokens of decoders; of encoders; images.
DECODER, ENCODER, IMAGES = (2, 1024), (8, 512), (16, 0)
SAMPLES = 8000  # of the waves that some rows of tests/model_types have


def size_of(row):
    """(batch, seq), at most as long as the model's positions."""
    if row["seq"] == 0:
        return IMAGES
    batch, seq = DECODER if row["training_flops"] is None else ENCODER
    if row["seq"] >= SAMPLES:
        return batch, row["seq"]
    if "vision_config" in row["config"]:
        return batch, row["seq"]
    positions = (row["config"].get(name) for name in ("max_position_embeddings", "max_target_positions"))
    return batch, min([seq, *(most for most in positions if most)])


def main():
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for label, row in memory_families.rows().items():
        if label.startswith(RECURRENT) or ("text_config" in row["config"] and row["type"] not in ("clip", "siglip", "siglip2")):
            continue
        batch, seq = size_of(row)
        for mode, dtype, attention in VARIANTS:
            optimizer = "none" if mode == "inference" else "adamw-fused"
            writer.writerow((memory_families.PREFIX + label, mode, batch, seq, dtype, attention, "none", optimizer, "none"))


if __name__ == "__main__":
    main()
