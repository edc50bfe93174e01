"""Judges the slices of an A100 on MISO's visible rows. Usage: evaluate_mig.py MIG.json [PLOTS]     MIG.json is what mig_forecasts.py writes"""

import json
import sys
import numpy as np
import pandas as pd
from law import CONSTANTS
from common import DATA

rows = pd.read_csv(DATA / "miso_mig.csv")
f = pd.DataFrame(json.load(open(sys.argv[1])))
x = rows.merge(f, on=["model", "batch", "slice"])
b = x[x.slice == "7g.40gb"].set_index(["model", "batch"])
key = list(zip(x.model, x.batch))
x["t7"], x["f7"], x["n"] = b.median_s[key].values, b.latency[key].values, b.kernels[key].values
x["slow"] = x.median_s / x.t7
x["s"] = x.latency / x.f7  # of the GPU's part, forecast alone
x["smi"] = x.whole_gpu_sm_percent / 100
x["rule"] = np.minimum(1, np.maximum(x.f7, x.t7 - x.n * CONSTANTS["slow"]) / x.t7)
x["plain"] = np.minimum(1, x.f7 / x.t7)
LAWS = {
    "the forecast's ratio alone (no host)": x.s,
    "u = forecast / measured on 7g": 1 - x.plain + x.plain * x.s,
    "**u by the rule (launches of 40 us, measured speed on 7g)**": 1 - x.rule + x.rule * x.s,
    "u = nvidia-smi's utilization of the whole card": 1 - x.smi + x.smi * x.s,
}
y = (x.slice != "7g.40gb") & (x.model != "deepspeech2")
models, slices = ["bert", "embedding", "gnn", "transformer"], ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb"]
print(f"## Slices of an A100 40 GB, slow-down against 7g, {y.sum()} rows without deepspeech2 and 7g: mean error %")
print("| law | all | " + " | ".join(models + slices) + " | deepspeech2 |\n|---|" + "--:|" * (len(models) + len(slices) + 2))
for name, p in LAWS.items():
    e = 100 * (p / x.slow - 1)
    cells = (
        [e[y].abs().mean()] + [e[y & (x.model == m)].abs().mean() for m in models] + [e[y & (x.slice == s)].abs().mean() for s in slices]
    )
    cells.append((100 * (p / (x.mean_s / b.mean_s[key].values) - 1))[(x.slice != "7g.40gb") & (x.model == "deepspeech2")].abs().mean())
    print(f"| {name} | " + " | ".join(f"{c:.1f}" for c in cells) + " |")
med = x[y].groupby("slice").slow.transform("median")
print(f"| median of each slice | {(100 * (med / x[y].slow - 1)).abs().mean():.1f} |")
w = f[f.slice == "whole"].merge(f[f.slice == "7g.40gb"], on=["model", "batch"])
q = w.latency_y / w.latency_x
print(f"\n7g (98 SMs) against the card without MIG (108): {q.min():.3f} to {q.max():.3f} times as long, forecast")
print(
    "\nMemory: rows that are missing because they did not fit, forecast peak in GiB: "
    + ", ".join(
        f"{m} {n} on {s}: {f[(f.model == m) & (f.batch == n)].peak.max() / 2**30:.1f} of {g}"
        for m, n, s, g in (
            ("bert", 2, "1g", 4.75),
            ("bert", 4, "1g", 4.75),
            ("bert", 6, "2g", 9.75),
            ("transformer", 64, "1g", 4.75),
            ("transformer", 128, "2g", 9.75),
            ("gnn", 512, "1g", 4.75),
            ("deepspeech2", 16, "1g", 4.75),
        )
    )
)
if len(sys.argv) > 2:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(4.2, 4))
    for m in models:
        k = y & (x.model == m)
        ax.loglog(x.slow[k], LAWS["**u by the rule (launches of 40 us, measured speed on 7g)**"][k], "o", ms=4, label=m)
    ax.plot([1, 8], [1, 8], "k-", lw=0.7)
    ax.set_xlabel("measured slow-down against 7g")
    ax.set_ylabel("forecast")
    ax.legend(fontsize=8)
    fig.tight_layout()
    fig.savefig(sys.argv[2] + "/mig.png", dpi=80)
