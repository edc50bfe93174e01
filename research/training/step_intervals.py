"""How far above a forecast published training steps lie, beside the errors of kernels and exchanges.

    python research/training/step_intervals.py PROGRAM DATA

DATA as in published_runs.py. `step_high_log` of data/laws/intervals.json joins the interval of kernels and exchanges like an
independent error: the end is at hypot(own, step_high_log) above the forecast. The value printed first leaves a tenth of the
steps above it, each model on each GPU counted alike. Then models, and GPUs, are left out in turn: how many of their steps lie
inside the interval that the others give. Kernels' own intervals already hold what lies below.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from published_runs import evaluation

ABOVE = 0.1  # of an 80 % interval


@dataclass
class Step:
    model: str
    gpu: str
    error: float  # logarithm of measured over forecast
    low: float  # logarithms of the ends of kernels and exchanges
    high: float


def steps(program: str, data: Path, known: float) -> list[Step]:
    found = []
    for name in ("mpt_llm_foundry.csv", "megatron_bridge.csv", "megatron_lm_golden.csv.xz"):
        for row in evaluation(program, data / name)["models"]:
            forecast = row["forecast_s"]
            high = math.log(row["high_s"] / forecast)
            found.append(Step(row["model"], row["gpu"], math.log(row["measured_s"] / forecast),
                              math.log(forecast / row["low_s"]), math.sqrt(max(0.0, high**2 - known**2))))
    return found


def fitted(of: list[Step]) -> float:
    groups = [(step.model, step.gpu) for step in of]
    needed = sorted(((math.sqrt(max(0.0, step.error**2 - step.high**2)) if step.error > step.high else 0.0,
                      1 / groups.count(group)) for step, group in zip(of, groups)), reverse=True)
    above = 0.0
    for value, weight in needed:
        above += weight
        if above > ABOVE * len(set(groups)):
            return value
    return 0.0


def is_held(step: Step, more: float) -> bool:
    return -step.low <= step.error <= math.hypot(step.high, more)


def left_out(of: list[Step], key: Callable[[Step], str]) -> list[tuple[Step, bool]]:
    held = []
    for value in sorted({key(step) for step in of}):
        more = fitted([step for step in of if key(step) != value])
        held += [(step, is_held(step, more)) for step in of if key(step) == value]
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    laws = Path(__file__).resolve().parents[2] / "data/laws/intervals.json"
    known = json.loads(laws.read_text())["constants"]["step_high_log"]["value"]
    all_steps = steps(given.program, given.data, known)
    print(f"step_high_log {fitted(all_steps):.2f} of {len(all_steps)} steps")
    for what, key in (("model", lambda step: step.model), ("GPU", lambda step: step.gpu)):
        held = left_out(all_steps, key)
        print(f"{what} left out: {100 * sum(inside for _, inside in held) / len(held):.0f} % held")
        for gpu in sorted({step.gpu for step in all_steps}):
            for kind, of_kind in (("MPT under FSDP", True), ("Megatron", False)):
                own = [inside for step, inside in held if step.gpu == gpu and bool(re.match("mpt-", step.model)) is of_kind]
                if own:
                    print(f"  {kind} on {gpu}: {100 * sum(own) / len(own):.0f} % of {len(own)}")


if __name__ == "__main__":
    main()
