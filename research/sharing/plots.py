"""Figures of README.md: plots.py ALONE.json OUT (needs matplotlib)"""

import sys
import numpy as np
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import law
from common import load

jobs, pairs = load(sys.argv[1])
out = sys.argv[2]
ran = pairs[pairs.ran]
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8))
for ax, g in zip(axes, ("k80", "p100", "v100")):
    J = {k: law.demand(j, law.HOW[g], law.CONSTANTS) for (c, k), j in jobs.items() if c == g}
    x = ran[ran.gpu == g]
    f = np.array([law.pair(J[a], J[b])[0] for a, b in zip(x.i, x.j)])
    for m in sorted(x.model.unique()):
        k = (x.model == m).values
        ax.plot(x.r[k], f[k], ".", ms=4, label=m)
    ax.plot([0, 1], [0, 1], "k-", lw=0.6)
    ax.set_title(f"{g.upper()}: error {100 * np.mean(np.abs(f / x.r - 1)):.1f} %", fontsize=10)
    ax.set_xlabel("measured relative speed")
    ax.set_xlim(0, 1.02)
    ax.set_ylim(0, 1.02)
axes[0].set_ylabel("forecast")
axes[0].legend(fontsize=7)
fig.tight_layout()
fig.savefig(out + "/pairs.png", dpi=75)

fig, axes = plt.subplots(1, 3, figsize=(11, 3.2))
for ax, g in zip(axes, ("k80", "p100", "v100")):
    x = ran[ran.gpu == g]
    u = lambda k: min(1, law.demand(jobs[g, k], "kernels", law.CONSTANTS)["u"])
    total = np.array([u(a) + u(b) for a, b in zip(x.i, x.j)])
    used = np.array([u(a) * r for a, r in zip(x.i, x.r)]) + np.array(
        [u(b) * r for b, r in zip(x.j, x.partner_packed_steps_s / x.partner_alone_steps_s)]
    )
    ax.plot(total, used, ".", ms=4)
    ax.plot([0, 1, 2], [0, 1, 1], "k-", lw=0.7)
    ax.set_title(g.upper(), fontsize=10)
    ax.set_xlabel("GPU shares alone, added")
    ax.set_ylim(0, 1.6)
axes[0].set_ylabel("GPU share used by the pair")
fig.tight_layout()
fig.savefig(out + "/conservation.png", dpi=75)
