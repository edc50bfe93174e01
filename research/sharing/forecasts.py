"""Forecasts every job alone on every card with tilecast and keeps what the laws need. Usage: forecasts.py TILECAST MODELS OUT.json"""

import json
import pathlib
import sys
from common import forecast

here = pathlib.Path(__file__).parent
tilecast, models, out = sys.argv[1:4]
spec = json.loads((here / "jobs.json").read_text())
rows = []
for gpu, device in spec["cards"].items():
    for name, job in spec["jobs"].items():
        options = ["--gpu", str(here / device) if device.endswith(".json") else device, "--optimizer", job["optimizer"], *spec["options"]]
        for batch in job["batches"]:
            d = forecast(tilecast, f"{models}/" + job["file"].format(batch=batch), *options)
            if d is None:
                continue
            peak = d["memory"]["peak_bytes"]
            if "memory_file" in job:
                peak = forecast(tilecast, f"{models}/" + job["memory_file"].format(batch=batch), *options)["memory"]["peak_bytes"]
            k = [dict(l=x["latency_s"], n=x["count"], f=x["flops"], b=x["bytes"], w=x.get("waves")) for x in d["kernels"]]
            rows.append(
                dict(gpu=gpu, model=name, batch=batch, peak=peak, memory=d["memory"], flops=d["flops"], bytes=d["bytes"], kernels=k)
            )
            print(gpu, name, batch, f"{d['latency_s'] * 1e3:.2f} ms, {sum(x['n'] for x in k)} kernels, {peak / 2**30:.2f} GiB", flush=True)
json.dump(rows, open(out, "w"))
