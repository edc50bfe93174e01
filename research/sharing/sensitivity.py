"""How much the errors depend on the stated inputs. Usage: sensitivity.py ALONE.json"""

import sys
import numpy as np
import law
from common import load

jobs, pairs = load(sys.argv[1])
ran = pairs[pairs.ran]


def error(g, change):
    J = {}
    for (card, k), j in jobs.items():
        if card == g:
            j = dict(j)
            change(k, j)
            J[k] = law.demand(j, law.HOW[g], law.CONSTANTS)
    x = ran[ran.gpu == g]
    return 100 * np.mean(np.abs(np.array([law.pair(J[a], J[b])[0] for a, b in zip(x.i, x.j)]) / x.r.values - 1))


def scaled(f, only=""):
    def change(k, j):
        if k.startswith(only):
            j["S"] *= f
            j["l"] = j["l"] * f

    return change


CASES = {
    "as stated": lambda k, j: None,
    "all forecasts 20 % shorter": scaled(0.8),
    "all forecasts 20 % longer": scaled(1.2),
    "input may bind everywhere": lambda k, j: j.update(input_binds=True),
    "input binds nowhere": lambda k, j: j.update(input_binds=False),
    "CycleGAN's input may bind": lambda k, j: k == "cyc" and j.update(input_binds=True),
    "ResNet-50 without prefetched batches": lambda k, j: j.update(prefetch=1),
    "A3C as one process": lambda k, j: k == "a3c" and j.update(procs=1, S=4 * j["S"], N=4 * j["N"], n=4 * j["n"]),
    "LM's forecast 30 % shorter": scaled(0.7, "lm"),
    "Recommendation's forecast 50 % longer": scaled(1.5, "rec"),
}
print("| stated inputs | K80 | P100 | V100 |\n|---|--:|--:|--:|")
for name, change in CASES.items():
    print(f"| {name} | " + " | ".join(f"{error(g, change):.1f}" for g in ("k80", "p100", "v100")) + " |", flush=True)
