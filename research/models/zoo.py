#!/usr/bin/env python3
"""Imports models of timm and Transformers through tilecast.torch, and compares FLOPs with PyTorch's counter.

    research/models/zoo.py build/release/tilecast -o research/models/pytorch.md     the whole table
    research/models/zoo.py build/release/tilecast --only resnet         models whose names have this text

Every model is made on the meta device, with random weights that nobody makes. FLOPs are of matrix products, convolutions and attention,
by the conventions of torch.utils.flop_counter (a multiplication and an addition are two; causal attention counts all pairs). Exit status
1 if a model cannot be imported or its FLOPs differ by more than 1 %. Needs torch, timm and transformers.
"""
import argparse
import collections
import concurrent.futures
import importlib.metadata
import json
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/pytorch"))
import comparison  # noqa: E402
import zoo_models  # noqa: E402

BATCH, TOKENS = 2, 128
MOST_PERCENT = 1.0


def build(kind, name, fields):
    """(module, args, kwargs) on the meta device."""
    import torch
    if kind == "timm":
        import timm
        with torch.device("meta"):
            model = timm.create_model(name)
            size = model.pretrained_cfg.get("input_size") or (3, 224, 224)
            return model, (torch.zeros(BATCH, *size),), {}
    import transformers
    transformers.logging.set_verbosity_error()
    maker = getattr(transformers, name)
    config = maker.config_class(**fields)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    with torch.device("meta"):
        model = maker(config)
    return model, (), inputs_of(model, config)


def inputs_of(model, config):
    import torch
    text = config.get_text_config()
    ids = torch.zeros(BATCH, TOKENS, dtype=torch.long, device="meta")
    inputs = {}
    vision = getattr(config, "vision_config", config)
    main = model.main_input_name
    if main == "pixel_values" or hasattr(config, "vision_config"):
        side = getattr(vision, "image_size", 224)
        side = side if isinstance(side, int) else side[0]
        inputs["pixel_values"] = torch.zeros(BATCH, getattr(vision, "num_channels", 3), side, side, device="meta")
        if main == "pixel_values" and not hasattr(config, "text_config"):
            return inputs
    if main == "input_features":
        inputs["input_features"] = torch.zeros(BATCH, config.num_mel_bins, 2 * config.max_source_positions, device="meta")
    elif main == "input_values":
        return {"input_values": torch.zeros(BATCH, 16000, device="meta")}
    else:
        positions = getattr(text, "max_position_embeddings", TOKENS)
        inputs["input_ids"] = ids[:, :min(TOKENS, positions if isinstance(positions, int) and positions > 0 else TOKENS)]
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = ids
    return inputs


def grouped_flops(a, b, *_, out_shape=None, **__):
    rows = out_shape[0] if len(out_shape) == 2 else out_shape[0] * out_shape[1]
    return 2 * rows * out_shape[-1] * a[-1]


def counted(kernels):
    """FLOPs of products, convolutions and attention by PyTorch's conventions, and the number of kernels."""
    flops, number = 0, 0
    for kernel in kernels:
        number += kernel["count"]
        shape = kernel["shape"]
        if kernel["op"].startswith("recurrent"):
            continue  # PyTorch's counter has no recurrent layers
        if "m" in shape or "in_channels" in shape:
            flops += kernel["flops"] * kernel["count"]
        elif "queries" in shape:
            products = 5 / 2 if kernel["op"] == "attention_backward" else 1
            pairs = shape["batch"] * shape["heads"] * shape["queries"] * shape["keys"]
            flops += int(2 * pairs * (shape["head_dim"] + shape["v_head_dim"]) * products) * kernel["count"]
    return flops, number


class WholeModel:
    """In place of the counter's tracker of modules, which fails for modules that pass tuples on while gradients are off."""
    parents = {"Global"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def compare(task):
    """A row of the table."""
    (kind, name, fields), tilecast, mode = task
    start = time.perf_counter()
    row = {"model": name, "source": kind}
    try:
        from tilecast_torch import package
        from torch.utils.flop_counter import FlopCounterMode
        warnings.filterwarnings("ignore")
        module, args, kwargs = build(kind, name, fields)
        import torch
        torch.set_num_threads(1)
        # Layers of experts, which the counter leaves out: rows times their expert's matrix.
        counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten._grouped_mm: grouped_flops})
        counter.mod_tracker = WholeModel()
        traced = package.tracing.trace(module, args, kwargs, training=mode == "training", modes=[counter])
        writer = package.write(traced, name)
        row.update(theirs=counter.get_total_flops(), parameters=sum(p.numel() for p in module.parameters()),
                   unmapped=dict(writer.unmapped), assumed=list(traced.assumptions), trace_s=time.perf_counter() - start)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tcg"
            path.write_text(writer.text(traced.outputs))
            if os.environ.get("ZOO_KEEP"):
                (Path(os.environ["ZOO_KEEP"]) / f"{name}_{mode}.tcg").write_text(path.read_text())
            result = comparison.forecast(tilecast, path, "--mode", mode)
        row["ours"], row["kernels"] = counted(result["kernels"])
        row["latency_s"] = result["latency_s"]
        if result["parameters"] != row["parameters"]:
            raise RuntimeError(f"{result['parameters']} parameters, the module has {row['parameters']}")
        row["memory_bytes"] = result["memory"]["peak_bytes"]
    except Exception as error:
        if os.environ.get("TILECAST_TRACE"):
            raise
        row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
    row["seconds"] = time.perf_counter() - start
    return row


