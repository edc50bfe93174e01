#!/usr/bin/env python3
"""The law of Marlin's layers of experts (data/laws/experts.json, marlin), fitted on rows that were measured alone.

    research/servers/marlin.py ../shared/data/aiconfigurator/moe.csv.xz

Rows of aiconfigurator with an even load, all experts on one GPU. Prints the constants with the least error over all GPUs, the errors of
each GPU, and the errors of each GPU with the constants that the others choose. Needs numpy.
"""
import csv
import itertools
import lzma
import math
import sys
from typing import Any, Dict, List, Tuple

import numpy as np

# SMs, clock in Hz, DRAM bandwidth that products reach (data sheet times data/laws/chip.json), FLOP a cycle and SM of the data sheet.
GPUS = {"nvidia-a100-sxm4-80gb": (108, 1.41e9, 0.8 * 2.039e12, 2048), "nvidia-h100-sxm5-80gb": (132, 1.98e9, 0.87 * 3.35e12, 4096),
        "nvidia-h200-sxm-141gb": (132, 1.98e9, 0.87 * 4.8e12, 4096), "nvidia-b200-sxm-180gb": (148, 1.965e9, 0.87 * 7.7e12, 8192),
        "nvidia-l40s": (142, 2.52e9, 0.82 * 0.864e12, 1024)}
MMA_FLOPS_PER_CYCLE = 2048  # of mma.sync, A100's data sheet
TILE_ROWS, LEAST_FILL = (8, 16, 32, 48, 64), 0.9
LAUNCH_S = 30e-6  # about the software's expert_launches_us
GRID: "dict[str, tuple[float, ...]]" = {"reached_ratio": (1.0, 1.1, 1.2, 1.3, 1.4, 1.5),
                                        "conversion_cycles": (0, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08), "activation_passes": (1.5, 2, 2.5)}
Row = Tuple[float, float, float, float, float]


def parts(row: "dict[str, str]") -> Row:
    """Seconds of weights, cycles' seconds of products at the rate of mma.sync, of a conversion of one cycle, and of one pass; measured."""
    sms, clock, bandwidth, sheet = GPUS[row["gpu"]]
    tokens, hidden, chosen, experts = (int(row[key]) for key in ("num_tokens", "hidden_size", "topk", "num_experts"))
    # The kernel needs 256 columns of a product and 128 of its reduction, or multiples; weights are padded.
    inner = 128 * math.ceil(int(row["inter_size"]) // int(row["tp"]) / 128)
    hidden = 256 * math.ceil(hidden / 256)
    busy = min(experts, tokens * chosen)
    rows = next((r for r in TILE_ROWS if tokens * chosen / experts / r < LEAST_FILL), TILE_ROWS[-1])
    tiles = busy * np.ceil(tokens * chosen / busy / rows)
    weights = 3 * hidden * inner
    bits = 4.25 if "mxfp4" in row["dtype"] else 4.125
    per_cycle = sms * clock
    return (busy * weights * bits / 8 / bandwidth, tiles * rows * weights * 2 / min(sheet, MMA_FLOPS_PER_CYCLE) / per_cycle,
            tiles * weights / per_cycle, tokens * chosen * 2 * (2 * hidden + 3 * inner) / bandwidth, float(row["latency_ms"]) / 1e3)


def main() -> None:
    rows: Dict[str, List[Row]] = {gpu: [] for gpu in GPUS}
    with lzma.open(sys.argv[1], "rt", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["gpu"] in GPUS and "marlin" in row["kernel"] and row["distribution"] == "balanced" and row["ep"] == "1":
                rows[row["gpu"]].append(parts(row))
    errors: Dict[Any, Dict[str, Any]] = {}
    for values in itertools.product(*GRID.values()):
        ratio, conversion, passes = values
        errors[values] = {}
        for gpu, of_gpu in rows.items():
            dram, products, converted, activations, measured = np.array(of_gpu).T
            law = LAUNCH_S + np.maximum(dram, ratio * products + conversion * converted) + passes * activations
            errors[values][gpu] = 100 * np.abs(law / measured - 1)

    def score(values: Any, gpus: "list[str]") -> float:
        return float(np.mean([np.mean(errors[values][gpu]) + np.median(errors[values][gpu]) for gpu in gpus]))

    best = min(errors, key=lambda values: score(values, list(GPUS)))
    print("all:", dict(zip(GRID, best)))
    for gpu in GPUS:
        others = min(errors, key=lambda values: score(values, [other for other in GPUS if other != gpu]))
        of_all, of_others = errors[best][gpu], errors[others][gpu]
        print(f"{gpu}: {len(of_all)} rows, mean {np.mean(of_all):.1f} %, median {np.median(of_all):.1f}; constants of the others "
              f"{dict(zip(GRID, others))}: {np.mean(of_others):.1f}, {np.median(of_others):.1f}")


if __name__ == "__main__":
    main()
