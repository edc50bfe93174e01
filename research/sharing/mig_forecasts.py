"""Forecasts MISO's models on the slices of an A100. Usage: mig_forecasts.py TILECAST MODELS OUT.json"""

import json
import pathlib
import sys
import tempfile
import pandas as pd
from common import DATA, forecast

CARD = "nvidia-a100-pcie-40gb"
tilecast, models, out = sys.argv[1:4]
rows = pd.read_csv(DATA / "miso_mig.csv")
result = []
with tempfile.TemporaryDirectory() as folder:
    graph = pathlib.Path(folder, "model.tcg")
    for (model, batch), g in rows.groupby(["model", "batch"]):
        what = ["bert-base", "--batch", str(batch), "--seq", "512", "--dtype", "tf32"]
        if model != "bert":  # a graph file states its dtypes
            graph.write_text(pathlib.Path(f"{models}/miso_{model}_{batch}.tcg").read_text().replace("fp32", "tf32"))
            what = [str(graph)]
        for name in [*sorted(g.slice), "whole"]:
            device = CARD if name == "whole" else f"{CARD}:{name}"
            d = forecast(tilecast, *what, "--gpu", device, "--optimizer", "adam", "--optimizer-impl", "fused")
            if d is None:
                continue
            kernels = sum(x["count"] for x in d["kernels"])
            result.append(
                dict(model=model, batch=batch, slice=name, latency=d["latency_s"], kernels=kernels, peak=d["memory"]["peak_bytes"])
            )
json.dump(result, open(out, "w"))
