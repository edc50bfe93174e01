#!/usr/bin/env python3
"""Exports models of zoo_models.py to ONNX, and compares the forecasts of the files with those of the same modules through tilecast.torch.

    extras/zoo_onnx.py build/release/tilecast -o docs/models_onnx.md --resume onnx.jsonl
    extras/zoo_onnx.py build/release/tilecast --only resnet18

Each module is made with random weights, exported by torch.onnx.export (dynamo, not optimized), forecast from the file, and traced by
tilecast.torch: parameters must be equal, FLOPs of products, convolutions and attention within 1 %, latencies within 2 %. Models with more
than --most-parameters are left out. Exit status 1 if a model differs by more. Needs torch, timm, transformers, onnx and onnxscript.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import zoo
import zoo_models

MOST_FLOPS_PERCENT, MOST_LATENCY_PERCENT = 1.0, 2.0


def materialized(module, args, kwargs):
    """The module and its inputs on the CPU, with random weights: exporters store equal tensors once."""
    import torch
    torch.manual_seed(0)
    module = module.to_empty(device="cpu").eval()
    if hasattr(module, "tie_weights"):
        module.tie_weights()
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) * 0.02 + 0.01)
            else:
                tensor.zero_()
    return module, *(torch.utils._pytree.tree_map(lambda t: torch.zeros_like(t, device="cpu"), part) for part in (args, kwargs))


def forecast(tilecast, path, *options):
    run = subprocess.run([tilecast, "forecast", str(path), "--gpu", "A100", "--dtype", "fp32", "--format", "json", *options],
                         capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip()[:300])
    return json.loads(run.stdout)


def kinds(kernels):
    counts = collections.Counter()
    for kernel in kernels:
        counts[kernel["predictor"]] += kernel["count"]
    return counts


def compare(kind, name, fields, tilecast, most_parameters):
    start = time.perf_counter()
    row = {"model": name, "source": kind}
    try:
        import torch
        from tilecast_torch import package
        module, args, kwargs = zoo.build(kind, name, fields)
        parameters = sum(p.numel() for p in module.parameters())
        if parameters > most_parameters:
            return None
        traced = package.tracing.trace(module.eval(), args, kwargs, training=False)
        writer = package.write(traced, name)
        with tempfile.TemporaryDirectory() as folder:
            graph, file = Path(folder) / "model.tcg", Path(folder) / "model.onnx"
            graph.write_text(writer.text(traced.outputs))
            imported = forecast(tilecast, graph)
            module, args, kwargs = materialized(*zoo.build(kind, name, fields))
            torch.onnx.export(module, args, str(file), kwargs=kwargs, dynamo=True, verbose=False, optimize=False)
            # The trace has the fused attention of a module that calls it; exporters spell it out.
            fused = any("queries" in kernel["shape"] for kernel in imported["kernels"])
            exported = forecast(tilecast, file, "--attention", "flash" if fused else "eager")
        ours, _ = zoo.counted(imported["kernels"])
        theirs, _ = zoo.counted(exported["kernels"])
        row.update(parameters=parameters, file_parameters=exported["parameters"], flops_percent=100 * (theirs / ours - 1) if ours else 0.0,
                   latency_percent=100 * (exported["latency_s"] / imported["latency_s"] - 1),
                   kernels=dict(kinds(imported["kernels"])), file_kernels=dict(kinds(exported["kernels"])))
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    row["seconds"] = time.perf_counter() - start
    return row


def is_wrong(row):
    return ("error" in row or row["parameters"] != row["file_parameters"] or abs(row["flops_percent"]) > MOST_FLOPS_PERCENT
            or abs(row["latency_percent"]) > MOST_LATENCY_PERCENT)


def differing(row):
    """Kinds of kernels whose numbers differ: the file's less the trace's."""
    both = set(row["kernels"]) | set(row["file_kernels"])
    gaps = {kind: row["file_kernels"].get(kind, 0) - row["kernels"].get(kind, 0) for kind in sorted(both)}
    return ", ".join(f"{kind} {gap:+}" for kind, gap in gaps.items() if gap)


def show(row):
    text = row.get("error") or (f"parameters {row['file_parameters'] - row['parameters']:+} FLOPs {row['flops_percent']:+.2f} % "
                                f"latency {row['latency_percent']:+.2f} %  {differing(row)}")
    print(f"{'DIFFERS' if is_wrong(row) else 'ok':8} {row['model']:36} {row['seconds']:6.1f} s {text}", flush=True)


def table(rows, versions):
    good = [row for row in rows if "error" not in row]
    equal = sum(1 for row in good if not is_wrong(row))
    lines = ["# The same models from ONNX files", "",
             f"Made by `extras/zoo_onnx.py build/release/tilecast -o docs/models_onnx.md` with {versions}. {len(good)} of {len(rows)} models are "
             f"exported, imported and forecast (A100, FP32, one forward pass). The last columns compare the file with the module that "
             f"`tilecast.torch` imports; {equal} agree in parameters, in FLOPs within {MOST_FLOPS_PERCENT:.0f} % and in latency within "
             f"{MOST_LATENCY_PERCENT:.0f} %. Kernels: by kind of cost model, the file's number less the module's.", "",
             "| model | from | parameters | parameters, difference | FLOPs | latency | kernels |", "|---|---|---:|---:|---:|---:|---|"]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['model']} | {row['source']} | | | | | {row['error']} |")
        else:
            lines.append(f"| {row['model']} | {row['source']} | {row['parameters']:,} | {row['file_parameters'] - row['parameters']:+,} | "
                         f"{row['flops_percent']:+.2f} % | {row['latency_percent']:+.2f} % | {differing(row)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilecast")
    parser.add_argument("-o", "--output", help="write the table as Markdown")
    parser.add_argument("--only", default="", help="models whose names have one of these texts, separated by commas")
    parser.add_argument("--most-parameters", type=float, default=60e6)
    parser.add_argument("--resume", help="a file of results: models in it without an error are not exported again, others are added")
    args = parser.parse_args()
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
        versions = zoo.installed()
    except ImportError as error:
        print(f"skipped: {error} (pip install torch timm transformers onnx onnxscript)")
        return 0
    import torch
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    models = [("timm", name, {}) for name in zoo_models.TIMM] + [("transformers", name, fields) for name, fields in zoo_models.TRANSFORMERS]
    models = [model for model in models if any(text in model[1] for text in args.only.split(","))]
    rows = zoo.read_results(args.resume) if args.resume else {}
    before = {name: row for (name, _), row in rows.items() if "error" not in row}
    results = []
    for kind, name, fields in models:
        row = before.get(name)
        if row is None:
            row = compare(kind, name, fields, os.path.abspath(args.tilecast), args.most_parameters)
            if row is None:
                continue
            row["mode"] = "inference"
            if args.resume:
                with open(args.resume, "a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
            show(row)
        results.append(row)
    wrong = [row["model"] for row in results if is_wrong(row)]
    print(f"{len(results)} models, {len(wrong)} differ")
    if args.output:
        Path(args.output).write_text(table(results, versions))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
