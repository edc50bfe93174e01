"""Judges the law on the visible pairs of Gavel's motivation series and prints the tables of README.md.

Usage: evaluate.py ALONE.json [PLOTS]       ALONE.json is what forecasts.py writes; PLOTS: a folder for the figures
"""

import sys
import numpy as np
import pandas as pd
import law
from common import load

alone, plots = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else None)
jobs, pairs = load(alone)
ran = pairs[pairs.ran].reset_index(drop=True)
CARDS = ("k80", "p100", "v100")
cache = {}


def judge(g, **changed):
    key = g, tuple(sorted(changed.items()))
    if key in cache:
        return cache[key]
    c = dict(law.CONSTANTS, **changed)
    J = {k: law.demand(j, law.HOW[g], c) for (card, k), j in jobs.items() if card == g}
    x = ran[ran.gpu == g].copy()
    x["f"] = [law.pair(J[a], J[b])[0] for a, b in zip(x.i, x.j)]
    x["e"] = 100 * (x.f / x.r - 1)
    cache[key] = x
    return x


mape = lambda x: x.e.abs().mean()
row = lambda name, values: print("| " + name + " | " + " | ".join(v if isinstance(v, str) else f"{v:.1f}" for v in values) + " |")

print("## No pair fitted: mean absolute percentage error of relative speed\n| | K80 | P100 | V100 |\n|---|--:|--:|--:|")
row("pairs (rows)", [str(len(judge(g))) for g in CARDS])
row("each gets half", [100 * (0.5 / judge(g).r - 1).abs().mean() for g in CARDS])
row("no slow-down", [100 * (1 / judge(g).r - 1).abs().mean() for g in CARDS])
row("**the law**", [mape(judge(g)) for g in CARDS])
row("median", [judge(g).e.abs().median() for g in CARDS])
row("90 % of rows below", [judge(g).e.abs().quantile(0.9) for g in CARDS])
row("mean signed", [judge(g).e.mean() for g in CARDS])
row(
    "sum of a pair's relative speeds: measured",
    [(judge(g).r + judge(g).partner_packed_steps_s / judge(g).partner_alone_steps_s).mean().item() for g in CARDS],
)

print("\n## Constants: each card judged with constants chosen without it\n| card | turn | launch | error |\n|---|--:|--:|--:|")
TK, LA, TS = (40e-6, 60e-6, 80e-6, 110e-6, 150e-6, 200e-6), (20e-6, 30e-6, 40e-6, 50e-6, 60e-6), (5e-3, 10e-3, 15e-3, 20e-3, 30e-3, 40e-3)


def best(cards, grid):
    return min(grid, key=lambda c: sum(mape(judge(g, **c)) for g in cards))


for out, other in (("p100", "v100"), ("v100", "p100")):
    c = best([other], [dict(turn_kernels=t) for t in TK])
    row(f"{out}: turn chosen on {other}, launch from speeds alone", [f"{c['turn_kernels'] * 1e6:.0f} us", "40 us", mape(judge(out, **c))])
    c = best([other], [dict(turn_kernels=t, slow=l, launch=l) for t in TK for l in LA])
    row(
        f"{out}: turn and launch chosen on {other}",
        [f"{c['turn_kernels'] * 1e6:.0f} us", f"{c['launch'] * 1e6:.0f} us", mape(judge(out, **c))],
    )
other, other_pairs = load(alone, "simulation")
other_pairs = other_pairs[other_pairs.ran & (other_pairs.gpu == "k80")]


def simulation(t):
    J = {k: law.demand(j, "slices", dict(law.CONSTANTS, turn_slices=t)) for (g, k), j in other.items() if g == "k80" and "T" in j}
    f = np.array([law.pair(J[a], J[b])[0] for a, b in zip(other_pairs.i, other_pairs.j)])
    return 100 * np.abs(f / other_pairs.r.values - 1).mean()


t = min(TS, key=simulation)
row(
    f"k80: turn chosen on the simulation series (error there {simulation(t):.1f})",
    [f"{t * 1e3:.0f} ms", "40 us", mape(judge("k80", turn_slices=t))],
)
for t in TS:
    row("k80: turn given", [f"{t * 1e3:.0f} ms", "40 us", mape(judge("k80", turn_slices=t))])
for g, how in (("k80", "kernels"), ("p100", "slices"), ("v100", "slices")):
    A = {k: law.demand(j, how, law.CONSTANTS) for (card, k), j in jobs.items() if card == g}
    x = judge(g)
    row(
        f"{g}, taken as {how}", ["-", "40 us", 100 * (np.array([law.pair(A[a], A[b])[0] for a, b in zip(x.i, x.j)]) / x.r - 1).abs().mean()]
    )

print("\n## What each part is worth (error with the part left out)\n| | K80 | P100 | V100 |\n|---|--:|--:|--:|")
row("the law", [mape(judge(g)) for g in CARDS])


def simple(g, f):
    J = {k: law.demand(j, law.HOW[g], law.CONSTANTS) for (card, k), j in jobs.items() if card == g}
    x = judge(g)
    return 100 * (np.array([f(J[a], J[b]) for a, b in zip(x.i, x.j)]) / x.r - 1).abs().mean()


