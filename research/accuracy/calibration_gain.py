#!/usr/bin/env python3
"""What `tilecast calibrate` gains on GPUs that the weights never saw: a table in Markdown.

    research/accuracy/calibration_gain.py <folder of data> <folder of weights>

The folder of data holds what the weights are trained on (docs/reference/measurements.md): scripts/asplos/data (NeuSight), aiconfigurator,
vidur, rocm, pipeweave. Weights without each GPU are trained into <folder of weights>/<gpu id> where they are missing,
a minute each on two cores. Of each kind of a card's measured
rows, 1,500 are drawn: 1,000 that may be measured and 500 that are forecast. The first 10, 20 and 50 of the former
calibrate the weights, or as many that `calibrate --suggest N --candidates` chooses of all 1,000. Errors are means
over the 500 and over the seeds.
"""
import argparse
import csv
import io
import json
import lzma
import random
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TILECAST = ROOT / "build/release/tilecast"
DATA = ["scripts/asplos/data", "aiconfigurator", "vidur/data/profiling/compute", "rocm", "pipeweave"]
H100 = [ROOT / "data/measurements/nvidia-h100-sxm5-80gb" / f"{family}.csv"
        for family in ("matmul", "attention", "torch_ops", "convolution")]
# Card, its name in the files, kind, file, what a line holds. NeuSight's rows are FP32; aiconfigurator's of all types
# and software, and those of one.
NEUSIGHT, SERVING = "scripts/asplos/data/dataset/test/", "aiconfigurator/"
CELLS = [("nvidia-t4", "Tesla T4", "FP32 linear", NEUSIGHT + "linear.csv", ""),
         ("nvidia-t4", "Tesla T4", "FP32 batched", NEUSIGHT + "bmm.csv", ""),
         ("nvidia-h100-sxm5-80gb", "NVIDIA H100 80GB HBM3", "FP32 linear", NEUSIGHT + "linear.csv", ""),
         ("nvidia-h100-sxm5-80gb", "NVIDIA H100 80GB HBM3", "FP32 batched", NEUSIGHT + "bmm.csv", ""),
         *[(gpu, gpu, kind + named, SERVING + file, holds)
           for gpu in ("nvidia-b200-sxm-180gb", "nvidia-l40s")
           for named, holds in [("", ""), (", vLLM in BF16", ",vllm")]
           for kind, file in [("products", "gemm.csv"), ("prefill", "attention_prefill.csv"),
                              ("decode", "attention_decode.csv"), ("experts", "moe.csv")]]]
COUNTS, SEEDS, CANDIDATES, FORECAST = (10, 20, 50), 3, 1000, 500


def read(path: Path) -> str:
    packed = path.with_name(path.name + ".xz")
    return path.read_text() if path.exists() else lzma.open(packed, "rt").read()


def rows_of(path: Path, name: str, holds: str = "") -> tuple:
    """The header line and the card's lines; of those that hold a software, the ones in BF16."""
    lines = read(path).splitlines()
    reader = csv.reader(lines)
    header = next(reader)
    column = header.index("Device" if "Device" in header else "gpu")
    return lines[0], [line for line, cells in zip(lines[1:], reader)
                      if cells[column] == name and holds in line and (not holds or is_bf16(cells))]


def is_bf16(cells: list) -> bool:
    return "bfloat16" in cells and not any("fp8" in cell for cell in cells)


def tilecast(*arguments: str) -> str:
    done = subprocess.run([str(TILECAST), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"tilecast {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def weights_without(gpu: str, data: Path, weights: Path) -> Path:
    folder = weights / gpu
    if not (folder / "kernels.weights").exists():
        paths = [argument for path in [*(data / part for part in DATA), *H100] for argument in ("--data", path)]
        tilecast("train", *paths, "--exclude-gpu", gpu, "-o", folder)
    return folder


def evaluated(rows: Path, weights: Path, *options: str) -> tuple:
    """Mean error and share inside the interval, percent."""
    result = json.loads(tilecast("evaluate", rows, "--weights", weights, "--format", "json", *options))["rows"]
    count = sum(r["count"] for r in result)
    return tuple(sum(r["count"] * r[key] for r in result) / count for key in ("mape_percent", "coverage_percent"))


def cell(folder: Path, file: str, header: str, lines: list, weights: Path, gpu: str, seed: int) -> dict:
    """Errors by what was calibrated with; the names of files tell some layouts."""
    drawn = random.Random(seed).sample(lines, min(len(lines), CANDIDATES + FORECAST))
    candidates, unseen = drawn[:-FORECAST], drawn[-FORECAST:]

    def write(name: str, rows: list) -> Path:
        path = folder / name / Path(file).name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([header, *rows]) + "\n")
        return path
    forecast, pool = write("unseen", unseen), write("pool", candidates)
    errors = {"before": evaluated(forecast, weights)}
    for count in COUNTS:
        chosen = tilecast("calibrate", "--gpu", gpu, "--suggest", count, "--candidates", pool, "--weights", weights)
        for way, rows in [("random", candidates[:count]), ("suggested", chosen.splitlines()[1:])]:
            calibration = folder / "calibration.json"
            tilecast("calibrate", "--gpu", gpu, "--measurements", write("few", rows), "-o", calibration, "--weights",
                     weights)
            errors[way, count] = evaluated(forecast, weights, "--calibration", str(calibration))
    return errors


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--kind", default="", help="only cells whose GPU or kind holds this")
    arguments = parser.parse_args()
    columns = ["before", *[(way, count) for count in COUNTS for way in ("random", "suggested")]]
    out = io.StringIO()
    print("| GPU left out | kernels | before | " + " | ".join(
        f"{count} {way}" for count in COUNTS for way in ("random", "suggested")) + " |\n|---|---|" +
          "--:|" * len(columns), file=out)
    total = []
    for gpu, name, kind, file, holds in CELLS:
        if arguments.kind not in f"{gpu} {kind}":
            continue
        header, lines = rows_of(arguments.data / file, name, holds)
        with tempfile.TemporaryDirectory() as folder:
            weights = weights_without(gpu, arguments.data, arguments.weights)
            runs = [cell(Path(folder), file, header, lines, weights, gpu, seed) for seed in range(SEEDS)]
        means = {c: [sum(run[c][i] for run in runs) / SEEDS for i in (0, 1)] for c in columns}
        total.append(means)
        print(f"| {gpu} | {kind} | " + " | ".join(f"{means[c][0]:.1f} ({means[c][1]:.0f})" for c in columns) + " |",
              file=out)
        print(out.getvalue().splitlines()[-1], flush=True)
    print("| mean | | " + " | ".join(
        "{:.1f} ({:.0f})".format(*[sum(m[c][i] for m in total) / len(total) for i in (0, 1)]) for c in columns) +
          " |", file=out)
    print("\n" + out.getvalue())


if __name__ == "__main__":
    main()
