#!/usr/bin/env python3
"""Fits what only servers show of power to ML.ENERGY's rows, and judges each GPU left out: fit_servers.py TILECAST mlenergy_llm.csv.xz

Power of each row is that of `tilecast evaluate`. Two constants of data/laws/power.json are fitted on top of it: `converted_experts_share`,
for the share of the time in which experts in FP8 by blocks run, and `warm_share`, for the share in which any kernel does. The constants in
force are taken off first. Shares are those of a static batch of the mean number of running sequences.
"""

import csv
import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "research/servers/settings.json"
LAW = ROOT / "data/laws/power.json"
NAMES = ("converted_experts_share", "warm_share")
# Boards draw so much of their limit at most (held_share, rounded).
HELD = 0.97


def answer(command):
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def model_of(name, models, folder):
    """A bundled model, or the file of a config in the settings."""
    model = models.get(name, name.split("/")[-1].lower())
    if not isinstance(model, dict):
        return model
    path = Path(folder) / name.replace("/", "--") / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(model), encoding="utf-8")
    return str(path)


def shares(program, point, row, models, folder):
    """Of the time in which as many tokens are written: in experts in FP8 by blocks, and in any kernel."""
    dp = int(row["dp"])
    batch = dp * max(1, round(float(row["batch_mean"]) / dp))
    options = dict(option.split("=", 1) for option in point["options"].split())
    dtype = options.get("dtype", "fp8_block" if row["dtype"] == "fp8" and "Llama" not in row["model"] else row["dtype"])
    f = answer([program, "forecast", model_of(row["model"], models, folder), "--gpu", row["gpu"], "--software", "vllm", "--software-version", row["version"],
                "--dtype", dtype, "--tp", row["tp"], "--dp", row["dp"], "--ep", row["ep"], "--prompt", point["prompt"],
                "--output", str(max(2, round(float(row["output_mean"])))), "--batch", str(batch)])
    output = float(row["output_mean"])
    experts = busy = 0.0
    for phase, count in (("decode", output), ("prefill", 1)):
        for kernel in f[phase]["kernels"]:
            seconds = count * kernel["count"] * kernel["latency_s"]
            busy += seconds
            experts += seconds if kernel["op"] == "experts" and dtype == "fp8_block" else 0
    elapsed = batch * output / (point["tokens_per_s_per_gpu"] * int(row["gpus"]))
    return min(1.0, experts / elapsed), min(1.0, busy / elapsed)


def fit(shares_of, base, measured, limit):
    """Least absolute relative errors, by weights; no constant is below 0."""
    constants = np.zeros(2)
    weight = np.ones(len(base))
    for _ in range(60):
        scale = weight * limit / measured
        rest = (measured - base) / limit
        a = shares_of * scale[:, None]
        constants = np.maximum(0, np.linalg.lstsq(a, rest * scale, rcond=None)[0])
        error = (np.minimum(base + limit * (shares_of @ constants), HELD * limit) - measured) / measured
        weight = 1 / np.sqrt(np.maximum(np.abs(error), 0.03))
    return constants


def main():
    program, path = sys.argv[1:3]
    with lzma.open(path, "rt") as text:
        lines = dict(enumerate(csv.DictReader(text), start=2))
    law = json.loads(LAW.read_text(encoding="utf-8"))["constants"]
    now = np.array([law[name]["value"] for name in NAMES])
    models = json.loads(SETTINGS.read_text(encoding="utf-8"))["models"]
    points = answer([program, "evaluate", path, "--servers", str(SETTINGS)])["points"]
    points = [point for point in points if point.get("power_w")]
    with tempfile.TemporaryDirectory() as folder:
        x = np.array([shares(program, point, lines[point["line"]], models, folder) for point in points])
    gpu = np.array([point["gpu"] for point in points])
    limits = {name: answer([program, "forecast", "gpt2", "--gpu", name])["power"]["limit_w"] for name in set(gpu)}
    limit = np.array([limits[name] for name in gpu])
    measured = np.array([point["power_measured_w"] for point in points])
    base = np.array([point["power_w"] for point in points]) - limit * (x @ now)

    def report(title, constants, judged):
        watts = np.minimum(base + limit * (x @ constants), HELD * limit)
        errors = 100 * (watts / measured - 1)[judged]
        print(f"{title}: {dict(zip(NAMES, np.round(constants, 3).tolist()))}, {judged.sum()} rows: median error {median(abs(errors)):.1f} %, bias {median(errors):+.1f} %")

    everything = np.ones(len(points), bool)
    report("neither", np.zeros(2), everything)
    for name in sorted(limits):
        others = gpu != name
        report(f"{name} left out", fit(x[others], base[others], measured[others], limit[others]), ~others)
    constants = fit(x, base, measured, limit)
    for name in sorted(limits):
        report(f"all, judged on {name}", constants, gpu == name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