def percent(row):
    return 100 * (row["ours"] / row["theirs"] - 1) if row.get("theirs") else 0.0


def table(rows, versions, mode, left_out):
    """research/models/pytorch.md"""
    good = [row for row in rows if "error" not in row]
    sources = collections.Counter(row["source"] for row in good)
    worst = max((abs(percent(row)) for row in good), default=0)
    known = sum(1 for row in good if not row["unmapped"])
    lines = ["# Models imported from PyTorch", "",
             f"Made by `research/models/zoo.py build/release/tilecast -o research/models/pytorch.md` with {versions}. {len(good)} of {len(rows)} models "
             f"({', '.join(f'{count} of {source}' for source, count in sorted(sources.items()))}) are imported through "
             f"`tilecast.torch`, without weights; {known} have only operators that Tilecast knows. FLOPs are of matrix products, "
             f"convolutions and attention for one {'training step' if mode == 'training' else 'forward pass'} with a batch of {BATCH} "
             f"({TOKENS} tokens a sequence), by the conventions of `torch.utils.flop_counter`, which gets a rule for layers of experts (`_grouped_mm`); the largest difference is {worst:.2f} %."
             + (f" {left_out} more models of the command's list have no results yet." if left_out else ""),
             "", "| model | from | parameters | FLOPs, Tilecast | FLOPs, PyTorch | difference | kernels | unknown operators |",
             "|---|---|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['model']} | {row['source']} | | | | | | {row['error']} |")
            continue
        unmapped = ", ".join(f"{name} ({count})" for name, count in sorted(row["unmapped"].items()))
        lines.append(f"| {row['model']} | {row['source']} | {row['parameters']:,} | {row['ours'] / 1e9:.3f} G | "
                     f"{row['theirs'] / 1e9:.3f} G | {percent(row):+.2f} % | {row['kernels']} | {unmapped} |")
    return "\n".join(lines) + "\n"


def installed():
    return ", ".join(f"{name} {importlib.metadata.version(package)}"
                     for name, package in (("PyTorch", "torch"), ("timm", "timm"), ("transformers", "transformers")))


def is_wrong(row):
    return "error" in row or abs(percent(row)) > MOST_PERCENT


def show(row):
    text = row.get("error") or (f"{row['ours'] / 1e9:9.3f} G {percent(row):+7.2f} % {row['kernels']:6} kernels "
                                f"{1e3 * row['latency_s']:8.3f} ms {row['unmapped'] or ''} {row['assumed'] or ''}")
    print(f"{'FAIL' if is_wrong(row) else 'ok':4} {row['model']:36} {row['seconds']:5.1f} s {text}", flush=True)


def read_results(path):
    """Rows by model and mode."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return {(row["model"], row["mode"]): row for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilecast")
    parser.add_argument("-o", "--output", help="write the table as Markdown")
    parser.add_argument("--only", default="", help="models whose names have one of these texts, separated by commas")
    parser.add_argument("--from", dest="source", choices=["timm", "transformers"])
    parser.add_argument("--mode", choices=["inference", "training"], default="inference")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", help="a file of results: models in it without an error are not imported again, others are added")
    parser.add_argument("--no-run", action="store_true", help="only the models whose results are in the file of --resume")
    args = parser.parse_args()
    models = [("timm", name, {}) for name in zoo_models.TIMM]
    models += [("transformers", name, fields) for name, fields in zoo_models.TRANSFORMERS]
    texts = args.only.split(",")
    models = [model for model in models
              if any(text in model[1] for text in texts) and (not args.source or model[0] == args.source)]
    before, listed = read_results(args.resume), len(models)
    if args.no_run:
        models = [model for model in models if (model[1], args.mode) in before]
    try:
        versions = installed()
    except importlib.metadata.PackageNotFoundError as error:
        print(f"skipped: {error.name} is not installed; pip install torch timm transformers")
        return 0
    tasks = [(model, os.path.abspath(args.tilecast), args.mode) for model in models if "error" in before.get((model[1], args.mode), {"error": ""})]
    if args.jobs > 1:
        pool = concurrent.futures.ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn"))
        results = pool.map(compare, tasks)
    else:
        results = map(compare, tasks)
    for row in results:
        before[row["model"], args.mode] = row
        if args.resume:
            with open(args.resume, "a", encoding="utf-8") as stream:
                stream.write(json.dumps({**row, "mode": args.mode}) + "\n")
        show(row)
    rows = [before[model[1], args.mode] for model in models]
    failed = sum(is_wrong(row) for row in rows)
    if args.output:
        Path(args.output).write_text(table(rows, versions, args.mode, listed - len(rows)))
    print(f"{len(rows) - failed} of {len(rows)} models are imported and agree within {MOST_PERCENT:g} %")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
