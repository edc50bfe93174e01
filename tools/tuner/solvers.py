"""The solver model: times of all solvers of a problem at once, by a small network.

It learns log(time / roofline of the unit that the solver computes on), so that it carries over to
chips that were not measured; the data sheet's numbers are jittered and the class of kernels is left
out of every fifth row for the same reason. The loss is the error of the times, the expected slow-down
of choosing by them, and whether a search lists the solver."""

import json
import pathlib
import time

import numpy
import pandas
import torch

from . import container, features, table as solver_table
from .training import Checkpoint

CHIPS = {"gfx906": "gfx906_60", "gfx908": "gfx908_120", "gfx90a": "gfx90a_104"}
WIDTH, BATCH, JITTER, CLASS_DROPOUT = 256, 512, 0.15, 0.2
LAYER_POWER = 0.3  # a layer of many rows counts less a row: rows ** -0.3
REGRET, LISTED, CENSORED, SHARPNESS = 0.3, 0.3, 0.15, 20
MATRIX_ARCHS = ("gfx908", "gfx90a")
MOST_BOUND = 3  # times the best
SEARCH_KEEPS = 4  # solvers a problem, on gfx908 and gfx90a; gfx906: the best of each algorithm


def head_of(solver):
    """MLIR's implicit GEMM is one algorithm, on either unit."""
    return solver.replace("Xdlops", "") if "Mlir" in solver else solver


def read(folder):
    frames = []
    for arch in CHIPS:
        frame = pandas.read_csv(pathlib.Path(folder) / f"find_{arch}.csv.xz")
        frames.append(frame.assign(arch=arch))
    return pandas.concat(frames, ignore_index=True)


class Problems:
    """One row a problem and chip: features, rooflines, and times by head (NaN: not listed)."""

    def __init__(self, rows):
        keys = ["arch"] + features.KEYS
        number = rows.groupby(keys, sort=False).ngroup().values
        first = numpy.unique(number, return_index=True)[1]
        self.table = rows.iloc[first][keys].reset_index(drop=True)
        solvers = sorted(rows.solver.unique())
        self.heads = sorted({head_of(s) for s in solvers})
        self.head = {s: self.heads.index(head_of(s)) for s in solvers}
        self.x = None
        roofline = numpy.zeros((len(self.table), 2))  # of the fastest unit, of the vector unit
        for arch, alias in CHIPS.items():
            where = numpy.flatnonzero(self.table.arch.values == arch)
            if not len(where):
                continue
            chip = features.read_chip(alias)
            x, self.names = features.features(self.table.iloc[where], chip)
            if self.x is None:
                self.x = numpy.zeros((len(self.table), x.shape[1]), "f4")
            self.x[where] = x
            roofline[where] = features.rooflines(self.table.iloc[where], chip)
        self.time = numpy.full((len(self.table), len(self.heads)), numpy.nan, "f4")
        self.time[number, rows.solver.map(self.head).values] = numpy.log(rows.time_ms.values * 1000)
        self.entries = solver_table.entries(rows, self.head, MATRIX_ARCHS)
        vector = numpy.array([solver_table.unit(head) == "vector" for head in self.heads])
        self.offset = numpy.log(numpy.where(vector, roofline[:, 1:], roofline[:, :1])).astype("f4")
        self.target, self.bound = self.time - self.offset, self.bounds() - self.offset

    def bounds(self):
        """What a solver that takes a problem but is not listed for it was slower than; NaN: unknown."""
        bound = numpy.full(self.time.shape, numpy.nan, "f4")
        known = numpy.isfinite(self.time)
        slowest = numpy.where(known, self.time, -numpy.inf).max(1)
        slowest[known.sum(1) < SEARCH_KEEPS] = numpy.nan
        # Where a naive kernel is among the best, the others most likely do not take the problem.
        most = numpy.where(known, self.time, numpy.inf).min(1) + numpy.log(MOST_BOUND)
        algorithm = {item["head"]: item["algorithm"] for item in self.entries}
        of_algorithm = {name: numpy.where(known & [algorithm[h] == name for h in range(len(algorithm))],
                                          self.time, numpy.inf).min(1) for name in set(algorithm.values())}
        for arch in CHIPS:
            mine = self.table.arch.values == arch
            for item in self.entries:
                if solver_table.CLASS_OF[arch] not in item["measured_on"]:
                    continue
                fits = mine & solver_table.takes(item, self.table, arch in MATRIX_ARCHS)
                fits &= ~known[:, item["head"]]
                least = slowest if arch in MATRIX_ARCHS else of_algorithm[item["algorithm"]]
                bound[fits, item["head"]] = numpy.minimum(least, most)[fits]
        bound[~numpy.isfinite(bound)] = numpy.nan
        return bound


