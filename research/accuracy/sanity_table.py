#!/usr/bin/env python3
"""Prints forecasts of kernels on GPUs that nobody measured, as Markdown: what of the data sheet they reach.

    research/accuracy/sanity_table.py
"""
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GPUS = ["GB300", "H20", "RTX PRO 6000", "MI300X"]
FP8 = ["--scheme", "fp8"]
HEADS = ["--heads", "32", "--kv-heads", "8", "-k", "128", "--software", "vllm"]
EXPERTS = ["experts", "--experts", "128", "--chosen", "8", "-n", "1536", "-k", "4096", "--software", "trtllm"]


def sizes(m: int, n: int, k: int) -> list:
    return ["-m", str(m), "-n", str(n), "-k", str(k), "--software", "vllm"]


# name, arguments, large
KERNELS = [
    ("product 8192 x 8192 x 8192, bf16", ["gemm", *sizes(8192, 8192, 8192)], True),
    ("product 16384 x 16384 x 8192, bf16", ["gemm", *sizes(16384, 16384, 8192)], True),
    ("product 8192 x 28672 x 8192, bf16", ["gemm", *sizes(8192, 28672, 8192)], True),
    ("product 2048 x 14336 x 4096, bf16", ["gemm", *sizes(2048, 14336, 4096)], True),
    ("product 512 x 4096 x 4096, bf16", ["gemm", *sizes(512, 4096, 4096)], False),
    ("product 16 x 8192 x 8192, bf16", ["gemm", *sizes(16, 8192, 8192)], False),
    ("product 1 x 28672 x 8192, bf16", ["gemm", *sizes(1, 28672, 8192)], True),
    ("product 1 x 4096 x 4096, bf16", ["gemm", *sizes(1, 4096, 4096)], False),
    ("product 8192 x 8192 x 8192, fp8", ["quantized_linear", *FP8, *sizes(8192, 8192, 8192)], True),
    ("product 16384 x 16384 x 8192, fp8", ["quantized_linear", *FP8, *sizes(16384, 16384, 8192)], True),
    ("product 16 x 28672 x 8192, fp8", ["quantized_linear", *FP8, *sizes(16, 28672, 8192)], False),
    ("product 8192 x 8192 x 8192, int4 weights", ["quantized_linear", "--scheme", "int4_wo", *sizes(8192, 8192, 8192)], True),
    ("prefill 4 x 8192 tokens", ["attention", "--causal", "--batch", "4", "-m", "8192", "-n", "8192", *HEADS], True),
    ("prefill 1 x 1024 tokens", ["attention", "--causal", "--batch", "1", "-m", "1024", "-n", "1024", *HEADS], False),
    ("encoder 16 x 2048 tokens", ["attention", "--batch", "16", "-m", "2048", "-n", "2048", "--heads", "16", "-k", "64",
                                  "--software", "vllm"], False),
    ("decode 128 x 8192 cached", ["cached_attention", "--batch", "128", "-m", "1", "-n", "8192", *HEADS], True),
    ("decode 8 x 1024 cached", ["cached_attention", "--batch", "8", "-m", "1", "-n", "1024", *HEADS], False),
    ("experts, 16384 tokens, bf16", [*EXPERTS, "-m", "16384"], True),
    ("experts, 64 tokens, bf16", [*EXPERTS, "-m", "64"], True),
    ("experts, 64 tokens, fp8", [*EXPERTS, "-m", "64", *FP8], True),
]


def forecast(gpu: str, arguments: list) -> dict:
    command = [str(ROOT / "build/release/tilecast"), "kernel", *arguments, "--gpu", gpu, "--dtype", "bf16", "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["kernels"][0]


def main() -> int:
    outside = 0
    print("| kernel | " + " | ".join(GPUS) + " |")
    print("|---|" + "--:|" * len(GPUS))
    for name, arguments, large in KERNELS:
        cells = []
        for gpu in GPUS:
            k = forecast(gpu, arguments)
            percent = 100 * k["utilization_ratio"]
            outside += large and not 45 <= percent <= 95
            seconds = k["latency_s"]
            text = f"{1e6 * seconds:.3g} us" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"
            cells.append(f"{text}, {percent:.0f} %{' *' if k['extrapolated'] else ''}")
        print(f"| {name}{' (large)' if large else ''} | " + " | ".join(cells) + " |")
    print(f"\n* extrapolated; {outside} of {4 * sum(large for *_, large in KERNELS)} large ones lie outside 45 to 95 %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
