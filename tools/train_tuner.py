#!/usr/bin/env python3
"""Trains the models of 'tilecast tune' and writes them where the program embeds them.

    tools/train_tuner.py --data DIR --products gemm.csv.xz -o data/weights

DIR holds the CSVs of MIOpen's public find and performance databases, the file rocBLAS's tuned sizes
(docs/explanation/tuning.md). Needs
PyTorch, pandas and numpy. Interrupted, it goes on at the last epoch of its checkpoints. The same
seed, data and number of threads give the same weights.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tuner import features, parameters, solvers, table, tensile, translator  # noqa: E402

WIDEST = 30  # characters of the progress bar


def bar(text):
    """One line that is rewritten on a terminal: 'solvers: epoch 3/20, ...'."""
    done, total = map(int, text.split("epoch ")[1].split(",")[0].split("/"))
    full = WIDEST * done // total
    line = f"[{'#' * full}{'.' * (WIDEST - full)}] {text}"
    print(line, end="\r" if sys.stderr.isatty() and done < total else "\n", file=sys.stderr,
          flush=True)


def left_out(problems, rows, options):
    """Errors of chips that no row of training is of."""
    result = {}
    chips = {arch: features.read_chip(alias) for arch, alias in solvers.CHIPS.items()}
    for arch, chip in chips.items():
        mine = problems.table.arch.values == arch
        net, scale = solvers.train(problems, rows[~mine[rows]][::options.left_out_step],
                                   options.left_out_epochs, options.seed, report=bar)
        held = numpy.flatnonzero(mine)[::7]
        others = {other: facts for other, facts in chips.items() if other != arch}
        times = solvers.predict_left_out(net, scale, problems, held, others, chip)
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
    data = parameters.rows_of(rows, tokens)
    index = torch.tensor(numpy.flatnonzero(fold != options.held_out))
    net = translator.train(data, index, options.parameter_epochs, options.seed,
                           options.checkpoints / "parameters.pt", bar)
    facts = {"seed": options.seed, "epochs": options.parameter_epochs, "folds": options.folds,
             "held_out_fold": options.held_out,
             "data": "MIOpen performance databases of gfx900 and gfx906 at 2d1fd99 (MIT)"}
    size = translator.export(options.output / "parameters.weights", net, data, facts)
    print(f"parameters.weights: {size} bytes")


def train_tensile(options):
    rows, tokens = tensile.read(options.products)
    fold = tensile.folds(rows, options.seed, options.folds)
    data = tensile.rows_of(rows, tokens)
    index = numpy.flatnonzero(fold != options.held_out)
    print(json.dumps(tensile.table_of_baselines(
        rows, tokens, index, numpy.flatnonzero(fold == options.held_out))), flush=True)
    net = translator.train(data, torch.tensor(index), options.tensile_epochs, options.seed,
                           options.checkpoints / "tensile.pt", bar, "tensile")
    facts = {"seed": options.seed, "epochs": options.tensile_epochs, "folds": options.folds,
             "held_out_fold": options.held_out, "samples": tensile.samples(net, data, rows),
             "data": "rocBLAS library logic of MI100, MI250, navi21 at b520bc83fa67 (MIT)"}
    size = translator.export(options.output / "tensile.weights", net, data, facts)
    print(f"tensile.weights: {size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("--data", type=pathlib.Path, help="folder of MIOpen's CSVs")
    parser.add_argument("--products", type=pathlib.Path, help="CSV of rocBLAS's tuned sizes")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder of the weights")
    parser.add_argument("--table", type=pathlib.Path, default=root / "data/tuning/solvers.json")
    parser.add_argument("--checkpoints", type=pathlib.Path, default=pathlib.Path("tuner-checkpoints"))
    parser.add_argument("--part", choices=("solvers", "parameters", "tensile"), action="append",
                        help="train only this; may be given more than once")
    parser.add_argument("--solver-epochs", type=int, default=14)
    parser.add_argument("--parameter-epochs", type=int, default=10)
    parser.add_argument("--tensile-epochs", type=int, default=8)
    parser.add_argument("--left-out-epochs", type=int, default=3, help="0: chips are not left out in turn")
    parser.add_argument("--left-out-step", type=int, default=2, help="of every so many problems one trains where a chip is left out")
    parser.add_argument("--seed", type=int, default=1, help="of weights, order and folds")
    parser.add_argument("--folds", type=int, default=10, help="of layers")
    parser.add_argument("--held-out", type=int, default=0, help="the fold that is judged, which sets the intervals")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    parts = options.part or ["solvers", "parameters", "tensile"]
    if set(parts) != {"tensile"} and not (options.data and options.data.is_dir()):
        parser.error(f"--data {options.data}: no such folder; it holds MIOpen's CSVs")
    if "tensile" in parts and not (options.products and options.products.is_file()):
        parser.error(f"--products {options.products}: no such file; it is the CSV of tuned sizes")
    if not 0 <= options.held_out < options.folds:
        parser.error(f"--held-out {options.held_out}: expected a fold from 0 to {options.folds - 1}")
    torch.set_num_threads(options.threads)
    options.checkpoints.mkdir(parents=True, exist_ok=True)
    options.output.mkdir(parents=True, exist_ok=True)
    for part, train in (("solvers", train_solvers), ("parameters", train_parameters),
                        ("tensile", train_tensile)):
        if part in parts:
            start = time.time()
            train(options)
            print(f"{part}: {(time.time() - start) / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
