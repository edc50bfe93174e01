#!/usr/bin/env python3
"""Exports models of zoo_models.py to ONNX, and compares the forecasts of the files with those of the same modules through tilecast.torch.

    research/models/zoo_onnx.py build/release/tilecast -o research/models/onnx.md --keep /tmp/zoo
    research/models/zoo_onnx.py build/release/tilecast --only resnet18
    research/models/zoo_onnx.py build/release/tilecast --only resnet18 -o research/models/onnx.md      the table's other rows stay as they are

Each module is made with random weights, exported by torch.onnx.export (dynamo, not optimized), forecast from the file, and traced by
tilecast.torch: FLOPs of products, convolutions and attention must agree within 1 %, latencies within 2 %. Models with more
than --most-parameters are left out. Exit status 1 if a model differs by more. Needs torch, timm, transformers, onnx and onnxscript.
"""
import collections
import os
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/pytorch"))
import comparison  # noqa: E402
import zoo  # noqa: E402
import zoo_models  # noqa: E402

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


def kinds(kernels):
    counts = collections.Counter()
    for kernel in kernels:
        counts[kernel["predictor"]] += kernel["count"]
    return counts


def files_of(kind, name, fields, folder, most_parameters):
    """(graph notation, ONNX file, parameters) in the folder; an ONNX file that is there is not exported again. None: too large."""
    import torch
    from tilecast_torch import package
    module, args, kwargs = zoo.build(kind, name, fields)
    parameters = sum(p.numel() for p in module.parameters())
    if parameters > most_parameters:
        return None
    graph, file = folder / f"{name}.tcg", folder / f"{name}.onnx"
    traced = package.tracing.trace(module.eval(), args, kwargs, training=False)
    graph.write_text(package.write(traced, name).text(traced.outputs))
    if not file.exists():
        module, args, kwargs = materialized(*zoo.build(kind, name, fields))
        made = folder / f"{name}.part.onnx"
        torch.onnx.export(module, args, str(made), kwargs=kwargs, dynamo=True, verbose=False, optimize=False)
        Path(f"{made}.data").unlink(missing_ok=True)  # the weights, which the importer does not read
        made.rename(file)
    return graph, file, parameters


def compare(task, tilecast, folder, most_parameters):
    kind, name, fields = task
    start = time.perf_counter()
    row = {"model": name, "source": kind}
    try:
        files = files_of(kind, name, fields, folder, most_parameters)
        if files is None:
            return None
        graph, file, parameters = files
        imported = comparison.forecast(tilecast, graph, "--dtype", "fp32")
        # The trace has the fused attention of a module that calls it; exporters spell it out.
        fused = any("queries" in kernel["shape"] for kernel in imported["kernels"])
        exported = comparison.forecast(tilecast, file, "--dtype", "fp32", "--attention", "flash" if fused else "eager")
        ours, _ = zoo.counted(imported["kernels"])
        theirs, _ = zoo.counted(exported["kernels"])
        row.update(parameters=parameters, file_parameters=exported["parameters"], flops_percent=comparison.percent(theirs, ours),
                   latency_percent=comparison.percent(exported["latency_s"], imported["latency_s"]),
                   kernels=dict(kinds(imported["kernels"])), file_kernels=dict(kinds(exported["kernels"])))
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {' '.join(re.sub(chr(27) + '.[0-9;]*m', '', str(error)).split())[:100]}"
    row["seconds"] = time.perf_counter() - start
    return row


def is_wrong(row):
    """Parameters may differ: exporters leave out what no output depends on, and store scalars as constants."""
    return "error" in row or abs(row["flops_percent"]) > MOST_FLOPS_PERCENT or abs(row["latency_percent"]) > MOST_LATENCY_PERCENT


def differing(row):
    """Kinds of kernels whose numbers differ: the file's less the trace's."""
    both = set(row["kernels"]) | set(row["file_kernels"])
    gaps = {kind: row["file_kernels"].get(kind, 0) - row["kernels"].get(kind, 0) for kind in sorted(both)}
    return ", ".join(f"{kind} {gap:+}" for kind, gap in gaps.items() if gap)


def show(row):
    text = row.get("error") or (f"parameters {row['file_parameters'] - row['parameters']:+} FLOPs {row['flops_percent']:+.2f} % "
                                f"latency {row['latency_percent']:+.2f} %  {differing(row)}")
    print(f"{'DIFFERS' if is_wrong(row) else 'ok':8} {row['model']:36} {row['seconds']:6.1f} s {text}", flush=True)


def cells(row):
    """The row of the table: model, source, parameters, and what differs."""
    if "error" in row:
        return [row["model"], row["source"], "", "", "", "", row["error"].replace("|", "/")]
    return [row["model"], row["source"], f"{row['parameters']:,}", f"{row['file_parameters'] - row['parameters']:+,}",
            f"{row['flops_percent']:+.2f} %", f"{row['latency_percent']:+.2f} %", differing(row)]


def read_table(path):
    """The rows of a table that was written before: {model: cells}."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row for row in rows if row[0] != "model"}


def table(rows, versions):
    """`rows`: lists of cells."""
    good = [row for row in rows if row[2]]
    close = sum(1 for row in good if abs(float(row[4].rstrip(" %"))) <= MOST_FLOPS_PERCENT
                and abs(float(row[5].rstrip(" %"))) <= MOST_LATENCY_PERCENT)
    equal = sum(1 for row in good if not row[6])
    lines = ["# The same models from ONNX files", "",
             f"Made by `research/models/zoo_onnx.py build/release/tilecast -o research/models/onnx.md` with {versions}: {len(rows)} models of up to 60 million "
             f"parameters; PyTorch exports and Tilecast imports {len(good)} of them. One forward pass, A100, FP32. The columns compare the file "
             f"with the module that `tilecast.torch` imports. {close} agree in FLOPs within {MOST_FLOPS_PERCENT:.0f} % and in latency within "
             f"{MOST_LATENCY_PERCENT:.0f} %; {equal} have as many kernels of each kind. Kernels: by kind of cost model, the file's number less "
             f"the module's. Why files differ: [limits](../../docs/explanation/limits.md#onnx-files).", "",
             "| model | from | parameters | parameters, difference | FLOPs | latency | kernels |", "|---|---|---:|---:|---:|---:|---|"]
    lines += ["| " + " | ".join(row) + " |" if row[2] else f"| {row[0]} | {row[1]} | | | | | {row[6]} |" for row in rows]
    return "\n".join(lines) + "\n"


def main():
    parser = comparison.parser(__doc__)
    parser.add_argument("-o", "--output", help="write the table as Markdown")
    parser.add_argument("--most-parameters", type=float, default=60e6)
    parser.add_argument("--keep", help="a folder for the exported files; those in it are not exported again")
    args = parser.parse_args()
    if not comparison.has_packages("torch", "timm", "transformers", "onnx", "onnxscript"):
        return 0
    models = [("timm", name, {}) for name in zoo_models.TIMM] + [("transformers", name, fields) for name, fields in zoo_models.TRANSFORMERS]
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for task in models:
            if not comparison.is_chosen(task[1], args.only):
                continue
            row = compare(task, os.path.abspath(args.tilecast), folder, args.most_parameters)
            if row is not None:
                show(row)
                results.append(row)
    wrong = [row["model"] for row in results if is_wrong(row)]
    print(f"{len(results)} models, {len(wrong)} differ")
    if args.output:
        rows = read_table(Path(args.output)) if args.only else {}
        rows.update({row["model"]: cells(row) for row in results})
        known = [rows[name] for _, name, _ in models if name in rows]
        Path(args.output).write_text(table(known, zoo.installed()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
