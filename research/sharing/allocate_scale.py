"""Time and memory of large allocations. Usage: allocate_scale.py TILECAST [WORD...]; only cases whose name has each WORD are run.

Jobs are random and seeded: each has speeds of its own on each kind, 2 to 30 times as high on the fastest as on the slowest, so that no two
are alike. CPU seconds are of all threads (user and system), forecasts of memory included; memory is the largest resident set."""

import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

KINDS = ("nvidia-k80", "nvidia-p100-pcie-16gb", "nvidia-v100-sxm2-16gb", "T4", "L4", "A10", "A100-40GB", "A100-80GB", "H100", "H200")
PRICES = (0.45, 1.46, 2.48, 0.35, 0.7, 0.9, 1.3, 1.6, 2.5, 3.2)
OBJECTIVES = ("throughput", "makespan", "fairness", "finish-time", "cost", "deadline")
HOUR = 3600


def random_job(rng, name, kinds):
    """A job of an hour to a day on its fastest kind."""
    size, gain = 2 ** (6 * rng.random()), 2 + 28 * rng.random() ** 2
    speeds = {kind: size * gain ** ((i + rng.random()) / len(kinds)) for i, kind in enumerate(kinds)}
    steps = max(speeds.values()) * HOUR * 24 ** rng.random()
    return {"name": name, "model": "resnet-50", "mode": "training", "batch": 8, "dtype": "fp32", "steps": steps, "steps_per_s": speeds}


def random_jobs(count, kinds, seed, different=None):
    """`different`: so many differ in speed, all in steps; None: all."""
    rng = random.Random(seed)
    jobs = [random_job(rng, f"{i}", kinds) for i in range(count)]
    for i, job in enumerate(jobs if different else ()):
        job["steps_per_s"] = jobs[i % different]["steps_per_s"]
    return jobs


def with_deadlines(jobs, gpus, share, seed):
    """Deadlines of a part of the jobs, all different, about when the pool can be done."""
    rng = random.Random(seed)
    done = sum(job["steps"] / max(job["steps_per_s"].values()) for job in jobs) / gpus * 2
    longest = max(job["steps"] / max(job["steps_per_s"].values()) for job in jobs)
    for job in jobs:
        if rng.random() < share:
            job["deadline_s"] = max(done, longest) * (0.1 + 1.2 * rng.random())
    return jobs


def arrivals(count, jobs, gpus, load, seed):
    """`load`: work that arrives over what the pool does in that time, each job on its fastest kind."""
    rng = random.Random(seed)
    mean = sum(job["steps"] / max(job["steps_per_s"].values()) for job in jobs) / len(jobs)
    time, rows = 0.0, ["job,arrival_s,steps"]
    for _ in range(count):
        time += rng.expovariate(gpus * load / mean)
        job = rng.choice(jobs)
        rows.append(f"{job['name']},{time:.3f},{job['steps'] * (0.5 + rng.random()):.0f}")
    return "\n".join(rows) + "\n"


def cases():
    """Name, jobs, number of kinds, GPUs of each, options, and the trace."""
    for kinds in (3, 10):
        for count in (100, 1000, 10000):
            for objective in OBJECTIVES:
                jobs = random_jobs(count, KINDS[:kinds], 1)
                each = max(2, count // (8 * kinds))
                if objective in ("cost", "deadline"):
                    jobs = with_deadlines(jobs, each * kinds, 0.5, 2)
                yield f"{objective} {count}x{kinds}", jobs, kinds, each, ["--objective", objective], None
    for objective in ("makespan", "cost", "deadline"):
        for count in (100, 1000, 10000):
            jobs = with_deadlines(random_jobs(count, KINDS[:3], 1), count // 8, 0.5, 2)
            yield f"whole {objective} {count}x3", jobs, 3, count // 24, ["--objective", objective, "--whole"], None
    for objective in ("throughput", "makespan", "fairness"):
        for count, different in ((1000, 100), (10000, 100)):
            jobs = random_jobs(count, KINDS[:3], 1, different)
            yield f"share {objective} {count}x3 of {different}", jobs, 3, count // 24, ["--objective", objective, "--share"], None
    for objective in ("throughput", "makespan", "fairness", "finish-time", "cost"):
        for load in (0.5, 1.5):
            jobs = random_jobs(40, KINDS[:3], 1)
            trace = arrivals(3000, jobs, 48, load, 3)
            yield f"arrivals {objective} 3000x3 load {load}", jobs, 3, 16, ["--objective", objective], trace


def run(tilecast, folder, jobs, kinds, each, options, trace):
    (folder / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    pool = ",".join(f"{each}x{kind}" for kind in KINDS[:kinds])
    prices = ",".join(f"{kind}={price}" for kind, price in zip(KINDS[:kinds], PRICES))
    command = [
        tilecast,
        "allocate",
        str(folder / "jobs.json"),
        "--pool",
        pool,
        "--price-per-gpu-hour",
        prices,
        "--format",
        "json",
        *options,
    ]
    if trace:
        (folder / "trace.csv").write_text(trace)
        command += ["--arrivals", str(folder / "trace.csv")]
    command += ["-o", str(folder / "out.json")]
    limit = int(os.environ.get("LIMIT_S", "600"))
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    )
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    if os.WIFSIGNALED(status):
        return seconds, megabytes, f"ended at {limit} CPU s"
    if status != 0:
        return seconds, megabytes, errors.strip().splitlines()[-1][:90]
    answer = json.loads((folder / "out.json").read_text())
    if trace:
        return seconds, megabytes, " ".join(f"{policy['policy']}: {policy['mean_s'] / HOUR:.4g} h" for policy in answer["policies"])
    return (
        seconds,
        megabytes,
        f"{answer.get('value'):.9g}{'' if answer['proven'] else ' not proven'}, blind {answer.get('blind_value') or 0:.6g}",
    )


def main(tilecast, *words):
    print("| case | CPU s | MB | answer |\n|---|--:|--:|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, *case in cases():
            if all(word in f" {name} " for word in words):
                seconds, megabytes, answer = run(tilecast, pathlib.Path(folder), *case)
                print(f"| {name} | {seconds:.2f} | {megabytes:.0f} | {answer} |", flush=True)


main(*sys.argv[1:])
