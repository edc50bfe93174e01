"""The kernels of rocBLAS's tuned products (Tensile): macro tile, depth, split of the reduction and
matrix instruction of each size, for the translator.

The CSV: docs/reference/measurements.md names its columns. One row is the fastest kernel of a tuning run; nothing is
known of the others."""

import numpy
import pandas

import torch

from . import features
from .translator import Language, Rows

CHIPS = {"amd-mi100": "gfx908_120", "amd-mi250-gcd": "gfx90a_110", "amd-navi21-72cu": "gfx1030_36"}
TOKENS = ["tile_m", "tile_n", "depth_u", "split", "mi_m", "mi_n", "mi_k", "mi_blocks"]
FIELDS = ["m", "n", "k", "batch", "tiles32", "tiles64", "tiles128"]
DTYPES = ("fp32", "fp16", "bf16", "int8")
SIZES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "int32": 4}
TILES = (16, 32, 64, 80, 96, 128, 144, 160, 256)


def read(path):
    """Rows of the chips, and their parameters as numbers: [row, token]."""
    table = pandas.read_csv(path, low_memory=False)
    table = table[table.gpu.isin(list(CHIPS)) & table.tile_m.notna()].reset_index(drop=True)
    # "32x32x8x1": rows, columns, depth and blocks of a matrix instruction; 0: the vector unit.
    parts = table.matrix_instruction.fillna("0x0x0x0").str.split("x", expand=True).astype(int)
    whole = table[TOKENS[:4]].astype(int).values
    return table, numpy.concatenate([whole, parts.values], 1)


def language(parameters):
    values = sorted(int(v) for v in numpy.unique(parameters))
    return Language(["Tensile"], list(CHIPS.values()), FIELDS, values, len(TOKENS))


def folds(table, seed, count):
    """By size: the same product in other types or layouts is in the same fold."""
    return features.folds(table[["m", "n", "batch", "k"]].values, seed, count)


def product_features(table, chip):
    """Matrix and names, as src/tuning/gemm_problem.cc computes them."""
    f = {}
    m, n, k, batch = (table[key].values.astype(float) for key in ("m", "n", "k", "batch"))
    in_size, out_size = (table[key].map(SIZES).values.astype(float) for key in ("in", "out"))
    for name, value in (("m", m), ("n", n), ("k", k), ("batch", batch), ("m_over_n", m / n)):
        f["log_" + name] = features.lg(value)
    f["trans_a"], f["trans_b"] = table.trans_a.values == "T", table.trans_b.values == "T"
    for dtype in DTYPES:
        f[dtype] = table["in"].values == dtype
    f["wide_sum"], f["wide_result"] = table.acc.values != table["in"].values, out_size > in_size
    flops = 2 * m * n * k * batch
    bytes_ = batch * (in_size * (m * k + k * n) + out_size * m * n)
    peak = numpy.array([chip["peaks"][d.upper()] for d in table["in"]])
    compute, memory = flops / peak * 1e-6, bytes_ / chip["bandwidth"] * 1e-3
    f["log_compute"], f["log_memory"] = features.lg(compute), features.lg(memory)
    f["log_bound"] = features.lg(compute / memory)
    for name, value in (("m", m), ("n", n), ("k", k)):
        f["twos_" + name] = features.twos(value, 7)
    for name, value in (("m", m), ("n", n)):
        for tile in TILES:
            f[f"waste_{name}{tile}"] = features.lg(features.waste(value, tile))
    for depth in (8, 16, 32, 64):
        f[f"waste_k{depth}"] = features.lg(features.waste(k, depth))
    for tile_m, tile_n in ((32, 32), (64, 32), (32, 64), (64, 64), (128, 64), (64, 128), (128, 128),
                           (256, 128), (128, 256)):
        waves = numpy.ceil(m / tile_m) * numpy.ceil(n / tile_n) * batch / chip["units"]
        f[f"waves{tile_m}x{tile_n}"] = features.lg(waves)
        f[f"tail{tile_m}x{tile_n}"] = features.lg(numpy.ceil(waves) / waves)
    return numpy.stack([v.astype(float) for v in f.values()], 1).astype("f4"), list(f)


