#!/usr/bin/env python3
"""GPU time of every PyTorch operator of a model's step, by operator and shapes of its inputs, beside the step's own time.

    research/memory/profile_ops.py -o ops.csv --cases cases.csv --seconds 200

Needs torch, transformers and an NVIDIA GPU. A case is a row as in research/memory/memory_gpu_cases.csv. Rows of the output: the case, its
step time `latency_s`, `issue_s` (until the host has issued the step), `busy_s` (sum of kernels), `sm_clock_hz` under this load;
then operator, shapes of its inputs, calls of one step, and `total_s`, the time of the kernels that it launches itself.
"""
import argparse
import csv
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/pytorch"))
import memory_models  # noqa: E402
import torch  # noqa: E402
from measure_memory import Job  # noqa: E402

COLUMNS = memory_models.COLUMNS + ["latency_s", "issue_s", "busy_s", "sm_clock_hz", "power_w", "op", "shapes", "calls", "total_s"]
STEPS = 6
SUSTAINED_SECONDS = 1.0  # before the clock is read


def sensors():
    command = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"]
    clock, power = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0].split(",")
    return float(clock) * 1e6, float(power)


def timed_step(job):
    torch.cuda.synchronize()
    start = time.perf_counter()
    job.step(lambda phase: None)
    issued = time.perf_counter()
    torch.cuda.synchronize()
    return time.perf_counter() - start, issued - start


def profile(case):
    job = Job(case, "cuda", False)
    for _ in range(3):
        timed_step(job)
    times = [timed_step(job) for _ in range(STEPS)]
    start = time.perf_counter()
    while time.perf_counter() - start < SUSTAINED_SECONDS:
        job.step(lambda phase: None)
    clock, power = sensors()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as trace:
        job.step(lambda phase: None)
        torch.cuda.synchronize()
    averages = [e for e in trace.key_averages(group_by_input_shape=True)
                if e.self_device_time_total > 0 and e.device_type == torch.autograd.DeviceType.CPU]
    common = {**case, "latency_s": statistics.median(t for t, _ in times), "issue_s": statistics.median(i for _, i in times),
              "busy_s": sum(e.self_device_time_total for e in averages) * 1e-6, "sm_clock_hz": clock, "power_w": power}
    for e in sorted(averages, key=lambda e: -e.self_device_time_total):
        yield {**common, "op": e.key, "shapes": " ".join(str(s).replace(" ", "") for s in e.input_shapes or [] if s),
               "calls": e.count, "total_s": f"{e.self_device_time_total * 1e-6:.6g}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--seconds", type=float, default=200)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    begin = time.perf_counter()
    with open(args.output, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for case in memory_models.read_cases(args.cases):
            if time.perf_counter() - begin > args.seconds:
                break
            try:
                for row in profile(case):
                    writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
                print(f"{time.perf_counter() - begin:.0f} s", *case.values(), "done", flush=True)
            except Exception as error:  # of the libraries: the next case goes on
                print(*case.values(), type(error).__name__, str(error)[:200], flush=True)
            torch.cuda.empty_cache()
            stream.flush()


if __name__ == "__main__":
    main()
