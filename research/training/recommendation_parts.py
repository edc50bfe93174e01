"""Parts of a training step of a recommendation model over GPUs, as the table of docs/explanation/recommendation.md.

    python research/training/recommendation_parts.py PROGRAM [MODEL]

Each GPU has 8,192 samples. A part that runs beside others is shown with the time that it adds to the step: nothing, if it is hidden.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from typing import Any

GPUS = (8, 16, 64)
SAMPLES = 8192


def forecast(program: str, model: str, gpus: int) -> dict[str, Any]:
    done = subprocess.run([program, "forecast", model, "--cluster", "dgx-h100", "--mode", "training", "--dp", str(gpus), "--batch",
                           str(SAMPLES * gpus), "--format", "json"], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model", nargs="?", default="dlrm_mlperf")
    given = parser.parse_args()
    steps = [forecast(given.program, given.model, gpus) for gpus in GPUS]
    parts = [{part["name"]: part for part in step["step_parts"]} for step in steps]
    names = list(dict.fromkeys(name for step in parts for name in step))
    print("| part | on | " + " | ".join(f"{gpus} GPUs" for gpus in GPUS) + " |")
    print("|---|---|" + "--:|" * len(GPUS))
    for name in names:
        cells = [f"{1e3 * step[name]['seconds']:.2f} ({1e3 * step[name]['start_s']:.2f}-{1e3 * step[name]['end_s']:.2f})"
                 if name in step else "" for step in parts]
        runs_on = next(step[name]["runs_on"] for step in parts if name in step)
        print(f"| {name} | {runs_on} | " + " | ".join(cells) + " |")
    print("| step | | " + " | ".join(f"{1e3 * step['latency_s']:.2f}" for step in steps) + " |")


if __name__ == "__main__":
    main()
