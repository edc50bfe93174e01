#!/usr/bin/env python3
"""Fits the constants of kernels that move rows by vectors (data/laws/block_rows.json) on the layers of an RTX 4090:
vector_rows.py [vllm_layers/rtx4090.csv.xz]. Needs NumPy and SciPy.

A kernel takes its start, the chain of one row, its bytes at the rate of L2 (a norm reads its sum a second time), and from DRAM the
share of its tensors that L2 has lost: fill / (fill + missed_l2_ratio), where `fill` is the size of its tensors over L2. Norms with
the residual added and rotary embedding write where they read. The loss is the mean of |log(forecast / measured)|.
"""
import csv
import io
import lzma
import sys

import numpy as np
from scipy.optimize import minimize

CLOCK_HZ, SMS, L2_BYTES = 2.52e9, 128, 72 * 2**20  # data/devices
DRAM_BYTES_PER_S = 1008e9 * 0.79 / 0.88  # data/laws/stream.json and chip.json: GDDR without inline ECC
START_S, WIDTH = 2e-6, 64  # data/laws/stream.json; the width of L2's path bounds gates
BF16 = 2
# kind, elements of a row, bytes: of its tensors, of all that is read and written, of what is read again
LAYERS = {
    "layernorm": ("norm", 4096, 2 * 4096 * BF16, 4 * 4096 * BF16, 4096 * BF16),
    "final_layernorm": ("norm", 4096, 2 * 4096 * BF16, 4 * 4096 * BF16, 4096 * BF16),
    "act_fn": ("gate", 14336, 3 * 14336 * BF16, 3 * 14336 * BF16, 0),
    "rotary_emb": ("rotary", 5120, 5120 * BF16, 2 * 5120 * BF16, 0),
}
KINDS = ("norm", "gate", "rotary")


def read(path: str) -> tuple[np.ndarray, ...]:
    with lzma.open(path) as file:
        rows = [row for row in csv.DictReader(io.TextIOWrapper(file)) if row["layer"] in LAYERS]
    layers = [LAYERS[row["layer"]] for row in rows]
    tokens = np.array([float(row["tokens"]) for row in rows])
    kind = np.array([KINDS.index(layer[0]) for layer in layers])
    columns, tensors, moved, again = (np.array([layer[i] for layer in layers], float) for i in range(1, 5))
    return kind, columns, tokens * tensors, tokens * (moved + again), np.array([float(row["latency_s"]) for row in rows])


def main() -> None:
    kind, columns, tensors, moved, measured = read(sys.argv[1] if len(sys.argv) > 1 else "vllm_layers/rtx4090.csv.xz")

    def forecast(logs: np.ndarray) -> np.ndarray:
        missed, norm, rotary, *chains = np.exp(logs)
        rate = np.array([norm, WIDTH, rotary])[kind] * CLOCK_HZ * SMS
        fill = tensors / L2_BYTES
        chain = np.array(chains)[kind] * columns / CLOCK_HZ
        return START_S + chain + moved / rate + tensors * fill / (fill + missed) / DRAM_BYTES_PER_S

    def loss(logs: np.ndarray) -> float:
        return float(np.mean(np.abs(np.log(forecast(logs) / measured))))

    fits = [minimize(loss, np.log([missed, 15, 10, 0.2, 0.2, 0.1]), method="Nelder-Mead", options={"maxiter": 9000, "maxfev": 9000, "xatol": 1e-4, "fatol": 1e-6})
            for missed in (0.2, 0.33, 0.6)]
    best = min(fits, key=lambda fit: fit.fun)
    names = ("missed_l2_ratio", "norm l2_bytes_per_cycle", "rotary l2_bytes_per_cycle", *(f"{name} chain_cycles" for name in KINDS))
    for name, value in zip(names, np.exp(best.x), strict=True):
        print(f"{name:28} {value:.3g}")
    for i, name in enumerate(KINDS):
        ratio = forecast(best.x)[kind == i] / measured[kind == i]
        print(f"{name:8} {len(ratio):4} rows  mean error {100 * np.mean(np.abs(ratio - 1)):.1f} %  forecast / measured {np.mean(ratio):.2f}")


main()
