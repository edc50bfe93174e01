#!/usr/bin/env python3
"""Layers of tensor-parallel servers against measurements: Vidur's public profiles.

    research/accuracy/serving_layers.py build/release/tilecast VIDUR/data/profiling [--write]

Vidur measured the parts of a decoder layer (FP16) on one of 1 to 8 tensor-parallel ranks: compute/GPU/MODEL/mlp.csv,
and all-reduces: network/NODE/all_reduce.csv. For each model with gated activations, number of ranks and TOKENS
tokens in a step, the sum of the parts and of two all-reduces is compared with the same kernels of
`tilecast forecast --prompt TOKENS --tp RANKS` (all of a layer but attention and the cache). Times are medians;
all-reduces are interpolated in the logarithm of their size. The residual sums, which vLLM fuses with the norms, are
in the forecast alone.
--write replaces the table in docs/accuracy.md.
"""

import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import sections  # noqa: E402

BEGIN, END = "<!-- serving layers: begin -->", "<!-- serving layers: end -->"
GPUS = {"a40": ("nvidia-a40", None), "a100": ("nvidia-a100-sxm4-80gb", "a100_dgx"),
        "h100": ("nvidia-h100-sxm5-80gb", "h100_dgx")}
TOKENS = (64, 256, 1024, 2048, 4096)
PARTS = ("input_layernorm", "attn_pre_proj", "attn_rope", "attn_post_proj", "post_attention_layernorm",
         "mlp_up_proj", "mlp_act", "mlp_down_proj")
NOT_MEASURED = ("self_attn.attention", "self_attn.cache")


def config_of(row):
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": int(row["n_embd"]),
            "num_attention_heads": int(row["n_head"]), "num_key_value_heads": int(row["n_kv_head"]),
            "num_hidden_layers": 2, "intermediate_size": int(row["n_expanded_embd"]),
            "max_position_embeddings": 8192, "vocab_size": int(row["vocab_size"]), "hidden_act": "silu",
            "rms_norm_eps": 1e-5, "tie_word_embeddings": False}


def forecast_layer(program, config, gpu, ranks, tokens):
    """Milliseconds of the kernels of a layer: of the rank itself, of all-reduces."""
    run = subprocess.run(
        [program, "forecast", config, "--gpu", gpu, "--dtype", "fp16", "--software", "vllm", "--prompt", str(tokens),
         "--output", "1", "--tp", str(ranks), "--format", "json"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    own = exchanged = 0.0
    for kernel in json.loads(run.stdout)["kernels"]:
        name = kernel["name"]
        if kernel["phase"] != "prefill" or not name.startswith("layers.0.") or name.endswith(NOT_MEASURED):
            continue
        if name.endswith("all_reduce"):
            exchanged += 1e3 * kernel["latency_s"]
        else:
            own += 1e3 * kernel["latency_s"]
    return own, exchanged


def all_reduces(folder, node):
    """By ranks of one node: sorted (bytes, milliseconds)."""
    times = {}
    if node is None:
        return times
    with open(folder / "network" / node / "all_reduce.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["num_workers"] == row["devices_per_node"]:
                times.setdefault((int(row["num_workers"]), int(row["size"])), []).append(
                    float(row["time_stats.all_reduce.median"]))
    result = {}
    for (ranks, size), values in sorted(times.items()):
        result.setdefault(ranks, []).append((size, statistics.median(values)))
    return result


def interpolate(points, size):
    below = [p for p in points if p[0] <= size]
    above = [p for p in points if p[0] >= size]
    if not below or not above:
        return None
    (x0, y0), (x1, y1) = below[-1], above[0]
    part = 0 if x0 == x1 else math.log(size / x0) / math.log(x1 / x0)
    return math.exp(math.log(y0) + part * math.log(y1 / y0))


def main():
    args = [a for a in sys.argv[1:] if a != "--write"]
    if len(args) != 2:
        sys.exit(__doc__)
    program, folder = args[0], pathlib.Path(args[1])
    lines = ["| GPU | ranks | layers | forecast / measured, median | mean error | with all-reduces | median | mean error |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    with tempfile.TemporaryDirectory() as work:
        config = pathlib.Path(work) / "config.json"
        for name, (gpu, node) in GPUS.items():
            reduces = all_reduces(folder, node)
            own, whole = {}, {}
            for path in sorted((folder / "compute" / name).glob("*/*/mlp.csv")):
                with open(path, encoding="utf-8") as file:
                    rows = [r for r in csv.DictReader(file)
                            if int(r["num_tokens"]) in TOKENS and r["use_gated_mlp"] == "True"]
                for row in rows:
                    ranks, tokens = int(row["num_tensor_parallel_workers"]), int(row["num_tokens"])
                    config.write_text(json.dumps(config_of(row)))
                    computed, exchanged = forecast_layer(program, str(config), gpu, ranks, tokens)
                    measured = sum(float(row[f"time_stats.{part}.median"]) for part in PARTS)
                    own.setdefault(ranks, []).append(computed / measured)
                    reduce = interpolate(reduces.get(ranks, []), tokens * int(row["n_embd"]) * 2)
                    if reduce is not None:
                        whole.setdefault(ranks, []).append((computed + exchanged) / (measured + 2 * reduce))
            for ranks, ratios in sorted(own.items()):
                cells = [gpu, ranks, len(ratios), f"{statistics.median(ratios):.2f}",
                         f"{100 * statistics.mean(abs(r - 1) for r in ratios):.1f} %"]
                both = whole.get(ranks, [])
                cells += [len(both), f"{statistics.median(both):.2f}",
                          f"{100 * statistics.mean(abs(r - 1) for r in both):.1f} %"] if both else ["-", "", ""]
                lines.append("| " + " | ".join(str(c) for c in cells) + " |")
                print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if "--write" in sys.argv:
        sections.replace("docs/accuracy.md", BEGIN, END, text)


if __name__ == "__main__":
    main()
