#!/usr/bin/env python3
"""What `tilecast calibrate` gains on GPUs that the weights never saw: a table in Markdown.

    tools/calibration_gain.py <scripts/asplos of the NeuSight repository> <output of tools/leave_one_out.sh>

For A100, V100 and T4, 100 matrix products drawn from the card's own dataset/test rows calibrate the
weights that left the card out; the errors are those of all its dataset/test rows.
"""
import csv
import json
import random
import subprocess
import sys
from pathlib import Path

TILECAST = Path(__file__).resolve().parent.parent / "build/release/tilecast"
GPUS = {"nvidia-a100-pcie-40gb": "NVIDIA A100-PCIE-40GB", "nvidia-v100-pcie-32gb": "Tesla V100-PCIE-32GB",
        "nvidia-t4": "Tesla T4"}


def rows_of(data: Path, name: str) -> list:
    """Lines of the project's own layout; there [B,M,N] x [B,N,K] is measured, in ms."""
    lines = []
    for file, op in [("linear.csv", "linear"), ("bmm.csv", "matmul")]:
        for row in csv.DictReader((data / "data/dataset/test" / file).open()):
            if row["Device"] != name:
                continue
            b, m, n, k = (int(row[c]) for c in "BMNK")
            if op == "linear":
                b, m = 1, b * m
            lines.append(f"{name},{op},fp32,{b},{m},{k},{n},{float(row['Latency']) * 1e-3:.9g},single_call")
    return lines


def tilecast(*arguments: str) -> str:
    return subprocess.run([str(TILECAST), *arguments], check=True, capture_output=True, text=True).stdout


def errors(data: Path, weights: Path, gpu: str, *options: str) -> dict:
    result = json.loads(tilecast("evaluate", str(data / "data/dataset/test"), "--weights", str(weights), "--format",
                                 "json", *options))
    return {r["op"]: r for r in result["rows"] if r["gpu"] == gpu and r["op"] in ("linear", "matmul")}


def main() -> None:
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    print("| GPU left out | linear before | after | matmul before | after | inside the interval after |\n"
          "|---|--:|--:|--:|--:|--:|")
    for gpu, name in GPUS.items():
        few, calibration = folder / f"{gpu}.few.csv", folder / f"{gpu}.calibration.json"
        header = "gpu,op,dtype,batch,m,n,k,latency_s,protocol\n"
        few.write_text(header + "\n".join(random.Random(1).sample(rows_of(data, name), 100)) + "\n")
        tilecast("calibrate", "--gpu", gpu, "--measurements", str(few), "-o", str(calibration), "--weights",
                 str(folder / gpu))
        before = errors(data, folder / gpu, gpu)
        after = errors(data, folder / gpu, gpu, "--calibration", str(calibration))
        cells = [f"{e[op]['mape_percent']:.1f}" for op in ("linear", "matmul") for e in (before, after)]
        count = sum(r["count"] for r in after.values())
        inside = sum(r["count"] * r["coverage_percent"] for r in after.values()) / count
        print(f"| {gpu} | " + " | ".join(cells) + f" | {inside:.0f} % |")


if __name__ == "__main__":
    main()
