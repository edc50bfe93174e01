#!/usr/bin/env python3
"""Compares counted memory (memory_reference.py) with memory measured on a GPU (measure_memory.py), case by case.

    research/memory/compare_memory.py REFERENCE.csv MEASURED.csv

`tensors` compares peak_bytes, the plain sum of tensors; `blocks` allocated_bytes, with the caching allocator's blocks; `reserved`
reserved_bytes. Workspaces of cuBLAS (left_bytes, still allocated after all tensors are freed) are subtracted from the measured side.
"""
import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/pytorch"))
from memory_models import COLUMNS  # noqa: E402


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return {tuple(row[key] for key in COLUMNS): row for row in csv.DictReader(stream)}


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    counted, measured = (rows_of(path) for path in sys.argv[1:])
    errors = {"tensors": [], "blocks": [], "reserved": []}
    print(f"{'case':76} {'measured MiB':>12} {'tensors %':>10} {'blocks %':>10} {'reserved %':>10}")
    for key, row in measured.items():
        if key not in counted or row["status"] != "ok":
            continue
        left = int(row["left_bytes"])
        peak, reserved = int(row["peak_allocated_bytes"]) - left, int(row["peak_reserved_bytes"]) - left
        found = {"tensors": int(counted[key]["peak_bytes"]) / peak, "blocks": int(counted[key]["allocated_bytes"]) / peak,
                 "reserved": int(counted[key]["reserved_bytes"]) / reserved}
        for name, ratio in found.items():
            errors[name].append(100 * (ratio - 1))
        print(f"{' '.join(key):76} {peak / 2**20:12.0f} " + " ".join(f"{errors[name][-1]:+10.2f}" for name in errors))
    if not errors["tensors"]:
        raise SystemExit("no case is in both files")
    for name, values in errors.items():
        sizes = [abs(value) for value in values]
        print(f"{name:9} {len(sizes)} cases   mean {sum(sizes) / len(sizes):.2f} %   worst {max(sizes):.2f} %")


if __name__ == "__main__":
    main()
