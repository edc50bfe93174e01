#!/usr/bin/env python3
"""The memory plan against whole models measured on a GPU (data/measurements/nvidia-h100-sxm5-80gb/models.3.csv).

    tests/check_measured_memory.py <tilecast> [--max-percent X --mean-percent X --total-mean-percent X] [--skip MODEL ...]

Compares, after a replay of PyTorch's caching allocator, allocated with torch.cuda.max_memory_allocated, and total (reserved, and
what the process takes beside it) with max_memory_reserved + context_bytes. Prints each case, mean and worst. Models that Tilecast
does not read are listed. Exit status 1 if an error passes a limit, or if there is nothing to compare.
"""
import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "data" / "measurements" / "nvidia-h100-sxm5-80gb" / "models.3.csv"


def command_of(tilecast, row, config):
    command = [tilecast, "forecast", str(config), "--gpu", "nvidia-h100-sxm5-80gb", "--memory-timeline", "json",
               "--mode", row["mode"], "--batch", row["batch"], "--dtype", row["dtype"],
               "--attention", "flash" if row["attention"] == "sdpa" else "eager"]
    if row["seq"] not in ("", "0"):
        command += ["--seq", row["seq"]]
    if row["mode"] == "training":
        optimizer, _, implementation = row["optimizer"].partition("-")
        command += ["--optimizer", optimizer, "--loss", "memory" if row["loss"] == "1" else "none",
                    "--main-params-dtype", "as-model", "--optimizer-impl", implementation.replace("forloop", "for-loop") or "foreach"]
        if row["checkpointing"] == "1":
            command += ["--checkpointing", "full"]
    return command


def compare(tilecast, row, folder):
    """(errors of allocated and total in percent, None), or (None, why not)."""
    config = Path(folder) / "config.json"
    config.write_text(row["config"], encoding="utf-8")
    run = subprocess.run(command_of(tilecast, row, config), capture_output=True, text=True)
    if run.returncode:
        return None, run.stderr.strip().splitlines()[-1][:160]
    plan = json.loads(run.stdout)
    total = plan["reserved_high_bytes"] + plan["framework_bytes"]
    measured = int(row["peak_reserved_bytes"]) + int(row["context_bytes"])
    return (100 * (plan["allocated_bytes"] / int(row["peak_allocated_bytes"]) - 1), 100 * (total / measured - 1)), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilecast")
    parser.add_argument("--measured", default=MEASURED)
    parser.add_argument("--max-percent", type=float, default=5.0, help="of each case's allocated bytes [5]")
    parser.add_argument("--mean-percent", type=float, default=1.0, help="of all allocated bytes [1]")
    parser.add_argument("--total-mean-percent", type=float, default=5.0, help="of all totals [5]")
    parser.add_argument("--skip", nargs="*", default=[], help="models that the limit of each case leaves out")
    args = parser.parse_args()
    with open(args.measured, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    keys = ("model", "mode", "batch", "seq", "dtype", "attention", "checkpointing", "optimizer")
    errors, failures = [], []
    print(f"{'case':72} {'allocated %':>11} {'total %':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            if row["status"] != "ok":
                continue
            name = " ".join(row[key] for key in keys)
            found, why = compare(args.tilecast, row, folder)
            if found is None:
                print(f"{name:72} {why}")
                continue
            errors.append(found)
            print(f"{name:72} {found[0]:+11.2f} {found[1]:+8.2f}")
            if abs(found[0]) > args.max_percent and row["model"] not in args.skip:
                failures.append(f"{name}: allocated {found[0]:+.1f} %")
    for title, sizes, limit in (("allocated", [abs(a) for a, _ in errors], args.mean_percent),
                                ("total", [abs(t) for _, t in errors], args.total_mean_percent)):
        if not sizes:
            continue
        mean = sum(sizes) / len(sizes)
        print(f"{title:10} {len(sizes)} cases   mean {mean:.2f} %   worst {max(sizes):.2f} %")
        if mean > limit:
            failures.append(f"mean of {title}: above {limit} %")
    print("\n".join(failures) if failures else "all within the limits")
    return 1 if failures or not errors else 0


if __name__ == "__main__":
    sys.exit(main())
