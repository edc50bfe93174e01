"""What the program needs beside the law: its spread, what overlap would do, and more than two jobs. Usage: spread.py ALONE.json"""

import sys
import numpy as np
import law
from common import load

CARDS = ("k80", "p100", "v100")
OTHERS = {"k80": dict(turn_slices=30e-3), "p100": dict(turn_kernels=60e-6), "v100": dict(turn_kernels=80e-6)}  # chosen without the card


def judged(series, g, changed, overlap=0.0, small=1.0):
    """Measured and forecast relative speeds; kernels of one wave fill `small` of the SMs."""
    jobs, pairs = load(sys.argv[1], series)
    x, J = pairs[pairs.ran & (pairs.gpu == g)], {}
    for (card, k), j in jobs.items():
        if card == g and "T" in j:
            fill = (np.where(j["w"] > 1, 1.0, small) * j["l"] * j["n"]).sum() / j["S"]
            J[k] = dict(law.demand(j, law.HOW[g], dict(law.CONSTANTS, **changed)), fill=fill)
    return np.minimum(1, x.r.values), np.array([law.pair(J[a], J[b], overlap)[0] for a, b in zip(x.i, x.j)]), J


def held(r, f, s, b):
    o = 1 / f - 1
    return (r >= 1 / (1 + o * np.exp(s) + b) - 1e-9) & (r <= 1 / (1 + np.maximum(0, o * np.exp(-s) - b)) + 1e-9)


for g in CARDS:
    r, f, _ = judged("motivation", g, OTHERS[g])
    z = np.log((1 / r[r < 0.995] - 1) / (1 / f[r < 0.995] - 1))
    q = np.quantile(z, (0.1, 0.5, 0.9, 0.1587, 0.8413))
    print(
        g,
        f"{len(z)} rows, 10 % {q[0]:+.2f}, median {q[1]:+.2f}, 90 % {q[2]:+.2f}, sd {(q[4] - q[3]) / 2:.2f}; within intervals (s, b):",
        end=" ",
    )
    print(
        ", ".join(
            f"{s}, {b}: {100 * held(r, f, s, b).mean():.0f} %"
            for s, b in ((0.16, 0.10), (0.36, 0.13), (0.18, 0.12), (0.54, 0.13), (0.25, 0.12))
        )
    )
r, f, _ = judged("simulation", "k80", {})
print("k80, simulation:", ", ".join(f"{s}, {b}: {100 * held(r, f, s, b).mean():.0f} %" for s, b in ((0.16, 0.10), (0.25, 0.12))))

for small in (0.5, 0.25):
    for e in (0, 0.5, 1):
        errors = [100 * (f / r - 1) for r, f, _ in (judged("motivation", g, {}, e, small) for g in ("p100", "v100"))]
        print(f"kernels of one wave fill {small}, overlap {e}:", ", ".join(f"{abs(x).mean():.1f} ({x.mean():+.1f})" for x in errors))


def exact(jobs):
    """Relative speeds of jobs in lockstep by the chain of all their states."""
    states = range(2 ** len(jobs))
    M, share = np.zeros((len(states), len(states))), np.zeros((len(jobs), len(states)))
    for s in states:
        there = sum(j["q"] for i, j in enumerate(jobs) if s >> i & 1)
        for i, j in enumerate(jobs):
            if s >> i & 1:
                share[i, s] = j["q"] / there
            v = share[i, s] / j["s"] if s >> i & 1 else j["u"] / (1 - j["u"]) / j["s"]
            M[s ^ 1 << i, s] += v
            M[s, s] -= v
    M[-1] = 1
    p = np.linalg.solve(M, [0.0] * (len(states) - 1) + [1.0])
    return np.array([min(1, share[i] @ p / j["u"]) for i, j in enumerate(jobs)])


rng = np.random.default_rng(1)
for g in CARDS:
    J = [dict(x, depth=1.0, n=1) for x in judged("motivation", g, {})[2].values()]
    for count in (2, 3, 4):
        sets = [[J[i] for i in rng.integers(0, len(J), count)] for _ in range(250)]
        e = 100 * np.concatenate([law.many(x) / exact(x) - 1 for x in sets])
        print(
            f"{g}: {count} jobs in lockstep, law.many against the chain: {abs(e).mean():.1f} %, mean {e.mean():+.1f}, 90 % below {np.quantile(abs(e), 0.9):.1f}"
        )
