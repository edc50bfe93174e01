"""The parameters of MIOpen's solvers: rows of its performance databases for the translator."""

import pathlib

import numpy
import pandas

from . import features
from .translator import Language, Rows

SOLVERS = ["ConvAsm1x1U", "ConvAsmBwdWrW1x1", "ConvHipImplicitGemmBwdDataV1R1",
           "ConvHipImplicitGemmV4R1Fwd", "ConvHipImplicitGemmV4R1WrW", "ConvHipImplicitGemmV4R4Fwd",
           "ConvHipImplicitGemmV4R4WrW", "ConvMlirIgemmBwd", "ConvMlirIgemmFwd", "ConvMlirIgemmWrW",
           "ConvOclDirectFwd", "ConvOclDirectFwd1x1"]
CHIPS = {"gfx900": "gfx900_56", "gfx906": "gfx906_60"}
LANGUAGE = Language(
    SOLVERS, list(CHIPS.values()),
    ["n", "in", "out", "oh", "ow", "pixels", "work", "r", "s", "pad", "stride", "dil", "group"],
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 2048], 16, inner=192)


def read(folder):
    """All rows with their tokens as places in the language's values; -1 after the end."""
    frames, tokens = [], []
    for solver in SOLVERS:
        frame = pandas.read_csv(pathlib.Path(folder) / f"{solver}.csv.xz")
        names = list(frame.columns[list(frame.columns).index("params") + 1:])
        index = numpy.full((len(frame), LANGUAGE.most_tokens), -1, "i8")
        for i, name in enumerate(names):
            index[:, i] = [LANGUAGE.values.index(v) for v in frame[name].values]
        keep = frame.drop(columns=names).assign(solver=solver)
        # Only oh and ow are known of gradients with a stride: the least input that gives them.
        for size, out, window in (("h", "oh", "r"), ("w", "ow", "s")):
            least = ((keep[out] - 1) * keep["stride_" + size] + 1 - 2 * keep["pad_" + size]
                     + (keep[window] - 1) * keep["dil_" + size])
            keep[size] = numpy.where(keep[size] == 0, numpy.maximum(least, 1), keep[size])
        frames.append(keep)
        tokens.append(index)
    return pandas.concat(frames, ignore_index=True), numpy.concatenate(tokens)


def rows_of(table, tokens):
    """The sizes in the order of the language's fields, and the features of the solver model."""
    forward = (table.direction == "F").values
    c, k = table.c.values, table.k.values
    n, ohow = table.n.values, table.oh.values * table.ow.values
    sizes = numpy.stack(
        [n, numpy.where(forward, c, k), numpy.where(forward, k, c), table.oh.values,
         table.ow.values, ohow, n * ohow, table.r.values, table.s.values, table.pad_h.values,
         table.stride_h.values, table.dil_h.values, table.group.values], 1)
    overall = numpy.zeros((len(table), features.COUNT), "f4")
    for arch, alias in CHIPS.items():
        where = numpy.flatnonzero(table.arch.values == arch)
        if len(where):
            overall[where] = features.features(table.iloc[where], features.read_chip(alias))[0]
    return Rows(LANGUAGE, sizes, overall, [SOLVERS.index(s) for s in table.solver],
                [list(CHIPS).index(a) for a in table.arch], tokens)
