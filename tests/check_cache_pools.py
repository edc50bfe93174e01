#!/usr/bin/env python3
"""The memory that a server gives its cache, against the logs of vLLM.

    tests/check_cache_pools.py <tilecast> kv_pools.csv [--meta meta.json] [--max-percent X --mean-percent X]

kv_pools.csv has the columns gpu, model, tp, gpu_memory_utilization, kv_pool_gib_per_gpu (vLLM 0.19 on H100, from the accuracy report
of llm-d-planner; other settings are not recorded, so vLLM's defaults are assumed). --meta is the file that LLMServingSim's
bench writes of a server: its settings and its number of blocks. Prints forecast and measured cache of each row, mean and
worst. Exit status 1 if an error passes a limit, or if there is nothing to compare.
"""
import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

GIB = 2**30
# Names of Hugging Face whose sizes a bundled model has.
MODELS = {"Llama-3.1-8B": "llama-3.1-8b", "Qwen2.5-7B": "qwen2.5-7b", "Qwen3-8B": "qwen3-8b", "Phi-4": "phi-4",
          "DeepSeek-V2-Lite": "deepseek-v2-lite", "Qwen3-30B-A3B": "qwen3-30b-a3b", "Mixtral-8x7B": "mixtral-8x7b"}


def pool(tilecast, model, gpu, utilization, options):
    """The forecast's cache_pool, or an error."""
    command = [tilecast, "forecast", MODELS[model.split("/")[-1]], "--software", "vllm", "--gpu", gpu, "--dtype", "bf16",
               "--gpu-memory-utilization", str(utilization), "--concurrency", "1", "--requests", "2", "--prompt", "100", "--output", "10",
               "--format", "json", *options]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return json.loads(run.stdout)["cache_pool"]


def rows_of_table(tilecast, path):
    """Name, forecast and measured GiB of each row."""
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            # vLLM's defaults on GPUs of 70 GiB and more, of `vllm serve`.
            options = ["--tp", row["tp"], "--max-num-seqs", "1024", "--max-num-batched-tokens", "8192"]
            found = pool(tilecast, row["model"], row["gpu"], row["gpu_memory_utilization"], options)
            yield f"{row['model']} x{row['tp']}", found["cache_bytes"] / GIB, float(row["kv_pool_gib_per_gpu"]), "GiB"


def row_of_server(tilecast, path):
    """Name, forecast and measured blocks; again with captured graphs in the budget, which the log does not rule out."""
    meta = json.loads(Path(path).read_text(encoding="utf-8"))
    asked = meta["engine_kwargs"]
    options = ["--tp", str(asked["tensor_parallel_size"])]
    for name in ("max_num_seqs", "max_num_batched_tokens", "max_model_len"):
        options += ["--" + name.replace("_", "-"), str(asked[name])]
    gpu = meta["hardware"]["device_name"].replace("NVIDIA GeForce ", "")
    measured = meta["kv_cache"]["num_gpu_blocks"]
    for name, more in ((meta["model"].split("/")[-1], []), ("graphs counted", ["--count-cuda-graphs", "on"])):
        found = pool(tilecast, meta["model"], gpu, meta["kv_cache"]["gpu_memory_utilization"], options + more)
        yield f"{name}, {gpu}", found["blocks"], measured, "blocks"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilecast")
    parser.add_argument("table")
    parser.add_argument("--meta")
    parser.add_argument("--max-percent", type=float, default=3.0, help="of each row of the table [3]")
    parser.add_argument("--mean-percent", type=float, default=1.0, help="of the table [1]")
    args = parser.parse_args()
    rows = list(rows_of_table(args.tilecast, args.table))
    errors = []
    servers = list(row_of_server(args.tilecast, args.meta)) if args.meta else []
    for name, forecast, measured, unit in rows + servers:
        percent = 100 * (forecast / measured - 1)
        print(f"{name:24} {forecast:9.2f} {measured:9.2f} {unit:6} {percent:+6.2f} %")
        if unit == "GiB":
            errors.append(abs(percent))
    if not errors:
        sys.exit("nothing to compare")
    mean, worst = sum(errors) / len(errors), max(errors)
    print(f"{len(errors)} caches: mean {mean:.2f} %, worst {worst:.2f} %")
    return 1 if mean > args.mean_percent or worst > args.max_percent else 0


if __name__ == "__main__":
    sys.exit(main())
