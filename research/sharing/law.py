"""The law of jobs that share a GPU: two jobs take turns on it. README.md has the equations."""

from functools import lru_cache
import numpy as np

# The constants. TURN: quantum of a turn (s), SLOW: time of a launch on a slow host (s), LAUNCH: of a usual host.
CONSTANTS = dict(turn_kernels=80e-6, turn_slices=20e-3, slow=40e-6, launch=40e-6, ahead=1.0)
HOW = {"k80": "slices", "p100": "kernels", "v100": "kernels"}


def turn(l, n, S, tau):
    """Mean time that a job keeps the GPU: a turn ends with the kernel that runs when tau is over, and with the step."""
    return S / (1 + (n * l / (l + tau)).sum())


def demand(job, how, c):
    """The job with the share u of time in which it has (or holds) the GPU alone, its turn q, and how many steps its host runs ahead."""
    S, N, T, P = job["S"], job["N"], job["T"], job["procs"]
    binds = float(job["input_binds"])
    if "loader" in job:
        x = min(1.0, max(0.0, (job["loader"] / T - 0.4) / 0.4))
        binds = x * x * (3 - 2 * x)
    # Input in memory: what launches cannot explain is time of the GPU.
    scale = binds + (1 - binds) * max(1.0, (T - N * c["slow"]) / S)
    l, S = job["l"] * scale, S * scale
    q = turn(l, job["n"], S, c["turn_" + how])
    busy = S
    if how == "slices":  # gaps between launches are too short to pass the GPU on
        busy = S + N * c["slow"]
    u = min(0.999, max(0.01, P * busy / T))
    ahead = min(1.0, c["ahead"] * N * c["launch"] / max(T - S, 1e-9)) if P == 1 and how == "kernels" else 0.0
    depth = 1 + ahead
    if job["prefetch"] > 1 and how == "kernels":
        depth += binds * (min(job["prefetch"], c.get("deepest", 16)) - depth)
    return dict(u=u, q=q, s=busy, n=P, depth=depth, scale=scale)


@lru_cache(None)
def host(n, d, u):
    """Host time over GPU time at which a job alone keeps the GPU busy a share u: n processes in lockstep, or one that runs d steps ahead."""
    if n == 1 and d == 1:
        return (1 - u) / u
    lo, hi = 1e-5, 1e5
    for _ in range(80):
        h = (lo * hi) ** 0.5
        w = [1.0]
        for k in range(n if n > 1 else d):
            w.append(w[-1] * ((n - k) if n > 1 else 1) / h)
        lo, hi = (h, hi) if 1 - 1 / sum(w) > u else (lo, h)
    return h


def chain(a, b, overlap=0.0):
    """GPU shares of two jobs (n, d, h, s, w): a continuous-time Markov chain over how many units of each are at the GPU.

    overlap: part of the SMs that one job's kernels leave free (fill) and the other's use. The law has none.
    """
    top = lambda x: x["n"] if x["n"] > 1 else x["d"]
    ready = lambda x, i: (x["n"] - i) / x["h"] if x["n"] > 1 else (1 / x["h"] if i < x["d"] else 0.0)
    weight = lambda x, i: x["w"] * (i if x["n"] > 1 else (i > 0))
    A, B = top(a) + 1, top(b) + 1
    M = np.zeros((A * B, A * B))
    share = np.zeros((2, A * B))
    for i in range(A):
        for j in range(B):
            k = i * B + j
            W = weight(a, i) + weight(b, j)
            fa, fb = (weight(a, i) / W, weight(b, j) / W) if W else (0.0, 0.0)
            if overlap and fa > 0 and fb > 0:
                gain = [overlap * min(1, (1 - y["fill"]) / x["fill"]) for x, y in ((a, b), (b, a))]
                fa, fb = fa + fb * gain[0], fb + fa * gain[1]
            share[:, k] = fa, fb
            for to, v in ((k + B, ready(a, i)), (k + 1, ready(b, j)), (k - B, fa / a["s"]), (k - 1, fb / b["s"])):
                if v > 0:
                    M[to, k] += v
                    M[k, k] -= v
    M[-1] = 1
    x = np.zeros(A * B)
    x[-1] = 1
    return share @ np.linalg.solve(M, x)


def whole(a, b, da, db, overlap):
    make = lambda x, d: dict(n=x["n"], d=d, h=host(x["n"], d, round(x["u"], 6)) * x["s"], s=x["s"], w=x["q"], fill=x.get("fill", 1))
    sa, sb = chain(make(a, da), make(b, db), overlap)
    return min(1.0, sa / a["u"]), min(1.0, sb / b["u"])


def pair(a, b, overlap=0.0):
    """Relative speeds of two jobs (of demand()). A depth between two whole numbers is interpolated."""
    out = np.zeros(2)
    for da, fa in depths(a["depth"]):
        for db, fb in depths(b["depth"]):
            out += fa * fb * np.array(whole(a, b, da, db, overlap))
    return out


def depths(d):
    lo = int(d)
    return [(lo, 1 - (d - lo))] + ([(lo + 1, d - lo)] if d > lo else [])


NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def many(jobs, steps=200):
    """Relative speeds of any number of jobs (of demand()): each meets the others with the probability v that they are at the GPU.

    The mean share of i is E[w_i / (w_i + sum of the w_j that are there)] = integral over z in 0..1 of prod_j (1 - v_j + v_j z^(w_j / w_i)).
    """
    u = np.array([x["u"] for x in jobs])
    w = np.array([x["q"] * x["n"] for x in jobs])
    power = np.array([1 + 0.5 * (x["depth"] - 1) if x["depth"] <= 2 else 4.0 for x in jobs])  # a host that runs ahead hides waiting
    v = u.copy()
    for _ in range(steps):
        share = np.empty(len(u))
        for i in range(len(u)):
            meet = np.ones_like(NODES)
            for j in range(len(u)):
                if j != i:
                    meet *= 1 - v[j] + v[j] * NODES ** (w[j] / w[i])
            share[i] = WEIGHTS @ meet
        t = (1 - u**power + (u / share) ** power) ** (1 / power)
        v = 0.5 * v + 0.5 * np.minimum(1, u / share / t)
    return 1 / t
