"""Forecasts every job alone on every card with tilecast and keeps what the laws need. Usage: forecasts.py TILECAST MODELS OUT.json"""

import json
import subprocess
import sys
import pathlib

here = pathlib.Path(__file__).parent
tilecast, models, out = sys.argv[1:4]
spec = json.loads((here / "jobs.json").read_text())
rows = []
for gpu, device in spec["cards"].items():
    for name, job in spec["jobs"].items():
        for batch in job["batches"]:
            f = f"{models}/" + job["file"].format(batch=batch)
            a = [
                tilecast,
                "forecast",
                f,
                "--gpu",
                str(here / device) if device.endswith(".json") else device,
                "--optimizer",
                job["optimizer"],
                *spec["options"],
                "--format",
                "json",
            ]
            p = subprocess.run(a, capture_output=True, text=True)
            if p.returncode:
                print(gpu, name, batch, p.stderr[:300])
                continue
            d = json.loads(p.stdout)
            peak = d["memory"]["peak_bytes"]
            if "memory_file" in job:
                a[2] = f"{models}/" + job["memory_file"].format(batch=batch)
                peak = json.loads(subprocess.run(a, capture_output=True, text=True).stdout)["memory"]["peak_bytes"]
            k = [
                dict(
                    l=x["latency_s"],
                    n=x["count"],
                    f=x["flops"],
                    b=x["bytes"],
                    w=x.get("waves"),
                    t=x.get("tile"),
                    u=x.get("utilization_ratio"),
                    lim=x["limit"],
                    op=x["op"],
                    ph=x["phase"],
                )
                for x in d["kernels"]
            ]
            rows.append(
                dict(
                    gpu=gpu,
                    model=name,
                    batch=batch,
                    latency=d["latency_s"],
                    peak=peak,
                    memory=d["memory"],
                    flops=d["flops"],
                    bytes=d["bytes"],
                    kernels=k,
                )
            )
            print(
                gpu,
                name,
                batch,
                round(d["latency_s"] * 1e3, 2),
                "ms",
                sum(x["n"] for x in k),
                "kernels",
                round(peak / 2**30, 2),
                "GiB",
                flush=True,
            )
json.dump(rows, open(out, "w"))
