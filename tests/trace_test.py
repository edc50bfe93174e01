#!/usr/bin/env python3
"""The trace of a training step (--timeline-trace) is one that Perfetto reads, and adds up to the forecast.

    tests/trace_test.py <tilecast>

Format: Trace Event Format, complete events ("ph": "X") and metadata ("ph": "M"). Slices of a thread must not overlap, for Perfetto would
nest or drop them.
"""
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = {
    "data parallel": ["gpt2_large", "--gpu", "A100-SXM4-40GB", "--batch", "8", "--dp", "4"],
    "pipeline in a node": ["gpt2_large", "--cluster", "dgx-a100", "--batch", "16", "--pp", "4", "--dp", "2", "--microbatches", "4"],
    "tensor parallel pipeline, interleaved": ["gpt2_large", "--cluster", "dgx-a100", "--batch", "16", "--tp", "2", "--pp", "2", "--dp", "2",
                                              "--microbatches", "4", "--pipeline-schedule", "interleaved",
                                              "--num-layers-per-virtual-pipeline-stage", "9", "--zero", "1", "--optimizer", "adamw"],
    "FSDP": ["llama-3.2-1b", "--cluster", "dgx-h100", "--batch", "16", "--dp", "16", "--zero", "3", "--dtype", "bf16"],
    "slow ranks": ["gpt2_large", "--cluster", "dgx-a100", "--batch", "8", "--dp", "4", "--pp", "2", "--microbatches", "2",
                   "--slow-ranks", "1:1.3"],
}
# An operation also waits for the host and copies gradients, which its kernels do not: their power is somewhat above its own.
POWER_TOLERANCE = 0.15
TOLERANCE_US = 1e-3  # times are sums of doubles in seconds; the shortest kernels take 1 us


def run(program: str, options: list, trace: Path) -> dict:
    command = [program, "forecast", options[0], *options[1:], "--mode", "training", "--format", "json"]
    forecast = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)
    subprocess.run([*command, "--timeline-trace", str(trace)], capture_output=True, check=True, timeout=120)
    return forecast


def slices_of(events: list) -> dict:
    """(start, end) of complete events by process and thread; what is malformed is an error."""
    tracks = collections.defaultdict(list)
    names = collections.defaultdict(set)
    for event in events:
        assert event["ph"] in ("X", "M", "C"), event
        assert isinstance(event["pid"], int), event
        if event["ph"] == "C":
            continue
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"], event
            names[event["name"]].add((event["pid"], event.get("tid")))
            continue
        assert isinstance(event["tid"], int) and event["name"], event
        assert event["ts"] >= 0 and event["dur"] >= 0, event
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert names["process_name"] == {(pid, None) for pid, _ in tracks}, "each rank needs a name"
    assert names["thread_name"] == set(tracks), "each stream needs a name"
    return tracks


def check_power(events: list, forecast: dict, step_us: float) -> None:
    """The counter of each rank stays between idle and the limit; over the step its mean is near the forecast's power."""
    power = forecast["power"]
    counters = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            counters[event["pid"]].append((event["ts"], event["args"]["W"]))
    assert counters, "the trace has no counter of power"
    means = []
    for values in counters.values():
        values.sort()
        assert all(0 < watts <= power["limit_w"] + 1e-6 for _, watts in values), values
        ends = [ts for ts, _ in values[1:]] + [step_us]
        joules = sum(watts * max(0.0, end - ts) for (ts, watts), end in zip(values, ends))
        means.append((joules + values[-1][1] * values[0][0]) / step_us)
    mean = sum(means) / len(means)
    assert abs(mean / power["power_w"] - 1) < POWER_TOLERANCE, f"the counters' mean is {mean:.0f} W, the forecast {power['power_w']:.0f} W"


def covered(slices: list) -> float:
    """The time in which at least one of the slices runs."""
    total, end = 0.0, 0.0
    for start, stop in sorted(slices):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def check(program: str, options: list) -> str:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        forecast = run(program, options, trace)
        document = json.loads(trace.read_text())
    tracks = slices_of(document["traceEvents"])
    for track, slices in tracks.items():
        slices.sort()
        for (_, end), (start, _) in zip(slices, slices[1:]):
            assert start >= end - TOLERANCE_US, f"slices of {track} overlap at {start} us"
    step_us = 1e6 * forecast["latency_s"]
    last = max(slices[-1][1] for slices in tracks.values())
    if forecast["power"]:
        check_power(document["traceEvents"], forecast, step_us)
    assert abs(last - step_us) < TOLERANCE_US, f"the trace ends at {last} us, the step at {step_us} us"
    # Where all replicas are alike, the trace has the first one: its ranks do something but in the bubble.
    stages = forecast["stages"]
    ranks = sorted({pid for pid, _ in tracks})
    if len(ranks) == len(stages):
        for rank, stage in zip(ranks, stages):
            busy = covered([s for (pid, _), slices in tracks.items() if pid == rank for s in slices])
            expected = step_us - 1e6 * stage["bubble_s"]
            assert abs(busy - expected) < 1e-6 * step_us, f"stage {stage['stage']}: busy for {busy} us, expected {expected}"
    return f"{sum(map(len, tracks.values()))} slices on {len(tracks)} streams of {len(ranks)} ranks, {step_us / 1e3:.1f} ms"


def check_profile(program: str) -> str:
    """A profile of PyTorch: as it was measured, and as it is carried to another GPU."""
    profile = Path(__file__).resolve().parent / "data/profiler_trace.json.gz"
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        command = [program, "forecast", str(profile), "--gpu", "B200", "--format", "json", "--timeline-trace", str(trace)]
        report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)
        document = json.loads(trace.read_text())
    tracks = slices_of([event for event in document["traceEvents"] if event["name"] != "process_sort_index"])
    for pid, span_s in ((1, report["span_s"]), (2, report["carried"]["span_s"])):
        slices = [s for (process, _), all_slices in tracks.items() if process == pid for s in all_slices]
        last = max(end for _, end in slices)
        assert abs(last - 1e6 * span_s) < TOLERANCE_US, f"process {pid} ends at {last} us, the span is {span_s} s"
    return f"{sum(map(len, tracks.values()))} slices, {1e3 * report['span_s']:.1f} ms, there {1e3 * report['carried']['span_s']:.1f} ms"


def main() -> int:
    failed = 0
    checks = {name: lambda options=options: check(sys.argv[1], options) for name, options in STEPS.items()}
    checks["a profile"] = lambda: check_profile(sys.argv[1])
    for name, one in checks.items():
        try:
            print(f"ok      {name}: {one()}")
        except (AssertionError, subprocess.CalledProcessError) as error:
            failed += 1
            print(f"FAILED  {name}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
