#!/usr/bin/env python3
"""The constants of servers fitted without a model, then without a GPU, each in turn, and judged on it.

    research/servers/left_out.py build/release/tilecast ../shared/data/servers/inferencex.csv.xz            prints the table
    research/servers/left_out.py build/release/tilecast ../shared/data/servers/inferencex.csv.xz --write    writes docs/server_accuracy.md

Fitted are the constants of data/software that InferenceX's and NVIDIA's runs decide: the time of a request outside of steps and of a
launch of a prompt's kernels (on times to first token), the time between steps and for each sequence (on times per output token). Each
takes the value of a grid with the least median error on the rows that stay; all other constants are as committed. What a fit without a
model or GPU says of it is its forecast here.
"""
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import sections  # noqa: E402

SETTINGS = Path(__file__).resolve().parent / "settings.json"
Point = Dict[str, Any]
OVERHEADS_S = (0.004, 0.008, 0.012, 0.016, 0.02)
LAUNCHES_US = {"vllm": (20, 50, 65), "trtllm": (20, 50, 65)}
# Software and version of the rows, and what they may take between steps and for each sequence, in microseconds.
STEPS_US = {("sglang", ""): ((100, 0), (300, 0), (500, 0), (500, 5), (700, 5)),
            ("trtllm", "1.0.0rc3"): ((100, 0), (300, 0), (300, 15), (300, 30), (600, 15)),
            ("vllm", "0.12.0"): ((100, 0), (700, 20), (1000, 20), (1300, 35), (1600, 50))}
METRICS = {"ttft": ("ttft_s", "ttft_measured_s"), "tpot": ("tpot_s", "tpot_measured_s"),
           "tokens/s/GPU": ("tokens_per_s_per_gpu", "tokens_per_s_per_gpu_measured")}


def evaluate(program: str, table: str, rules: "list[dict[str, Any]]") -> List[Point]:
    settings = json.loads(SETTINGS.read_text())
    settings["rules"] += [{**rule, "source": "a candidate of the fit"} for rule in rules]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(settings, file)
        file.flush()
        command = [program, "evaluate", table, "--servers", file.name, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    points: List[Point] = json.loads(done.stdout)["points"]
    return points


def error(point: Point, metric: str) -> "float | None":
    forecast, measured = METRICS[metric]
    if not point.get(measured) or (metric == "ttft" and point.get("ttft_use") not in ("", "yes", None)):
        return None
    return abs(point[forecast] / point[measured] - 1)


def errors(points: List[Point], metric: str) -> "list[float]":
    return [e for p in points if (e := error(p, metric)) is not None]


def is_of(point: Point, software: str, version: str) -> bool:
    return bool(point["software"] == software and (not version or point.get("version", "") == version))


def judge(candidates: Dict[Any, List[Point]], metric: str, software: str, version: str, key: str,
          left_out: str) -> "tuple[Any, list[float]]":
    """The candidate with the least median error on the rows that stay, and its errors on those that are left out."""
    def of(points: List[Point], stays: bool) -> "list[float]":
        return errors([p for p in points if is_of(p, software, version) and (p[key] != left_out) == stays], metric)
    medians = {name: statistics.median(of(points, True) or [math.inf]) for name, points in candidates.items()}
    chosen = min(medians, key=lambda name: medians[name])
    return chosen, of(candidates[chosen], False)


def main() -> None:
    program, table = sys.argv[1:3]
    requests: Dict[str, Dict[Any, List[Point]]] = {}
    for software, launches in LAUNCHES_US.items():
        requests[software] = {(overhead, launch): evaluate(program, table, [
            {"match": {"software": software}, "options": {"server_overhead_s": overhead, "host_launch_us": launch}}])
            for overhead in OVERHEADS_S for launch in launches}
    steps: Dict[Any, Dict[Any, List[Point]]] = {}
    for (software, version), values in STEPS_US.items():
        match = {"software": software, **({"version": version} if version else {})}
        steps[software, version] = {(step, sequence): evaluate(program, table, [
            {"match": match, "options": {"step_overhead_us": step, "sequence_overhead_us": sequence}}]) for step, sequence in values}
    fits = "| without | fitted on the others | figure | rows | median % |\n|---|---|---|--:|--:|\n"
    sums = "| each left out in turn | figure | rows | mean % | median % |\n|---|---|--:|--:|--:|\n"
    committed = steps["sglang", ""][500, 5]
    for key in ("model", "gpu"):
        found: "dict[str, list[float]]" = {metric: [] for metric in METRICS}
        for left_out in sorted({p[key] for p in committed}):
            def add(metric: str, constants: str, own: "list[float]", name: str = left_out.split("--")[-1]) -> str:
                found[metric] += own
                return f"| {name} | {constants} | {metric} | {len(own)} | {100 * statistics.median(own):.1f} |\n" if own else ""

            for software, candidates in requests.items():
                chosen, own = judge(candidates, "ttft", software, "", key, left_out)
                fits += add("ttft", f"{software}: {chosen[0] * 1e3:.0f} ms a request, {chosen[1]} us a launch", own)
            for (software, version), candidates in steps.items():
                chosen, own = judge(candidates, "tpot", software, version, key, left_out)
                fits += add("tpot", f"{software} {version}: {chosen[0]} us a step, {chosen[1]} us a sequence", own)
            own_rows = [p for p in committed if p[key] == left_out]
            # No fit decides the other rows' times per output token.
            found["tpot"] += errors([p for p in own_rows if not any(is_of(p, *fitted) for fitted in steps)], "tpot")
            found["tokens/s/GPU"] += errors(own_rows, "tokens/s/GPU")
        for metric, values_of in found.items():
            sums += (f"| {key} | {metric} | {len(values_of):,} | {100 * statistics.fmean(values_of):.1f} | "
                     f"{100 * statistics.median(values_of):.1f} |\n")
    if "--write" in sys.argv:
        sections.replace("docs/server_accuracy.md", "<!-- left_out: begin -->", "<!-- left_out: end -->", sums + "\n" + fits)
    else:
        print(sums + "\n" + fits)


if __name__ == "__main__":
    main()
