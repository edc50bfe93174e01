#!/usr/bin/env python3
"""Traces carried to another GPU, beside the trace that was measured there.

    research/traces/carry.py build/release/tilecast FOLDER

FOLDER: tests/traces of the public TraceLens repository, which has the same programs on H100 and MI300X. The target's trace gives the
host's times and the launches; its kernels are compared with only. Prints the table of README.md.
"""
import json
import subprocess
import sys
from pathlib import Path

PAIRS = ("gaunernst_bert-small-uncased__1016001", "Falconsai_nsfw_image_detection__1016002", "Qwen_Qwen1.5-0.5B-Chat__1016005")
GPUS = {"h100": "H100", "mi300": "MI300X"}


def ask(program: str, *arguments: str) -> dict:
    run = subprocess.run([program, "trace", *arguments, "--format", "json"], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def error(forecast: float, measured: float) -> str:
    return f"{100 * (forecast / measured - 1):+.1f} %"


def main() -> None:
    program, folder = sys.argv[1], Path(sys.argv[2])
    print("| program | from | to | kernels there, ms | carried, ms | error | interval | span there, ms | carried, ms | error | matched |")
    print("|---|---|---|--:|--:|--:|---|--:|--:|--:|--:|")
    for name in PAIRS:
        for source, target in (("h100", "mi300"), ("mi300", "h100")):
            here, there = (str(folder / f"{gpu}_{name}.json.gz") for gpu in (source, target))
            measured = ask(program, there)
            report = ask(program, here, "--gpu", GPUS[target], "--trace-host", there)
            carried = report["carried"]
            matched = next(text for text in report["assumptions"] if "has the same operator" in text).split(" %")[0]
            inside = carried["kernels_low_s"] <= measured["kernels_s"] <= carried["kernels_high_s"]
            print(f"| {name.split('__')[0]} | {GPUS[source]} | {GPUS[target]} | {1e3 * measured['kernels_s']:.3f} | "
                  f"{1e3 * carried['kernels_s']:.3f} | {error(carried['kernels_s'], measured['kernels_s'])} | "
                  f"{'holds' if inside else 'misses'} | {1e3 * measured['span_s']:.2f} | {1e3 * carried['span_s']:.2f} | "
                  f"{error(carried['span_s'], measured['span_s'])} | {matched} % |")


if __name__ == "__main__":
    main()
