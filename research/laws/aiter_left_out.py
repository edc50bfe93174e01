#!/usr/bin/env python3
"""Errors of AITER's products and experts, left out by the file of tuned sizes that a row comes from.

A file holds the sizes of a model. The files are dealt into folds (by default each is one); for each fold, laws are fitted and
residuals trained on all other files (`tilecast train --laws`, then `tilecast train --law-folder`), and
the rows of the fold are compared. The second table leaves out whole GPUs in the same way.

    research/laws/aiter_left_out.py <folder of gemm.csv.xz and moe.csv.xz> [--folds 100] [--work DIR]
"""
import argparse
import csv
import io
import json
import lzma
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/tilecast"
TABLES = ("gemm.csv.xz", "moe.csv.xz")
LAWS = ("tensor_matmul.cdna3", "experts.cdna3")


def read(folder: Path) -> dict:
    """The rows of the tables. Of a product that several files have, the fastest counts, as where `evaluate` reads them."""
    tables = {name: list(csv.DictReader(io.StringIO(lzma.open(folder / name).read().decode()))) for name in TABLES}
    fastest: dict = {}
    for row in tables[TABLES[0]]:
        key = tuple(row[name] for name in ("gpu", "dtype", "scale", "out_dtype", "batch", "m", "n", "k"))
        if key not in fastest or float(row["latency_us"]) < float(fastest[key]["latency_us"]):
            fastest[key] = row
    tables[TABLES[0]] = list(fastest.values())
    return tables


def write(tables: dict, folder: Path, keep) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        kept = [row for row in rows if keep(row)]
        with (folder / name.removesuffix(".xz")).open("w", newline="") as out:
            writer = csv.DictWriter(out, rows[0].keys())
            writer.writeheader()
            writer.writerows(kept)


def run(*command) -> str:
    return subprocess.run([str(PROGRAM), *map(str, command)], check=True, capture_output=True, text=True).stdout


def fit(data: Path, out: Path) -> None:
    """Laws and residuals of the rows in `data`, in the folder `out`."""
    run("train", "--laws", "--data", data, "-o", out, "--quiet")
    subprocess.run([sys.executable, ROOT / "tools/set_laws.py", out / "laws.json", "--from", ROOT / "data/laws",
                    "--to", out / "laws", *LAWS], check=True, capture_output=True)
    run("train", "--data", data, "--law-folder", out / "laws", "-o", out, "--quiet")


def left_out(tables: dict, parts: list, work: Path) -> list:
    """Errors of each part by models that were made without it; part: a function of a row."""
    rows = []
    for number, part in enumerate(parts):
        folder = work / str(number)
        write(tables, folder / "known", lambda row, part=part: not part(row))
        write(tables, folder / "asked", part)
        fit(folder / "known", folder / "weights")
        rows += json.loads(run("evaluate", folder / "asked", "--weights", folder / "weights", "--format", "json"))["rows"]
    return rows


def show(title: str, rows: list) -> None:
    sums: dict = defaultdict(lambda: [0, 0.0, 0.0])
    for row in rows:
        of = sums[row["gpu"], row["op"], row["dtype"]]
        of[0] += row["count"]
        of[1] += row["count"] * row["mape_percent"]
        of[2] += row["count"] * row["coverage_percent"]
    print(f"| {title} | | | rows | mean % | in interval % |\n|---|---|---|--:|--:|--:|")
    for (gpu, op, dtype), (count, error, inside) in sorted(sums.items()):
        print(f"| {gpu} | {op} | {dtype} | {count:,} | {error / count:.1f} | {inside / count:.0f} |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folds", type=int, default=100)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    tables = read(options.data)
    work = options.work or Path(tempfile.mkdtemp())
    counts: dict = defaultdict(int)
    for rows in tables.values():
        for row in rows:
            counts[row["file"]] += 1
    # The largest files first, each into the fold that has the fewest rows.
    folds: list = [[0, set()] for _ in range(options.folds)]
    for file in sorted(counts, key=lambda f: (-counts[f], f)):
        fold = min(folds, key=lambda f: f[0])
        fold[0] += counts[file]
        fold[1].add(file)
    parts = [lambda row, files=files: row["file"] in files for _, files in folds if files]
    show("left out by file", left_out(tables, parts, work / "files"))
    gpus = sorted({row["gpu"] for row in tables[TABLES[0]]})
    parts = [lambda row, gpu=gpu: row["gpu"] == gpu for gpu in gpus]
    show("left out by GPU", left_out(tables, parts, work / "gpus"))


if __name__ == "__main__":
    main()
