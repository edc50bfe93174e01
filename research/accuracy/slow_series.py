#!/usr/bin/env python3
"""Lists series of aiconfigurator's tables that are slower than other series of the same sizes.

    research/accuracy/slow_series.py <aiconfigurator> [--least 1.2] [TABLE ...]     all tables: 2 minutes

A series: rows of one GPU, software, precision and kernel. Its witnesses at a shape are other software in
the same precision and the same software in wider precisions. Columns: rows, shapes with two witnesses,
how many times as long as both of them (geometric mean), its shortest row in us, and the share of steps
along sweeps, from 30 us on, in which the time falls by more than a tenth.
src/measurements/slow_series.cc has the rule by which series are left out.
"""
import argparse
import csv
import lzma
import math
from collections import defaultdict
from pathlib import Path

BITS = {"bfloat16": 16, "float16": 16, "fp8": 8, "fp8_block": 8, "int8_wo": 8, "sq": 8, "int4_wo": 4,
        "w4a16_mxfp4": 4, "w4a8_mxfp4_mxfp8": 4, "nvfp4": 4}
HEADS = ["batch", "num_heads", "num_kv_heads", "head_dim", "window_size"]
# Of each table: the size along which it was swept, and the others.
TABLES = {
    "gemm": ("m", ["n", "k"]),
    "moe": ("num_tokens", ["hidden_size", "inter_size", "topk", "num_experts", "tp", "ep", "distribution"]),
    "attention_prefill": ("seq_len", HEADS),
    "attention_decode": ("kv_len", HEADS),
    "attention_encoder": ("seq_len", HEADS),
    "mla_prefill": ("seq_len", HEADS),
    "mla_decode": ("kv_len", HEADS),
    "mla_bmm": ("num_tokens", ["op", "num_heads"]),
}
LEAST_MS, FALL = 0.03, 0.9


def bits(precision: tuple) -> int:
    return sum(BITS[dtype] for dtype in precision)


def series_of(folder: Path, table: str):
    """Yields (series, witnessed shapes, excess, rows, least ms, falling share)."""
    swept, others = TABLES[table]
    shapes = defaultdict(dict)     # shape: {(software, precision): least ms}
    sweeps = defaultdict(lambda: defaultdict(list))    # series: {layer: [(swept size, ms)]}
    with lzma.open(folder / f"{table}.csv.xz", "rt") as file:
        for row in csv.DictReader(file):
            software = row["software"].split()[0]
            precision = tuple(row[c] for c in ("dtype", "kv_dtype") if c in row)
            layer = (row["gpu"], *(row.get(c, "") for c in others))
            size, ms = int(row[swept]), float(row["latency_ms"])
            kind = (software, precision)
            at = shapes[(layer, size)]
            at[kind] = min(at.get(kind, math.inf), ms)
            sweeps[(row["gpu"], software, precision, row.get("kernel", ""))][layer].append((size, ms))
    for series, layers in sweeps.items():
        _, software, precision, _ = series
        logs, steps, falls = [], 0, 0
        for layer, points in layers.items():
            points.sort()
            for size, ms in points:
                found = sorted(other_ms for (other, p), other_ms in shapes[(layer, size)].items()
                               if (other != software and p == precision)
                               or (other == software and bits(p) > bits(precision)))
                if len(found) >= 2:
                    logs.append(math.log(ms / found[1]))
            for (size, ms), (larger, more_ms) in zip(points, points[1:]):
                if ms >= LEAST_MS and larger > size:
                    steps += 1
                    falls += more_ms < FALL * ms
        rows = [ms for points in layers.values() for _, ms in points]
        excess = math.exp(sum(logs) / len(logs)) if logs else 0
        yield series, len(logs), excess, len(rows), min(rows), falls / max(1, steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", nargs="*", metavar="TABLE", default=list(TABLES))
    parser.add_argument("--least", type=float, default=1.2, help="the least excess to list (1.2)")
    options = parser.parse_args()
    print("| table | GPU | software | precision | kernel | rows | witnessed | times as long | shortest us | falls % |")
    print("|---|---|---|---|---|--:|--:|--:|--:|--:|")
    found = []
    for table in options.tables:
        for series, shapes, excess, rows, least_ms, falls in series_of(options.folder, table):
            if shapes and excess >= options.least:
                found.append((excess, table, series, shapes, rows, least_ms, falls))
    for excess, table, (gpu, software, precision, kernel), shapes, rows, least_ms, falls in sorted(found, reverse=True):
        print(f"| {table} | {gpu} | {software} | {'/'.join(precision)} | {kernel} | {rows} | {shapes} | {excess:.2f} | "
              f"{1e3 * least_ms:.0f} | {100 * falls:.1f} |")


if __name__ == "__main__":
    main()
