#!/usr/bin/env python3
"""Joins what tools/leave_one_out.sh wrote into the tables of docs/accuracy.md."""
import json
import sys
from pathlib import Path

# Columns of the kernel table; the pointwise operators are joined, weighted by rows.
COLUMNS = ["linear", "matmul", "elementwise", "softmax", "layer_norm"]


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
    evaluation = json.loads((folder / f"{gpu}.label.json").read_text())
    groups: dict = {}
    for model in evaluation["models"]:
        if model["gpu"] == gpu and model["option"] == "":
            groups.setdefault(model["mode"], []).append(model["error_percent"])
    return {mode: (sum(e) / len(e), len(e)) for mode, e in groups.items()}


def main() -> None:
    folder = Path(sys.argv[1])
    gpus = sorted(p.name[: -len(".label.json")] for p in folder.glob("*.label.json"))
    print("| GPU left out | " + " | ".join(COLUMNS) + " |")
    print("|---|" + "--:|" * len(COLUMNS))
    for gpu in gpus:
        errors = kernel_errors(folder, gpu)
        cells = [f"{errors[c][0]:.1f} ({errors[c][1]})" if c in errors else "-" for c in COLUMNS]
        print(f"| {gpu} | " + " | ".join(cells) + " |")
    print("\n| GPU left out | inference (models) | training (models) |\n|---|--:|--:|")
    for gpu in gpus:
        errors = model_errors(folder, gpu)
        cells = [f"{errors[m][0]:.1f} ({errors[m][1]})" if m in errors else "-"
                 for m in ("inference", "training")]
        print(f"| {gpu} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
