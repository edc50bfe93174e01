#!/usr/bin/env python3
"""Prints prefill and decode of language models on H100, as Markdown.

    research/accuracy/llm_table.py
"""
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# model, ranks, batch; parameters in billions and bytes of cache a token as the model cards or configs say
MODELS = [("llama-3-8b", 1, 32, 8.03, 131072), ("qwen3-32b", 2, 32, 32.8, 262144),
          ("mixtral-8x7b", 2, 32, 46.7, 131072), ("deepseek-v3", 8, 32, 671.0, 70272)]


def forecast(model: str, ranks: int, batch: int) -> dict:
    command = [str(ROOT / "build/release/tilecast"), "forecast", model, "--gpu", "H100", "--prompt", "1024", "--output", "256",
               "--batch", str(batch), "--tp", str(ranks), "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def milliseconds(e: dict) -> str:
    return f"{1e3 * e['seconds']:.3g} ({1e3 * e['low_s']:.3g} to {1e3 * e['high_s']:.3g})"


def limit(step: dict) -> str:
    name, share = max(step["limits"].items(), key=lambda item: item[1])
    return f"{name} {100 * share:.0f} %"


def main() -> int:
    print("| model | GPUs | weights | parameters (card) | cache a token (card), B | FLOPs a token / 2 x multiplied parameters "
          "| first token, ms | limit | per token, ms | limit | tokens/s | largest batch |")
    print("|---|--:|---|--:|--:|--:|--:|---|--:|---|--:|--:|")
    for model, ranks, batch, billions, cache in MODELS:
        f = forecast(model, ranks, batch)
        ratio = (f["flops_per_token"] - f["attention_flops_per_token"]) / (2 * f["multiplied_parameters"])
        print(f"| {model} | {ranks} | {f['dtype']} | {f['parameters'] / 1e9:.3f} G ({billions} G) "
              f"| {f['kv_bytes_per_token']} ({cache}) | {ratio:.4f} | {milliseconds(f['time_to_first_token'])} "
              f"| {limit(f['prefill'])} | {milliseconds(f['time_per_output_token'])} | {limit(f['decode'])} "
              f"| {f['tokens_per_s']:.0f} | {f['memory']['largest_batch']} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
