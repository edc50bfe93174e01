#!/usr/bin/env python3
"""Trains the models of 'tilecast tune' and writes them where the program embeds them.

    tools/train_tuner.py --data DIR -o data/weights

DIR holds the CSVs of MIOpen's public find and performance databases (docs/tuning.md). Needs
PyTorch, pandas and numpy. Interrupted, it goes on at the last epoch of its checkpoints. The same
seed, data and number of threads give the same weights.
"""

import argparse
import json
import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tuner import features, parameters, solvers, table  # noqa: E402

WIDEST = 30  # characters of the progress bar


def bar(text):
    """One line that is rewritten on a terminal: 'solvers: epoch 3/20, ...'."""
    done, total = map(int, text.split("epoch ")[1].split(",")[0].split("/"))
    full = WIDEST * done // total
    line = f"[{'#' * full}{'.' * (WIDEST - full)}] {text}"
    print(line, end="\r" if sys.stderr.isatty() and done < total else "\n", file=sys.stderr,
          flush=True)


def left_out(problems, rows, options):
    """Errors of chips that no row of training is of: times of the newest other chip with the same
    matrix unit, or else of the newest, as multiples of the roofline (src/tuning/solver_model.cc)."""
    result = {}
    chips = {arch: features.read_chip(alias) for arch, alias in solvers.CHIPS.items()}
    for arch, chip in chips.items():
        mine = problems.table.arch.values == arch
        net, scale = solvers.train(problems, rows[~mine[rows]], options.left_out_epochs,
                                   options.seed, report=bar)
        others = [other for other in chips if other != arch]
        alike = [other for other in others if chips[other]["matrix"] == chip["matrix"]] or others
        held = numpy.flatnonzero(mine)[::options.left_out_step]
        x = problems.x[held].copy()
        problems.x[held] = features.features(problems.table.iloc[held], chips[alike[-1]])[0]
        times, _ = solvers.predict(net, scale, problems, held)
        problems.x[held] = x
        # Solvers that no other chip lists are taken as slow: nothing is known of them.
        seen = numpy.isfinite(problems.time[rows[~mine[rows]]]).any(0)
        times[:, ~seen] = numpy.log(problems.roofline[held])[:, None] + 1
        result[arch] = solvers.judge(problems, held, times)[arch]
        print(f"left out: {arch} {result[arch]}", flush=True)
    return result


def train_solvers(options):
    problems = solvers.Problems(solvers.read(options.data))
    fold = features.layer_folds(problems.table, options.seed, options.folds)
    rows, held = numpy.flatnonzero(fold != options.held_out), numpy.flatnonzero(fold == options.held_out)
    outside = left_out(problems, rows, options) if options.left_out_epochs else {}
    net, scale = solvers.train(problems, rows, options.solver_epochs, options.seed,
                               options.checkpoints / "solvers.pt", bar)
    times, _ = solvers.predict(net, scale, problems, held)
    errors = solvers.judge(problems, held, times)
    print(json.dumps(errors, indent=1), flush=True)
    by_class = {table.CLASS_OF[arch]: error for arch, error in errors.items()}
    if outside:
        by_class["left_out"] = {"log_low": min(e["log_low"] for e in outside.values()),
                                "log_high": max(e["log_high"] for e in outside.values())}
        for arch, error in outside.items():
            by_class["left_out_" + table.CLASS_OF[arch]] = error
    facts = {"seed": options.seed, "epochs": options.solver_epochs, "folds": options.folds,
             "held_out_fold": options.held_out,
             "data": "MIOpen find databases of gfx906, gfx908 and gfx90a at 2d1fd99 (MIT)"}
    size = solvers.export(options.output / "solvers.weights", net, scale, problems, by_class, facts)
    table.write(options.table, problems.entries)
    print(f"solvers.weights: {size} bytes")


def train_parameters(options):
    rows, tokens = parameters.read(options.data)
    fold = features.layer_folds(rows, options.seed, options.folds)
    data = parameters.Rows(rows, tokens)
    index = torch.tensor(numpy.flatnonzero(fold != options.held_out))
    net = parameters.train(data, index, options.parameter_epochs, options.seed,
                           options.checkpoints / "parameters.pt", bar)
    facts = {"seed": options.seed, "epochs": options.parameter_epochs, "folds": options.folds,
             "held_out_fold": options.held_out,
             "data": "MIOpen performance databases of gfx900 and gfx906 at 2d1fd99 (MIT)"}
    size = parameters.export(options.output / "parameters.weights", net, data, facts)
    print(f"parameters.weights: {size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of the CSVs")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder of the weights")
    parser.add_argument("--table", type=pathlib.Path, default=root / "data/tuning/solvers.json")
    parser.add_argument("--checkpoints", type=pathlib.Path, default=pathlib.Path("tuner-checkpoints"))
    parser.add_argument("--part", choices=("solvers", "parameters", "all"), default="all")
    parser.add_argument("--solver-epochs", type=int, default=16)
    parser.add_argument("--parameter-epochs", type=int, default=15)
    parser.add_argument("--left-out-epochs", type=int, default=3, help="0: chips are not left out in turn")
    parser.add_argument("--left-out-step", type=int, default=7, help="every so many problems of a left-out chip are judged")
    parser.add_argument("--seed", type=int, default=1, help="of weights, order and folds")
    parser.add_argument("--folds", type=int, default=10, help="of layers")
    parser.add_argument("--held-out", type=int, default=0, help="the fold that is judged, which sets the intervals")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"--data {options.data}: no such folder")
    if not 0 <= options.held_out < options.folds:
        parser.error(f"--held-out {options.held_out}: expected a fold from 0 to {options.folds - 1}")
    torch.set_num_threads(options.threads)
    options.checkpoints.mkdir(parents=True, exist_ok=True)
    options.output.mkdir(parents=True, exist_ok=True)
    if options.part != "parameters":
        train_solvers(options)
    if options.part != "solvers":
        train_parameters(options)


if __name__ == "__main__":
    main()