class Net(torch.nn.Module):
    def __init__(self, inputs, heads, mean):
        super().__init__()
        self.a = torch.nn.Linear(inputs, WIDTH)
        self.b = torch.nn.Linear(WIDTH, WIDTH)
        self.o = torch.nn.Linear(WIDTH, 2 * heads)
        with torch.no_grad():
            self.o.weight.mul_(0.3)
            self.o.bias[:heads] = torch.tensor(mean)

    def forward(self, x):
        h = torch.relu(self.a(x))
        return self.o(h + torch.relu(self.b(h))).chunk(2, 1)


class Scale:
    """Clamps features to the range of the training rows and standardizes them."""

    def __init__(self, x):
        self.least, self.most = x.min(0), x.max(0)
        self.mean, spread = x.mean(0), x.std(0)
        # A number that all measured chips share says nothing about another one.
        self.spread = numpy.where(spread < 0.05, 1e6, spread).astype("f4")
        for name in ("least", "most", "mean", "spread"):
            setattr(self, "t_" + name, torch.tensor(getattr(self, name)))

    def __call__(self, x):
        x = torch.minimum(torch.maximum(x, self.t_least), self.t_most)
        return torch.clamp((x - self.t_mean) / self.t_spread, -4, 4)


def jittered(x, at, generator):
    """The same problems on chips with other rates, at the same multiple of their roofline."""
    x = x.clone()
    peak, band, units, l2 = (torch.randn(4, len(x), generator=generator) * JITTER)
    vector = 1.3 * peak
    for name, change in (("log_compute", -peak), ("log_vector", -vector), ("log_memory", -band),
                         ("log_bound", band - peak), ("waves32", -units), ("waves64", -units),
                         ("waves128", -units), ("log_units", units), ("log_balance", peak - band),
                         ("log_matrix", peak - vector), ("log_clock", peak - units),
                         ("log_bandwidth", band), ("log_l2", l2)):
        x[:, at[name]] += change
    compute, memory = 2 ** x[:, at["log_compute"]], 2 ** x[:, at["log_memory"]]
    x[:, at["log_roofline"]] = torch.log2(torch.maximum(compute, memory) + features.LAUNCH_US)
    x[:, at["log_launch"]] = torch.log2(1 + compute / features.LAUNCH_US)
    classes = len(features.CLASSES)
    keep = torch.rand(len(x), 1, generator=generator) >= CLASS_DROPOUT
    x[:, -classes:] *= keep
    return x


def loss_of(times, listed, target, known, bound, weight):
    target = torch.where(known, target, times.detach())
    weights = known * weight[:, None]
    error = torch.nn.functional.smooth_l1_loss(times, target, beta=0.1, reduction="none")
    choice = torch.softmax((-times * SHARPNESS).masked_fill(~known, -1e9), 1)
    best = torch.where(known, target, torch.full_like(target, 1e9)).min(1, keepdim=True)[0]
    regret = (choice * torch.where(known, target - best, torch.zeros_like(target))).sum(1)
    presence = torch.nn.functional.binary_cross_entropy_with_logits(listed, known.float())
    censored = torch.isfinite(bound)
    below = torch.relu(torch.where(censored, bound, times.detach()) - times).sum() / censored.sum()
    return ((error * weights).sum() / weights.sum() + REGRET * (regret * weight).mean()
            + LISTED * presence + CENSORED * below)