row("r = 1/(1 + u_i u_j)", [simple(g, lambda a, b: 1 / (1 + a["u"] * b["u"])) for g in CARDS])
row("r = 1/(1 + u_i u_j q_j/q_i)", [simple(g, lambda a, b: 1 / (1 + a["u"] * b["u"] * b["q"] * b["n"] / a["q"] / a["n"])) for g in CARDS])
row("mean field (law.many)", [simple(g, lambda a, b: law.many([a, b])[0]) for g in CARDS])
row("a turn is one kernel (no quantum)", [mape(judge(g, turn_kernels=1e-7, turn_slices=1e-7)) for g in CARDS])
row("no time added to the forecast (u = forecast / measured)", [mape(judge(g, slow=1.0)) if g != "k80" else "-" for g in CARDS])
row("host never ahead", [mape(judge(g, ahead=0.0, deepest=1)) for g in CARDS])

print("\n## By job\n| job | " + " | ".join(f"{g}: u, q us, as job, as partner" for g in CARDS) + " |\n|---|" + "---|" * 3)
names = sorted({k for _, k in jobs}, key=lambda s: (s.split("-")[0], int(s.split("-")[1]) if "-" in s else 0))
for n in names:
    cells = []
    for g in CARDS:
        x, d = judge(g), law.demand(jobs[g, n], law.HOW[g], law.CONSTANTS)
        a, b = x[x.i == n].e, x[x.j == n].e
        cells.append(f"{d['u']:.2f}, {d['q'] * 1e6:.0f}, {a.abs().mean():.0f} ({a.mean():+.0f}), {b.abs().mean():.0f} ({b.mean():+.0f})")
    row(n, cells)

# Calibration: logit(r) of the law plus an effect of the job and one of the partner, which r = 1 / (1 + s p) makes additive.
SIGMA, SPREAD = 0.05, (0.25, 0.35)  # noise of a row; spread of a job's effect and of its model's


def odds(r):
    return np.log(1 / np.clip(r, 0.02, 0.98) - 1)


def calibrate(train, test, prior):
    """Relative speeds of the rows test, with effects fitted on the rows train (positions in prior's table)."""
    models = sorted({n.split("-")[0] for n in names})
    size = len(names) + len(models)

    def design(x):
        M = np.zeros((len(x), 2 * size))
        for k, (i, j) in enumerate(zip(x.i, x.j)):
            M[k, names.index(i)] = SPREAD[0]
            M[k, len(names) + models.index(i.split("-")[0])] = SPREAD[1]
            M[k, size + names.index(j)] = SPREAD[0]
            M[k, size + len(names) + models.index(j.split("-")[0])] = SPREAD[1]
        return M

    A, z0 = design(train), odds(train[prior].values)
    w = np.zeros(2 * size)
    for _ in range(12):
        f = 1 / (1 + np.exp(z0 + A @ w))
        res = (f / train.r.values - 1) / SIGMA
        J = (-(f * (1 - f)) / train.r.values / SIGMA)[:, None] * A
        h = 1 / np.maximum(1, np.abs(res) / 1.5)  # Huber
        w = w - np.linalg.solve(J.T @ (h[:, None] * J) + np.eye(2 * size), J.T @ (h * res) + w)
    return np.minimum(1, 1 / (1 + np.exp(odds(test[prior].values) + design(test) @ w)))


def left_out_pair(x, prior):
    pair = [tuple(sorted(p)) for p in zip(x.i, x.j)]
    x = x.assign(pair=pair)
    out = pd.Series(index=x.index, dtype=float)
    for p, g in x.groupby("pair"):
        out[g.index] = calibrate(x[x.pair != p], g, prior)
    return 100 * (out / x.r - 1).abs().mean()


def left_out_job(x, prior, keep=3, seeds=3):
    errors = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for n in names:
            mine = (x.i == n) | (x.j == n)
            partners = sorted({b if a == n else a for a, b in zip(x[mine].i, x[mine].j)})
            kept = set(rng.permutation(partners)[:keep])
            known = mine & (x.i.isin(kept) & (x.j == n) | x.j.isin(kept) & (x.i == n))
            test = x[mine & ~known]
            if len(test):
                f = calibrate(x[~mine | known], test, prior)
                errors += list(100 * np.abs(f / test.r.values - 1))
    return np.mean(errors)


print("\n## With pairs fitted (r = 1 / (1 + s p), effects drawn towards the law)\n| | K80 | P100 | V100 |\n|---|--:|--:|--:|")
for name, prior in (("the law", "f"), ("no law: 1/2", "half")):
    tables = [judge(g).assign(half=0.5) for g in CARDS]
    row(f"left out one pair; drawn towards {name}", [left_out_pair(x, prior) for x in tables])
    row(f"left out all of a job but three pairs; drawn towards {name}", [left_out_job(x, prior) for x in tables])

# Memory: 0 and 0 are the pairs that did not run.
print("\n## Pairs that did not run\n| | K80 | P100 | V100 |\n|---|--:|--:|--:|")
USABLE = {"k80": 11441 * 2**20, "p100": 16280 * 2**20, "v100": 16160 * 2**20}  # of nvidia-smi
for margin in (0.75, 0.8, 0.9, 1.0):
    hits, alarms = [], []
    for g in CARDS:
        x = pairs[pairs.gpu == g]
        total = np.array([jobs[g, a]["need"] + jobs[g, b]["need"] for a, b in zip(x.i, x.j)])
        call = total > margin * USABLE[g]
        hits.append(f"{(call & ~x.ran).sum()} of {(~x.ran).sum()}")
        alarms.append(f"{(call & x.ran).sum()} of {x.ran.sum()}")
    row(f"called above {margin:.2f} of the memory", hits)
    row("... false alarms", alarms)
