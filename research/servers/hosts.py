#!/usr/bin/env python3
"""What public runs say of the hosts of two kinds of GPUs: their time between steps over that of data/software.

    research/servers/hosts.py build/release/tilecast ../shared/data/energy/mlenergy_llm.csv.xz

The rows are ML.ENERGY's, vLLM 0.11.1, whose host's work is not hidden behind the GPU's. The time between tokens less the forecast, with
the forecast's own time between steps added again, is the host's. For each GPU, in all and without each model: the factor on that time
with the least median error; and the quartiles of the slopes against the running sequences, of pairs of runs of one model.
"""
import json
import statistics
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any, Dict, List

SETTINGS = Path(__file__).resolve().parent / "settings.json"
# As data/software/vllm.json has it before 0.14.
STEP_S, SEQUENCE_S = 1.3e-3, 35e-6
FACTORS = [step / 20 for step in range(4, 80)]
Row = Dict[str, Any]


def host_s(row: Row) -> float:
    return STEP_S + SEQUENCE_S * sequences(row)


def sequences(row: Row) -> float:
    return float(row["clients"] / row["dp"])


def best_factor(rows: List[Row]) -> "tuple[float, float]":
    """The factor, and the median error with it."""
    def error(factor: float) -> float:
        errors = [abs(float(r["itl_s"]) + (factor - 1) * host_s(r) - r["itl_measured_s"]) / float(r["itl_measured_s"]) for r in rows]
        return float(statistics.median(errors))
    least, best = min((error(factor), factor) for factor in FACTORS)
    return best, least


def slopes(rows: List[Row]) -> List[float]:
    """Of the host's time against the sequences, between runs that differ in these alone."""
    found = []
    for a, b in combinations(rows, 2):
        alike = all(a[key] == b[key] for key in ("model", "dtype", "gpus", "prompt"))
        if alike and sequences(a) != sequences(b):
            times = [r["itl_measured_s"] - r["itl_s"] + host_s(r) for r in (a, b)]
            found.append((times[1] - times[0]) / (sequences(b) - sequences(a)))
    return found


def main() -> None:
    program, table = sys.argv[1:3]
    command = [program, "evaluate", table, "--servers", str(SETTINGS), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    rows: List[Row] = json.loads(done.stdout)["points"]
    for gpu in sorted({row["gpu"] for row in rows}):
        own = [row for row in rows if row["gpu"] == gpu]
        factor, error = best_factor(own)
        without = [best_factor([r for r in own if r["model"] != model])[0] for model in sorted({r["model"] for r in own})]
        quartiles = [1e6 * q for q in statistics.quantiles(slopes(own), n=4)]
        print(f"{gpu}: {len(own)} rows, factor {factor} (median error {100 * error:.1f} %), without a model {min(without)} to {max(without)}")
        print("  us a sequence, quartiles: " + ", ".join(f"{q:.1f} ({q / quartiles[1]:.2f} of the median)" for q in quartiles))


if __name__ == "__main__":
    main()