def train(problems, rows, epochs, seed, checkpoint=None, report=print):
    """The network and its scale; goes on at the checkpoint's epoch where there is one."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    scale = Scale(problems.x[rows])
    target, bound = torch.tensor(problems.target), torch.tensor(problems.bound)
    known = torch.isfinite(target)
    with numpy.errstate(all="ignore"):
        mean = numpy.array([numpy.nanmean(column) if numpy.isfinite(column).any() else 0
                            for column in problems.target[rows].T], "f4")
    net = Net(problems.x.shape[1], len(problems.heads), mean)
    steps = len(rows) // BATCH
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2.5e-3, total_steps=epochs * steps,
                                                   pct_start=0.1, anneal_strategy="cos")
    count = problems.table.groupby(features.LAYER, sort=False).direction.transform("size").values
    weight = count.astype(float) ** -LAYER_POWER
    weight = torch.tensor((weight / weight[rows].mean()).astype("f4"))
    x, index = torch.tensor(problems.x), torch.tensor(rows)
    at = {name: i for i, name in enumerate(problems.names)}
    saved = Checkpoint(checkpoint, {"net": net, "optimizer": optimizer, "schedule": schedule},
                       generator)
    start = time.time()
    for epoch in range(saved.load(), epochs):
        total, order = 0.0, index[torch.randperm(len(rows))]
        for i in range(steps):
            batch = order[i * BATCH:(i + 1) * BATCH]
            inputs = jittered(x[batch], at, generator)
            # What searches on the measured chips left out says little about another chip.
            measured = inputs[:, -len(features.CLASSES):].any(1, keepdim=True)
            bounds = torch.where(measured, bound[batch], torch.nan)
            times, listed = net(scale(inputs))
            loss = loss_of(times, listed, target[batch], known[batch], bounds, weight[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        report(f"solvers: epoch {epoch + 1}/{epochs}, loss {total / steps:.4f}, "
               f"{time.time() - start:.0f} s")
        saved.save(epoch + 1)
    return net.eval(), scale


def predict(net, scale, problems, rows):
    """log(microseconds) and the logit of being listed, by head."""
    times, listed = [], []
    with torch.no_grad():
        for i in range(0, len(rows), 4096):
            t, q = net(scale(torch.tensor(problems.x[rows[i:i + 4096]])))
            times.append(t.numpy())
            listed.append(q.numpy())
    times = numpy.concatenate(times) + problems.offset[rows]
    return times, numpy.concatenate(listed)


# Kernels of MLIR without matrix instructions are the algorithms of these.
VECTOR_KIN = {"ConvMlirIgemmFwd": ("ConvHipImplicitGemmV4R1Fwd", "ConvHipImplicitGemmV4R4Fwd"),
              "ConvMlirIgemmBwd": ("ConvHipImplicitGemmBwdDataV1R1",),
              "ConvMlirIgemmWrW": ("ConvHipImplicitGemmV4R1WrW", "ConvHipImplicitGemmV4R4WrW")}
# Solvers that only one chip lists, and one of the same algorithm that others do.
KIN = {"ConvAsmImplicitGemmGTCDynamicFwdXdlops": "ConvAsmImplicitGemmGTCDynamicFwdXdlopsNHWC",
       "ConvAsmImplicitGemmGTCDynamicBwdXdlops": "ConvAsmImplicitGemmGTCDynamicBwdXdlopsNHWC",
       "ConvAsmImplicitGemmGTCDynamicWrwXdlops": "ConvAsmImplicitGemmGTCDynamicWrwXdlopsNHWC",
       "ConvHipImplicitGemmBwdDataV4R1Xdlops": "ConvMlirIgemmBwd",
       "ConvAsmImplicitGemmV4R1DynamicFwd": "ConvHipImplicitGemmV4R1Fwd",
       "ConvAsmImplicitGemmV4R1DynamicFwd_1x1": "ConvHipImplicitGemmV4R1Fwd",
       "ConvAsmImplicitGemmV4R1DynamicBwd": "ConvHipImplicitGemmBwdDataV1R1",
       "ConvAsmImplicitGemmV4R1DynamicWrw": "ConvHipImplicitGemmV4R1WrW"}
UNSEEN_DOUBT = 0.1  # of the log: the measured one of two alike is preferred


def predict_left_out(net, scale, problems, held, others, chip):
    """As src/tuning/solver_model.cc forecasts a chip whose class was not measured: features of the
    newest other chip with the same kind of unit, or else of the chip itself, its own rooflines, no
    class. A solver that no other chip lists gets the time of its kin; NaN: it has none."""
    alike = [other for other in others.values() if other["matrix"] == chip["matrix"]]
    x = problems.x[held].copy()
    problems.x[held] = features.features(problems.table.iloc[held], (alike or [chip])[-1])[0]
    problems.x[held, -len(features.CLASSES):] = 0
    times, _ = predict(net, scale, problems, held)
    problems.x[held] = x
    on_others = problems.table.arch.isin(list(others)).values
    seen = numpy.isfinite(problems.time[on_others]).any(0)
    times[:, ~seen] = numpy.nan
    at = {head: i for i, head in enumerate(problems.heads)}
    for head, kin in KIN.items():
        if not seen[at[head]] and seen[at[kin]]:
            times[:, at[head]] = times[:, at[kin]] + UNSEEN_DOUBT
    if not alike and not chip["matrix"]:
        for head, kin in VECTOR_KIN.items():
            least = times[:, [at[k] for k in kin]].min(1)
            times[:, at[head]] = numpy.maximum(times[:, at[head]], least)
    return times


def judge(problems, rows, times):
    """Errors by chip: slow-down of the choice among the listed solvers, and of the times. Solvers
    whose time is NaN are chosen last and have no error."""
    result = {}
    for arch in CHIPS:
        mine = problems.table.arch.values[rows] == arch
        if not mine.any():
            continue
        measured, forecast = problems.time[rows][mine], times[mine]
        known = numpy.isfinite(measured)
        both = known & numpy.isfinite(forecast)
        log_error = (measured - forecast)[both]
        error = numpy.abs(numpy.exp(-log_error) - 1) * 100
        two = known.sum(1) >= 2
        slow = numpy.where(known, measured, numpy.inf)[two]
        last = numpy.where(numpy.isfinite(forecast), forecast, 1e6)
        pick = numpy.where(known, last, numpy.inf)[two].argmin(1)
        slow = slow[numpy.arange(len(slow)), pick] - slow.min(1)
        result[arch] = {"problems": int(two.sum()), "slow_down": float(numpy.exp(slow.mean())),
                        "within_5_percent": float((slow <= numpy.log(1.05)).mean() * 100),
                        "mape_percent": float(error.mean()),
                        "median_percent": float(numpy.median(error)),
                        "log_low": float(numpy.quantile(log_error, 0.1)),
                        "log_high": float(numpy.quantile(log_error, 0.9))}
    return result


def key_of(row):
    """The problem's key in MIOpen's databases: src/tuning/conv_problem.cc."""
    x, y = f"{row.c}-{row.h}-{row.w}", f"{row.k}-{row.oh}-{row.ow}"
    first, second = (x, y) if row.direction == "F" else (y, x)
    layout = "NCHW" if row.layout == "NCHW" else "NHWC-NHWC-NHWC"
    group = f"_g{row.group}" if row.group > 1 else ""
    return (f"{first}-{row.r}x{row.s}-{second}-{row.n}-{row.pad_h}x{row.pad_w}-"
            f"{row.stride_h}x{row.stride_w}-{row.dil_h}x{row.dil_w}-0-{layout}-{row.precision}-"
            f"{row.direction}{group}")


def samples(net, scale, problems, count=12):
    """Rows that the program's own features and times are compared with (solver_model_test.cc)."""
    rows = numpy.arange(0, len(problems.table), len(problems.table) // count)[:count]
    times, _ = predict(net, scale, problems, rows)
    return [{"key": key_of(problems.table.iloc[row]), "chip": CHIPS[problems.table.arch[row]],
             "features": [round(float(v), 5) for v in problems.x[row]],
             "microseconds": [round(float(v), 4) for v in numpy.exp(times[i])]}
            for i, row in enumerate(rows)]


def export(path, net, scale, problems, errors, facts):
    payload = container.Payload()
    payload.add("range", numpy.stack([scale.least, scale.most, scale.mean, 1 / scale.spread]))
    for name, layer in (("a", net.a), ("b", net.b), ("o", net.o)):
        payload.add(name, layer.weight.detach().numpy().T)
        payload.add(name + "_bias", layer.bias.detach().numpy())
    header = {"kind": "solvers", "features": problems.names, "heads": problems.heads, "width": WIDTH,
              "reference": {solver_table.CLASS_OF[arch]: features.read_chip(alias)
                            for arch, alias in CHIPS.items()},
              "errors": errors, "samples": samples(net, scale, problems), **facts}
    return payload.write(path, json.loads(json.dumps(header)))
