#!/usr/bin/env python3
"""Prints the errors of convolutions as Markdown: FP32 convolutions of the NeuSight cards by the algorithm that cuDNN
ran, and our own H100 by pass and precision.

    research/accuracy/convolution_table.py [weights folder]      default: data/weights

Training writes them (errors.json): layers held out of GPUs that were trained on (a tenth, each row is a layer of its
own), and each GPU forecast by models that saw no row of it, with the roofline of the same rows beside.
"""
import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def add(cell: list, error: dict) -> None:
    cell[0] += error["mape_percent"] * error["count"]
    cell[1] += error["roofline_mape_percent"] * error["count"]
    cell[2] += error["count"]


def text(cell: list, roofline: bool) -> str:
    if cell[2] == 0:
        return ""
    beside = f" ({cell[1] / cell[2]:.0f})" if roofline else ""
    return f"{cell[0] / cell[2]:.1f}{beside} [{cell[2]}]"


def table(errors: list, columns: list, row_of, column_of, roofline: bool) -> None:
    cells = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0, 0]))
    for error in errors:
        for row in (row_of(error), "all"):
            add(cells[row][column_of(error)], error)
    print("| | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for row in sorted(cells, key=lambda r: (r == "all", r)):
        print(f"| {row} | " + " | ".join(text(cells[row][c], roofline) for c in columns) + " |")
    print()


def algorithm(error: dict) -> str:
    return error["op"].partition("(")[2].rstrip(")")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "data" / "weights"
    document = json.loads((folder / "errors.json").read_text())
    names = {"left_out": "GPU left out", "held_out": "Layers held out of measured GPUs"}
    for key, name in names.items():
        errors = [e for e in document[key] if e["op"].startswith("conv2d")]
        cards = [e for e in errors if algorithm(e)]
        own = [e for e in errors if not algorithm(e)]
        if cards:
            print(f"{name}, FP32, by cuDNN's algorithm; mean error in percent (roofline) [rows]:\n")
            gpus = sorted({e["gpu"] for e in cards})
            table(cards, gpus, algorithm, lambda e: e["gpu"], True)
        if own:
            print(f"{name}, our own measurements, by pass and precision:\n")
            dtypes = sorted({e["dtype"] for e in own})
            table(own, dtypes, lambda e: f"{e['gpu']} {e['op']}", lambda e: e["dtype"], True)


if __name__ == "__main__":
    main()
