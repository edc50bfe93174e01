#!/usr/bin/env python3
"""Joins what research/accuracy/leave_one_out.sh wrote into the tables of docs/accuracy.md."""
import json
import sys
from pathlib import Path

# Columns of the kernel table; the pointwise operators are joined, weighted by rows.
COLUMNS = ["linear", "matmul", "elementwise", "softmax", "layer_norm"]
AVERAGED = ["nvidia-a100-pcie-40gb", "nvidia-v100-pcie-32gb", "nvidia-p100-pcie-16gb", "nvidia-t4"]


def kernel_errors(folder: Path, gpu: str) -> dict:
    """Mean absolute percentage error of a GPU's rows by column, from its own evaluation files.

    AMD's vector operators have no test part; the train part stands in, which was left out too.
    """
    parts = ["data_dataset_test", "data_dataset_amd_test"]
    if gpu.startswith("amd"):
        parts.append("data_dataset_amd_train")
    sums: dict = {}
    for part in parts:
        evaluation = json.loads((folder / f"{gpu}.{part}.json").read_text())
        for row in evaluation["rows"]:
            if row["gpu"] != gpu:
                continue
            column = row["op"] if row["op"] in COLUMNS else "elementwise"
            total, count, inside = sums.get(column, (0.0, 0, 0.0))
            sums[column] = (total + row["mape_percent"] * row["count"], count + row["count"],
                            inside + row["coverage_percent"] * row["count"])
    return {c: (t / n, n, i / n) for c, (t, n, i) in sums.items()}


def model_errors(folder: Path, gpu: str) -> dict:
    """Mean error, models, and models inside their interval, by mode."""
    evaluation = json.loads((folder / f"{gpu}.label.json").read_text())
    groups: dict = {}
    for model in evaluation["models"]:
        if model["gpu"] == gpu and model["option"] == "":
            inside = model["low_s"] <= model["measured_s"] <= model["high_s"]
            groups.setdefault(model["mode"], []).append((model["error_percent"], inside))
    return {mode: (sum(e for e, _ in g) / len(g), len(g), sum(i for _, i in g)) for mode, g in groups.items()}


def main() -> None:
    folder = Path(sys.argv[1])
    gpus = sorted(p.name[: -len(".label.json")] for p in folder.glob("*.label.json"))
    print("Mean error in percent (rows):\n")
    print("| GPU left out | " + " | ".join(COLUMNS) + " |")
    print("|---|" + "--:|" * len(COLUMNS))
    errors = {gpu: kernel_errors(folder, gpu) for gpu in gpus}
    for gpu in gpus:
        cells = [f"{errors[gpu][c][0]:.1f} ({errors[gpu][c][1]})" if c in errors[gpu] else "-" for c in COLUMNS]
        print(f"| {gpu} | " + " | ".join(cells) + " |")
    averaged = [gpu for gpu in AVERAGED if gpu in gpus]
    means = [sum(errors[gpu][c][0] for gpu in averaged) / max(1, len(averaged)) for c in COLUMNS]
    print("| mean of A100, V100, P100, T4 | " + " | ".join(f"{m:.1f}" for m in means) + " |")
    print("\nShare of measurements inside the 80 % interval, percent:\n")
    print("| GPU left out | " + " | ".join(COLUMNS) + " |")
    print("|---|" + "--:|" * len(COLUMNS))
    for gpu in gpus:
        cells = [f"{errors[gpu][c][2]:.0f}" if c in errors[gpu] else "-" for c in COLUMNS]
        print(f"| {gpu} | " + " | ".join(cells) + " |")
    means = [sum(errors[gpu][c][2] for gpu in gpus if c in errors[gpu]) /
             max(1, sum(c in errors[gpu] for gpu in gpus)) for c in COLUMNS]
    print("| mean of all | " + " | ".join(f"{m:.0f}" for m in means) + " |")
    print("\nWhole models:\n")
    print("| GPU left out | inference (models) | training (models) | inside the interval |\n|---|--:|--:|--:|")
    for gpu in gpus:
        models = model_errors(folder, gpu)
        cells = [f"{models[m][0]:.1f} ({models[m][1]})" if m in models else "-" for m in ("inference", "training")]
        inside = sum(m[2] for m in models.values())
        count = sum(m[1] for m in models.values())
        print(f"| {gpu} | " + " | ".join(cells) + f" | {f'{inside} of {count}' if count else '-'} |")


if __name__ == "__main__":
    main()
