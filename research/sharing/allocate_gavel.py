"""Allocations found with forecasts, judged with Gavel's measured speeds. Usage: allocate_gavel.py TILECAST MODELS [SEEDS [JOBS]]

Random sets of jobs of Gavel's types (motivation series) on a pool of K80, P100 and V100. `tilecast allocate` finds the best allocation
by forecasts and by measured speeds; both are judged with measured speeds: once, and over time, where the GPUs are divided anew when a
job ends. Loader times are stated in allocate_gavel.json: one number for a job on all cards, and a factor for the hosts of each card."""

import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
from statistics import mean
import pandas as pd
from common import CSV, JOBS, USERS

here = pathlib.Path(__file__).parent
CARDS = {"k80": "nvidia-k80", "p100": "nvidia-p100-pcie-16gb", "v100": "nvidia-v100-sxm2-16gb"}
STATED = json.loads((here / "allocate_gavel.json").read_text())
OBJECTIVES = ("throughput", "fairness", "makespan")


def measured_speeds():
    """Steps/s by job type and card; without types that have the very same speed on two cards, which were not measured on one of them."""
    table = pd.read_csv(CSV)
    table = table[(table.series == "motivation") & table.partner_model.isna()]
    speeds = {}
    for row in table.itertuples():
        batch = None if pd.isna(row.batch) else int(row.batch)
        # Recommendation's "steps" are epochs, see README.md.
        factor = math.ceil(USERS / batch) if row.model == "Recommendation" else 1
        speeds.setdefault((row.model, batch), {})[CARDS[row.gpu]] = row.alone_steps_s * factor
    return {kind: own for kind, own in speeds.items() if len(set(own.values())) == len(own)}


def job_of(model, batch, models):
    job = JOBS[model]
    loader = STATED["loader_s_per_item"].get(model, 0) * (batch or 1) + STATED["loader_s_per_step"].get(model, 0)
    return {
        "model": f"{models}/" + job["file"].format(batch=batch),
        "mode": "training",
        "attention": "eager",
        "dtype": "fp32",
        "optimizer": job["optimizer"],
        "optimizer_impl": "for-loop",
        "host_launch_us": STATED["host_launch_us"],
        "processes": job["processes"],
        "prefetch": STATED["prefetch"].get(model, 0),
        "loader_s": loader,
    }


def allocate(tilecast, jobs, pool, objective):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"jobs": jobs}, file)
        file.flush()
        command = [tilecast, "allocate", file.name, "--objective", objective, "--format", "json"]
        command += ["--host-factor", ",".join(f"{gpu}={factor}" for gpu, factor in STATED["host_factor"].items())]
        command += ["--pool", ",".join(f"{count}x{gpu}" for gpu, count in pool.items())]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def judged(result, types, steps, pool, speeds, objective):
    """The objective's value by measured speeds; higher is better. A job that did not run on a card makes no steps there."""
    values, gpus = [], sum(pool.values())
    for job, kind, count in zip(result["jobs"], types, steps):
        own = speeds[kind]
        rate = sum(place["share"] * own.get(place["gpu"], 0) for place in job["places"])
        equal = sum(own.get(gpu, 0) * n for gpu, n in pool.items()) / max(len(types), gpus)
        values.append({"throughput": rate / max(own.values()), "fairness": rate / equal, "makespan": rate / count}[objective])
    return sum(values) if objective == "throughput" else min(values)


def over_time(tilecast, jobs, types, steps, pool, speeds, objective):
    """When the last job ends, and the mean of all ends; steps are made at measured speeds."""
    left, ends, now = list(steps), [None] * len(jobs), 0.0
    while None in ends:
        active = [i for i, end in enumerate(ends) if end is None]
        result = allocate(tilecast, [jobs[i] | {"steps": left[i]} for i in active], pool, objective)
        rates = {
            i: sum(place["share"] * speeds[types[i]].get(place["gpu"], 0) for place in job["places"])
            for i, job in zip(active, result["jobs"])
        }
        span = min(left[i] / rate for i, rate in rates.items() if rate > 0)
        now += span
        for i, rate in rates.items():
            left[i] -= span * rate
            if left[i] <= 1e-6 * steps[i]:
                ends[i] = now
    return max(ends), mean(ends)


def table(title, columns, rows):
    print(f"\n| {title} | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name in dict.fromkeys(row[0] for row in rows):
        own = list(zip(*(row[1:] for row in rows if row[0] == name)))
        cells = [name, f"{mean(own[0]):.1%}", f"{min(own[0]):.1%}", *(f"{mean(column):.2f}" for column in own[1:])]
        print("|", " | ".join(cells), "|")


def main(tilecast, models, seeds=6, count=30):
    speeds = measured_speeds()
    once, timed = [], []
    for seed in range(int(seeds)):
        rng = random.Random(seed)
        pool = {gpu: rng.randint(2, 6) for gpu in CARDS.values()}
        types = [rng.choice(sorted(speeds, key=str)) for _ in range(int(count))]
        # An hour to a day on the fastest card.
        steps = [max(speeds[kind].values()) * 3600 * 24 ** rng.random() for kind in types]
        forecast = [job_of(*kind, models) | {"name": f"{i}", "steps": n} for i, (kind, n) in enumerate(zip(types, steps))]
        measured = [job | {"steps_per_s": speeds[kind]} for job, kind in zip(forecast, types)]
        for objective in OBJECTIVES:
            best = allocate(tilecast, measured, pool, objective)
            found = judged(allocate(tilecast, forecast, pool, objective), types, steps, pool, speeds, objective)
            possible = judged(best, types, steps, pool, speeds, objective)
            # The best one in which all jobs use the kinds in the pool's proportion, at measured speeds.
            blind = 1 / best["blind_value"] if objective == "makespan" else best["blind_value"]
            once.append((objective, found / possible, found / blind, possible / blind))
        for objective, measure in (("makespan", 0), ("fairness", 1)):
            ends = [over_time(tilecast, jobs, types, steps, pool, speeds, objective)[measure] for jobs in (forecast, measured)]
            timed.append((f"{objective}, {'mean time' if measure else 'last end'}", ends[1] / ends[0]))
        print(seed, *pool.values(), *(f"{row[1]:.3f}" for row in once[-3:] + timed[-2:]), flush=True)
    table("once", ("reached by forecasts", "least", "gain over blind", "possible gain"), once)
    table("over time", ("reached by forecasts", "least"), timed)


main(*sys.argv[1:])
