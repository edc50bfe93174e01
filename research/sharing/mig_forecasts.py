"""Forecasts MISO's models on the slices of an A100. Usage: mig_forecasts.py TILECAST MODELS OUT.json [DEVICE.json]"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import pandas as pd
from common import DATA

here = pathlib.Path(__file__).parent
tilecast, models, out, device = sys.argv[1:5]
whole = json.load(open(device))
profiles = {p[0]: p for p in json.load(open(here / "mig.json"))["gpus"]["nvidia-a100-sxm4-40gb"]["profiles"]}
rows = pd.read_csv(DATA / "miso_mig.csv")
folder = pathlib.Path(tempfile.mkdtemp())


def slice_of(sms, eighths, name):
    d = copy.deepcopy(whole)
    part = sms / whole["sm_count"]["value"]
    d["id"], d["aliases"] = name, []
    d["sm_count"]["value"] = sms
    for table in ("vector_flops_per_s", "matrix_flops_per_s"):
        for x in d[table].values():
            x["value"] *= part
    for k in ("memory_bytes_per_s", "l2_bytes", "memory_bytes"):
        d[k]["value"] = type(d[k]["value"])(d[k]["value"] * eighths / 8)
    path = folder / (name.replace(".", "_") + ".json")
    path.write_text(json.dumps(d))
    return path


devices = {n: slice_of(p[2], p[3], "slice-" + n.replace(".", "-")) for n, p in profiles.items() if "+" not in n}
devices["whole"] = slice_of(whole["sm_count"]["value"], 8, "slice-whole")
result = []
for (model, batch), g in rows.groupby(["model", "batch"]):
    for name in [*sorted(g.slice), "whole"]:
        if model == "bert":
            a = ["bert-base", "--batch", str(batch), "--seq", "512", "--dtype", "tf32"]
        else:  # a graph file states its dtypes
            text = pathlib.Path(f"{models}/miso_{model}_{batch}.tcg").read_text().replace("fp32", "tf32")
            (folder / "model.tcg").write_text(text)
            a = [str(folder / "model.tcg")]
        a = [
            tilecast,
            "forecast",
            *a,
            "--gpu",
            str(devices[name]),
            "--mode",
            "training",
            "--attention",
            "eager",
            "--optimizer",
            "adam",
            "--optimizer-impl",
            "fused",
            "--host-launch-us",
            "0",
            "--format",
            "json",
        ]
        p = subprocess.run(a, capture_output=True, text=True)
        if p.returncode:
            print(model, batch, name, p.stderr[:300])
            continue
        d = json.loads(p.stdout)
        k = d["kernels"]
        result.append(
            dict(
                model=model,
                batch=batch,
                slice=name,
                latency=d["latency_s"],
                kernels=sum(x["count"] for x in k),
                peak=d["memory"]["peak_bytes"],
                memory_s=sum(x["latency_s"] * x["count"] for x in k if x["limit"] == "memory"),
                latency_s_limited=sum(x["latency_s"] * x["count"] for x in k if x["limit"] == "latency"),
            )
        )
json.dump(result, open(out, "w"))