def rows_of(table, parameters):
    sizes = [table[key].values for key in ("m", "n", "k", "batch")]
    for tile in (32, 64, 128):
        sizes.append(-(-sizes[0] // tile) * -(-sizes[1] // tile) * sizes[3])
    overall = None
    for gpu, alias in CHIPS.items():
        where = numpy.flatnonzero(table.gpu.values == gpu)
        if not len(where):
            continue
        x, _ = product_features(table.iloc[where], features.read_chip(alias))
        overall = numpy.zeros((len(table), x.shape[1]), "f4") if overall is None else overall
        overall[where] = x
    made = language(parameters)
    place = {value: i for i, value in enumerate(made.values)}
    tokens = numpy.vectorize(place.get)(parameters).astype("i8")
    return Rows(made, numpy.stack(sizes, 1), overall, [0] * len(table),
                [list(CHIPS).index(g) for g in table.gpu], tokens)


def problem_text(row):
    """As src/tuning/gemm_problem.cc reads it."""
    return (f"gemm m={row.m} n={row.n} k={row.k} batch={row.batch} trans_a={row.trans_a} "
            f"trans_b={row.trans_b} dtype={row['in']} acc={row.acc} out={row.out}")


def samples(net, rows, table, count=8):
    """Rows that the program's own features and probabilities are compared with
    (gemm_problem_test.cc)."""
    at = torch.arange(0, len(table), len(table) // count)[:count]
    with torch.no_grad():
        logits = torch.log_softmax(rows.logits(net, at, len(TOKENS)), -1)
    chosen = logits.gather(2, rows.tokens[at][:, :, None])[:, :, 0].sum(1)
    values = net.language.values
    return [{"problem": problem_text(table.iloc[i]), "chip": CHIPS[table.gpu[i]],
             "features": [round(float(v), 5) for v in rows.raw[i]],
             "tokens": [values[t] for t in rows.tokens[i].tolist()],
             "log_probability": round(float(chosen[j]), 5)}
            for j, i in enumerate(at.tolist())]


def table_of_baselines(table, parameters, train, held):
    """By chip: share of held-out sizes whose kernel the majority of the same types and layouts
    has, and that of its nearest trained size (Euclid on log2 of m, n, batch, k); whole kernels and
    each part."""
    from scipy.spatial import cKDTree
    kind = table[["gpu", "in", "acc", "out", "trans_a", "trans_b"]].agg("|".join, axis=1).values
    place = numpy.log2(table[["m", "n", "batch", "k"]].values.astype(float))
    parts = [[0], [1], [2], [3], [4, 5, 6, 7], list(range(len(TOKENS)))]
    hits = {gpu: {"majority": [], "nearest": []} for gpu in CHIPS}
    for name in numpy.unique(kind[held]):
        mine, asked = train[kind[train] == name], held[kind[held] == name]
        if not len(mine):
            continue
        _, near = cKDTree(place[mine]).query(place[asked])
        truth, gpu = parameters[asked], name.split("|")[0]
        most = []
        for part in parts:
            rows, counts = numpy.unique(parameters[mine][:, part], axis=0, return_counts=True)
            most.append((truth[:, part] == rows[counts.argmax()]).all(1))
        hits[gpu]["majority"].append(numpy.stack(most, 1))
        found = parameters[mine[near]]
        hits[gpu]["nearest"].append(
            numpy.stack([(truth[:, p] == found[:, p]).all(1) for p in parts], 1))
    return {gpu: {way: (numpy.concatenate(h).mean(0) * 100).round(1).tolist()
                  for way, h in ways.items()} for gpu, ways in hits.items()}
