"""Errors on published training runs by group.

    python research/training/published_runs.py PROGRAM DATA

DATA is a folder with megatron_bridge.csv, megatron_lm_golden.csv.xz and mpt_llm_foundry.csv (docs/reference/measurements.md,
"Training runs"). `tilecast evaluate` makes the forecasts; this prints mean, median and worst error of the time of a step, the
geometric mean of forecast over measured, and the share of runs inside the 80 % interval; then the errors of peaks of memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any


def evaluation(program: str, path: Path) -> dict[str, Any]:
    """What `tilecast evaluate` says of a table."""
    done = subprocess.run([program, "evaluate", str(path), "--format", "json"], capture_output=True, text=True,
                          check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def time_line(group: str, rows: list[dict[str, Any]]) -> str:
    errors = [row["error_percent"] for row in rows]
    inside = sum(row["low_s"] <= row["measured_s"] <= row["high_s"] for row in rows)
    ratio = statistics.geometric_mean(row["forecast_s"] / row["measured_s"] for row in rows)
    return (f"{group:44} {len(rows):4} {statistics.mean(errors):6.1f} {statistics.median(errors):6.1f} "
            f"{max(errors):6.1f} {ratio:6.2f} {100 * inside / len(rows):5.0f}")


def peak_line(group: str, rows: list[dict[str, Any]]) -> str:
    errors = sorted(row["error_percent"] for row in rows)
    return (f"{group:44} {len(rows):4} {statistics.median(errors):6.1f} {errors[int(0.9 * (len(errors) - 1))]:6.1f} "
            f"{errors[-1]:6.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    times: dict[str, list[dict[str, Any]]] = defaultdict(list)
    peaks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    unmatched: list[str] = []
    for name in ("mpt_llm_foundry.csv", "megatron_bridge.csv", "megatron_lm_golden.csv.xz"):
        answer = evaluation(given.program, given.data / name)
        for row in answer["models"]:
            times[f"{name.split('_')[0]} {row['option'].split(',')[0]} {row['dtype']} {row['gpu']}"].append(row)
        for row in answer["peaks"]:
            peaks[row["option"].split()[0]].append(row)
            peaks["all"].append(row)
        unmatched += [f"{name}: {line.split(': ', 1)[-1]}" for line in answer["unmatched"]]
    print(f"{'time of a step':44} runs   mean median  worst  ratio   in %")
    for group, rows in sorted(times.items()):
        print(time_line(group, rows))
    print(f"\n{'peak memory of the last rank':44} set-ups median  p90  worst")
    for group, rows in sorted(peaks.items()):
        print(peak_line(group, rows))
    print("\nnot compared")
    for line in unmatched:
        print(line)


if __name__ == "__main__":
    main()
