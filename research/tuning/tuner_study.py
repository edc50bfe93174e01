#!/usr/bin/env python3
"""Compares ways to train and judge the parameter model (docs/explanation/tuning.md):

    research/tuning/tuner_study.py --data DIR --checkpoint tuner-checkpoints/parameters.pt [--solver S] [--epochs 15]

on held-out layers the model of all solvers (its checkpoint, after the same epochs), a model of each
solver, and one of each solver and chip; and a model of each solver on held-out rows, of which most have
a twin of the same layer in training, beside the nearest neighbour. Strings are the most likely ones,
without the rules of legality. --epochs 0: the nearest neighbour alone. Needs PyTorch, pandas, numpy and
scipy."""

import argparse
import pathlib
import sys

import numpy
import torch
from scipy.spatial import cKDTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from tuner import features, parameters, translator  # noqa: E402

SETS = [("ConvAsm1x1U", "gfx906"), ("ConvAsmBwdWrW1x1", "gfx906"), ("ConvOclDirectFwd1x1", "gfx900"),
        ("ConvOclDirectFwd", "gfx906"), ("ConvMlirIgemmFwd", "gfx906")]


def judge(name, net, data, held, mine):
    """Whole strings, best 20 and parameters of the held-out rows of a set, in percent."""
    index = torch.tensor(numpy.flatnonzero(held & mine))
    found = translator.search(net, data, index)
    truth = data.tokens[index][:, :found.shape[2]]
    same = (found == truth[:, None]).all(2)
    print(f"{name}: {len(index)} rows, whole {100 * same[:, 0].float().mean():.1f}, "
          f"best 20 {100 * same.any(1).float().mean():.1f}, "
          f"parameters {100 * (found[:, 0] == truth).float().mean():.1f}", flush=True)


def trained(data, train, options):
    return translator.train(data, torch.tensor(numpy.flatnonzero(train)), options.epochs, options.seed,
                            report=lambda text: print(text, file=sys.stderr, flush=True))


def model_of_all(data, train, path):
    """As tools/train_tuner.py left it after its last epoch."""
    data.scale(numpy.flatnonzero(train))
    net = translator.Translator(data.language, data.raw.shape[1])
    net.load_state_dict(torch.load(path)["net"])
    return net.eval()


def nearest(name, data, table, held):
    """The parameters of the nearest row (Euclid on log2 sizes) of the same solver, chip, direction
    and precision, and how many rows have a twin in training that differs in batch alone."""
    sizes = ["n", "c", "k", "oh", "ow", "r", "s", "pad_h", "stride_h", "dil_h", "group"]
    place = numpy.log2(table[sizes].values.astype(float) + 1)
    alike = table[["solver", "arch", "direction", "precision"]].agg("|".join, axis=1).values
    shape = table[["c", "k", "oh", "ow", "r", "s", "pad_h", "pad_w", "stride_h", "stride_w", "dil_h",
                   "group"]].astype(str).agg(",".join, axis=1).values + alike
    tokens = data.tokens.numpy()
    for solver, chip in SETS:
        mine = (table.solver.values == solver) & (table.arch.values == chip)
        equal, twins = [], []
        for kind in numpy.unique(alike[mine]):
            train = numpy.flatnonzero((alike == kind) & ~held)
            asked = numpy.flatnonzero((alike == kind) & held)
            if not len(train) or not len(asked):
                continue
            found = train[cKDTree(place[train]).query(place[asked])[1]]
            equal.append((tokens[asked] == tokens[found])[:, tokens[asked[0]] >= 0])
            twins.append(numpy.isin(shape[asked], shape[train]))
        equal, twins = numpy.concatenate(equal), numpy.concatenate(twins)
        print(f"nearest, {name}: {solver} {chip}: {len(equal)} rows, whole "
              f"{100 * equal.all(1).mean():.1f}, parameters {100 * equal.mean():.1f}, "
              f"with a twin {100 * twins.mean():.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--checkpoint", type=pathlib.Path, help="of the model of all solvers")
    parser.add_argument("--solver", action="append", choices=[solver for solver, _ in SETS])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    table, tokens = parameters.read(options.data)
    data = parameters.rows_of(table, tokens)
    layers = features.layer_folds(table, options.seed, 10) == 0
    rows = numpy.random.RandomState(options.seed).rand(len(table)) < 0.1
    nearest("held-out layers", data, table, layers)
    nearest("held-out rows", data, table, rows)
    for solver, chip in SETS if options.epochs else ():
        if options.solver and solver not in options.solver:
            continue
        of_solver = table.solver.values == solver
        mine = of_solver & (table.arch.values == chip)
        if options.checkpoint:
            net = model_of_all(data, ~layers, options.checkpoint)
            judge(f"{solver} {chip}, model of all solvers", net, data, layers, mine)
        for name, held, kept in (("model of the solver", layers, of_solver),
                                 ("model of solver and chip", layers, mine),
                                 ("model of the solver, held-out rows", rows, of_solver)):
            judge(f"{solver} {chip}, {name}", trained(data, kept & ~held, options), data, held, mine)


if __name__ == "__main__":
    main()
