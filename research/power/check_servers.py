#!/usr/bin/env python3
"""Power of saturated vLLM servers (ML.ENERGY) against forecasts: check_servers.py TILECAST mlenergy_llm.csv.xz

Each row is forecast as one static batch of the mean number of running sequences, prompts of 300 tokens. The power is that of the
forecast, with its energy above idle spread over the measured time between tokens instead of its own; without that, its own.
"""

import csv
import json
import lzma
import subprocess
import sys
from statistics import median

MODELS = {"Qwen/Qwen3-8B": "qwen3-8b", "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b", "meta-llama/Llama-3.1-405B-Instruct": "llama-3.1-405b",
          "meta-llama/Llama-3.1-405B-Instruct-FP8": "llama-3.1-405b", "Qwen/Qwen3-235B-A22B-Instruct-2507": "qwen3-235b-a22b",
          "Qwen/Qwen3-235B-A22B-Thinking-2507": "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8": "qwen3-235b-a22b",
          "Qwen/Qwen3-235B-A22B-Thinking-2507-FP8": "qwen3-235b-a22b", "meta-llama/Llama-4-Scout-17B-16E-Instruct": "llama-4-scout"}
TASKS = ("lm-arena-chat", "gpqa", "sourcegraph-fim")


def forecast(program, row):
    gpus = int(row["gpus"])
    batch = max(1, round(float(row["batch_mean"])))
    command = [program, "forecast", MODELS[row["model"]], "--gpu", row["gpu"], "--software", "vllm", "--dtype", row["dtype"], "--tp", str(gpus),
               "--prompt", "300", "--output", str(max(2, round(float(row["output_mean"])))), "--batch", str(batch), "--format", "json"]
    if int(row["ep"] or 1) > 1:
        command += ["--ep", str(gpus)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    program, path = sys.argv[1:3]
    with lzma.open(path, "rt") as text:
        rows = [row for row in csv.DictReader(text) if row["model"] in MODELS and row["task"] in TASKS and row["host_bound"] == "0"]
    errors = {}
    for row in rows:
        f = forecast(program, row)
        if f is None or f["power"] is None:
            print("not forecast:", row["model"], row["gpu"], row["gpus"])
            continue
        power, step_s = f["power"], f["time_per_output_token"]["seconds"]
        measured_w = float(row["power_w"]) / int(row["gpus"])
        idle = power["idle_w"]
        # Between tokens a client also waits for prompts of others: batch over the rate of tokens.
        measured_s = float(row["batch_mean"]) / float(row["output_tokens_per_s"])
        given = min(power["limit_w"], idle + (power["power_w"] - idle) * min(1.0, step_s / measured_s))
        key = row["gpu"].split("-")[1]
        errors.setdefault(key, []).append((given / measured_w - 1, power["power_w"] / measured_w - 1))
        if "-v" in sys.argv:
            print(row["model"], key, row["gpus"], row["batch_mean"], f"{measured_w:.0f} W, {given:.0f}, {power['power_w']:.0f}")
    for key, pairs in errors.items():
        for name, of in (("given the measured time", 0), ("in the forecast's time", 1)):
            signed = [pair[of] for pair in pairs]
            print(f"{key}: {len(pairs)} rows, power {name}: median error {100 * median(map(abs, signed)):.1f} %, bias {100 * median(signed):+.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
