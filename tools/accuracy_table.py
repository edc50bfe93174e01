#!/usr/bin/env python3
"""Writes the error table of the committed weights: data/weights/model_errors.json and the part of
docs/accuracy.md between the markers.

    tools/accuracy_table.py <scripts/asplos of the NeuSight repository>

Only errors are kept, not the measurements, which belong to others.
"""
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "data/weights/model_errors.json"
DOCUMENT = ROOT / "docs/accuracy.md"
BEGIN, END = "<!-- whole models: begin -->", "<!-- whole models: end -->"
# NeuSight's own mean errors on the same configurations (ASPLOS 2025 artifact), percent.
PUBLISHED = {
    ("nvidia-a100-pcie-40gb", "inference"): 6.5, ("nvidia-v100-pcie-32gb", "inference"): 5.9,
    ("nvidia-p100-pcie-16gb", "inference"): 7.1, ("nvidia-t4", "inference"): 18.5,
    ("nvidia-p4", "inference"): 27.1, ("amd-mi100", "inference"): 10.8,
    ("nvidia-v100-pcie-32gb", "training"): 8.9, ("amd-mi100", "training"): 15.6,
}


def evaluate(data: str, predictor: str) -> list:
    command = [str(ROOT / "build/release/tilecast"), "evaluate", f"{data}/label", "--format", "json",
               "--predictor", predictor]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["models"]


def key(model: dict) -> str:
    parts = [model["gpu"], model["model"], model["mode"], str(model["seq"]), str(model["batch"]), model["option"]]
    return " ".join(p for p in parts if p)


def signed(model: dict) -> float:
    return round(100 * (model["forecast_s"] / model["measured_s"] - 1), 1)


def mean(models: list, gpu: str, mode: str, option: str):
    errors = [abs(signed(m)) for m in models if (m["gpu"], m["mode"], m["option"]) == (gpu, mode, option)]
    return (sum(errors) / len(errors), len(errors)) if errors else None


def main() -> None:
    learned, roofline = evaluate(sys.argv[1], "learned"), evaluate(sys.argv[1], "roofline")
    TABLE.write_text(json.dumps({key(m): signed(m) for m in learned}, indent=1, sort_keys=True) + "\n")
    lines = ["| GPU | mode | option | models | Tilecast | roofline | NeuSight, published |",
             "|---|---|---|--:|--:|--:|--:|"]
    for gpu, mode, option in sorted({(m["gpu"], m["mode"], m["option"]) for m in learned}):
        ours, count = mean(learned, gpu, mode, option)
        published = PUBLISHED.get((gpu, mode)) if option == "" else None
        lines.append(f"| {gpu} | {mode} | {option or '-'} | {count} | {ours:.1f} | "
                     f"{mean(roofline, gpu, mode, option)[0]:.1f} | {published or '-'} |")
    lines += ["", "| model | error % |", "|---|--:|"]
    lines += [f"| {key(m)} | {signed(m):+.1f} |" for m in learned]
    text = DOCUMENT.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


if __name__ == "__main__":
    main()
