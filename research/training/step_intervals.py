"""How far above a forecast published training steps lie, beside the errors of kernels and exchanges, and how far runs of one
step differ.

    python research/training/step_intervals.py PROGRAM DATA

DATA as in published_runs.py. Two constants of data/laws/intervals.json, both logarithms:
- `step_machine_log`: of repeated runs of one layout (Megatron-Bridge's containers, on the nodes of their day), four of five lie
  this near to the layout's mean.
- `step_high_log` joins the interval of kernels and exchanges like an independent error: the end of the mean run is at
  hypot(own, step_high_log) above the forecast, that of a single run at hypot of this and `step_machine_log`. The value printed
  leaves a tenth of the steps above, each model on each GPU counted alike.
Then models, GPUs and ways to train (FSDP; Megatron's dense models, experts, SFT and LoRA) are left out in turn: how many of their
steps lie inside the interval that the others give.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from published_runs import evaluation

ABOVE = 0.1  # of an 80 % interval
COVERAGE = 0.8


@dataclass
class Step:
    model: str
    gpu: str
    way: str
    error: float  # logarithm of measured over forecast
    low: float  # logarithms of the ends without the two constants below
    high: float


def machine_spread(bridge: Path) -> tuple[int, int, float]:
    """Repeated layouts, their runs, and how near to their mean four of five lie."""
    settings = ("gpus", "task", "model", "variant", "dtype", "global_batch", "micro_batch", "seq", "fsdp", "tp", "pp", "cp", "vpp",
                "ep")
    runs: dict[tuple[str, ...], list[float]] = defaultdict(list)
    with bridge.open(newline="") as file:
        for row in csv.DictReader(file):
            runs[tuple(row[name] or "0" for name in settings)].append(math.log(float(row["step_s"])))
    repeated = [steps for steps in runs.values() if len(steps) > 1]
    # The mean is of the runs themselves: n / (n - 1) of the squares.
    differences = sorted(abs(step - statistics.mean(steps)) * math.sqrt(len(steps) / (len(steps) - 1))
                         for steps in repeated for step in steps)
    place = COVERAGE * (len(differences) - 1)
    low, high = differences[math.floor(place)], differences[math.ceil(place)]
    return len(repeated), len(differences), low + (high - low) * (place - math.floor(place))


def steps(program: str, data: Path, known: dict[str, float]) -> list[Step]:
    found = []
    for name in ("mpt_llm_foundry.csv", "megatron_bridge.csv", "megatron_lm_golden.csv.xz"):
        for row in evaluation(program, data / name)["models"]:
            forecast = row["forecast_s"]
            low, high = math.log(forecast / row["low_s"]), math.log(row["high_s"] / forecast)
            machine = known["step_machine_log"]
            found.append(Step(row["model"], row["gpu"], row["option"].split(",")[0].split()[0],
                              math.log(row["measured_s"] / forecast), math.sqrt(max(0.0, low**2 - machine**2)),
                              math.sqrt(max(0.0, high**2 - machine**2 - known["step_high_log"]**2))))
    return found


def fitted(of: list[Step], machine: float) -> float:
    groups = [(step.model, step.gpu) for step in of]

    def missing(step: Step) -> float:
        return math.sqrt(max(0.0, step.error**2 - step.high**2 - machine**2)) if step.error > 0 else 0.0

    needed = sorted(((missing(step), 1 / groups.count(group)) for step, group in zip(of, groups)), reverse=True)
    above = 0.0
    for value, weight in needed:
        above += weight
        if above > ABOVE * len(set(groups)):
            return value
    return 0.0


def is_held(step: Step, more: float, machine: float) -> bool:
    return -math.hypot(step.low, machine) <= step.error <= math.hypot(step.high, more, machine)


def left_out(of: list[Step], key: Callable[[Step], str], machine: float) -> list[tuple[Step, bool]]:
    held = []
    for value in sorted({key(step) for step in of}):
        more = fitted([step for step in of if key(step) != value], machine)
        held += [(step, is_held(step, more, machine)) for step in of if key(step) == value]
    return held


def percent(held: list[bool]) -> str:
    return f"{100 * sum(held) / len(held):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    laws = Path(__file__).resolve().parents[2] / "data/laws/intervals.json"
    known = {name: constant["value"] for name, constant in json.loads(laws.read_text())["constants"].items()}
    layouts, runs, machine = machine_spread(given.data / "megatron_bridge.csv")
    print(f"step_machine_log {machine:.3f} of {runs} runs of {layouts} layouts")
    all_steps = steps(given.program, given.data, known)
    print(f"step_high_log {fitted(all_steps, machine):.2f} of {len(all_steps)} steps")
    used = [is_held(step, known["step_high_log"], known["step_machine_log"]) for step in all_steps]
    print(f"with the constants of {laws.name}: {percent(used)} held")
    groups = sorted({(step.way, step.gpu) for step in all_steps})
    for what, key in (("model", lambda step: step.model), ("GPU", lambda step: step.gpu), ("way to train", lambda step: step.way)):
        held = left_out(all_steps, key, machine)
        print(f"{what} left out: {percent([inside for _, inside in held])} held")
        for way, gpu in groups:
            own = [inside for step, inside in held if (step.way, step.gpu) == (way, gpu)]
            print(f"  {way} on {gpu}: {percent(own)} of {len(own)}")


if __name__ == "__main__":
    main()
