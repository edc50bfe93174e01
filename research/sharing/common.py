"""Data and features shared by the studies: jobs alone (forecasts), visible pairs of Gavel's motivation series."""

import json
import pathlib
import subprocess
import numpy as np
import pandas as pd

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared/data/colocation"  # beside the repository
CSV = DATA / "gavel.csv.xz"
SHORT = {"ResNet-18": "r18", "ResNet-50": "r50", "Transformer": "tr", "LM": "lm", "Recommendation": "rec", "A3C": "a3c", "CycleGAN": "cyc"}
JOBS = json.load(open(pathlib.Path(__file__).parent / "jobs.json"))["jobs"]
USERS = 116677  # users of ML-20M in training; the motivation series counts epochs of Recommendation, see README.md


def jid(model, batch):
    return SHORT[model] + ("" if batch is None or pd.isna(batch) else f"-{int(batch)}")


def forecast(tilecast, model, *options):
    """What `tilecast forecast` says in JSON, without the host's launches; None, and the message printed, where it fails."""
    command = [tilecast, "forecast", model, "--mode", "training", "--attention", "eager", "--host-launch-us", "0", "--format", "json"]
    run = subprocess.run([*command, *options], capture_output=True, text=True)
    if run.returncode:
        print(model, *options, run.stderr[:300])
        return None
    return json.loads(run.stdout)


def load(alone_json, series="motivation"):
    jobs = {}
    for r in json.load(open(alone_json)):
        l = np.array([k["l"] for k in r["kernels"]])
        n = np.array([k["n"] for k in r["kernels"]], float)
        w = np.array([k["w"] or 1 for k in r["kernels"]], float)
        f = np.array([k["f"] for k in r["kernels"]], float)
        b = np.array([k["b"] for k in r["kernels"]], float)
        jobs[r["gpu"], jid(r["model"], r["batch"])] = dict(
            l=l,
            n=n,
            w=w,
            f=f,
            b=b,
            S=float((l * n).sum()),
            N=float(n.sum()),
            peak=r["peak"],
            framework=r["memory"]["framework_bytes"],
            bytes=r["bytes"],
            flops=r["flops"],
            model=r["model"],
            batch=r["batch"],
        )
    d = pd.read_csv(CSV)
    d = d[d.series == series]
    for _, r in d[d.partner_model.isna()].iterrows():
        j = jobs[r.gpu, jid(r.model, r.batch)]
        j["rate"] = r.alone_steps_s
        if r.model == "Recommendation" and series == "motivation":
            j["rate"] *= np.ceil(USERS / r.batch)
        j["procs"], j["input_binds"], j["prefetch"] = (JOBS[r.model][k] for k in ("processes", "input_binds", "prefetch"))
        j["need"] = j["peak"] + (j["procs"] - 1) * j["framework"]
        j["T"] = 1 / j["rate"]
        loader = JOBS[r.model].get("loader_s_per_item")
        if loader:
            j["loader"] = loader * r.batch
        j["u"] = j["S"] * j["rate"] * j["procs"]
    p = d[d.partner_model.notna()].copy()
    p["i"] = [jid(a, b) for a, b in zip(p.model, p.batch)]
    p["j"] = [jid(a, b) for a, b in zip(p.partner_model, p.partner_batch)]
    p["r"] = p.packed_steps_s / p.alone_steps_s
    p["ran"] = (p.packed_steps_s > 0) & (p.partner_packed_steps_s > 0)
    return jobs, p.reset_index(drop=True)
