#!/usr/bin/env python3
"""Forecasts of timm's published step times (../shared/data/vision/timm.csv.xz): timm_steps.py PROGRAM DATA [--graphs FOLDER] [--only TEXT] [--jobs N]

Each model is imported by tilecast.torch as the row ran it (autocast to FP16, layout, attention fused or not, batch), once for all
rows that are alike; the graphs stay in FOLDER (`PYTHONPATH=build/release/python`, or the installed package). Prints errors by setting, by family, and each row with --rows. Needs torch and timm.
"""
import argparse
import collections
import concurrent.futures
import csv
import io
import json
import lzma
import statistics
import subprocess
import sys
import warnings
from pathlib import Path



def fused_attention(row):
    return float("2" if row["torch"].startswith("2") else "1") >= 2  # timm calls it from PyTorch 2 on


def graph_name(row):
    attention = "fused" if fused_attention(row) else "eager"
    return f"{row['model']}.{row['mode']}.{row['layout']}.{attention}.{row['batch']}x{row['img']}.tcg"


def export(row, path):
    import timm
    import timm.layers
    import torch
    from tilecast.torch import export_graph
    timm.layers.set_fused_attn(fused_attention(row))
    training = row["mode"] == "training"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.device("meta"):
            kwargs = {}
            if row["model"].startswith(("vit", "deit", "beit", "swin")):
                kwargs["img_size"] = int(row["img"])
            model = timm.create_model(row["model"], **kwargs).train(training)
            images = torch.empty(int(row["batch"]), 3, int(row["img"]), int(row["img"]))
            labels = torch.empty(int(row["batch"]), dtype=torch.int64)
        if row["layout"] == "nhwc":
            model = model.to(memory_format=torch.channels_last)
            images = images.to(memory_format=torch.channels_last)


        class Step(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, images, labels):
                return torch.nn.functional.cross_entropy(self.model(images), labels)

        if training:
            text = export_graph(Step(), (images, labels), mode="training", loss=lambda out: out, autocast=torch.float16, name=row["model"])
        else:
            text = export_graph(model, (images,), autocast=torch.float16, name=row["model"])
    path.write_text(text)


def forecast(program, row, path, extra):
    command = [program, "forecast", str(path), "--gpu", row["gpu"], "--mode", row["mode"], "--format", "json", *extra]
    if row["compile"] == "inductor":
        command += ["--fusion", "inductor"]
    if row["mode"] == "training":
        command += ["--optimizer", "sgd", "--optimizer-impl", "for-loop", "--clocks", "boost"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr else "failed"
    return json.loads(done.stdout), None


def mean(values):
    return sum(values) / len(values) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("data")
    parser.add_argument("--graphs", default="/tmp/timm_graphs")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--json", default="", help="a folder that keeps the forecasts")
    parser.add_argument("--every", type=int, default=1)
    arguments, extra = parser.parse_known_args()
    with lzma.open(arguments.data) as packed:
        rows = list(csv.DictReader(io.TextIOWrapper(packed)))
    rows = [row for row in rows if arguments.only in ",".join(row.values())][::arguments.every]
    folder = Path(arguments.graphs)
    folder.mkdir(parents=True, exist_ok=True)
    failed = {}
    for row in rows:
        path = folder / graph_name(row)
        if not path.exists() and path.name not in failed:
            try:
                export(row, path)
            except Exception as error:  # noqa: BLE001: a model that cannot be imported is a result
                failed[path.name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    for name, why in sorted(failed.items()):
        print(f"not imported: {name}: {why}")

    def run(row):
        path = folder / graph_name(row)
        return forecast(arguments.program, row, path, extra) if path.exists() else (None, "no graph")

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        answers = list(pool.map(run, rows))
    groups, families = collections.defaultdict(list), collections.defaultdict(list)
    for row, (answer, error) in zip(rows, answers):
        if answer is None:
            print(f"no forecast: {row['model']} {row['mode']} {row['gpu']}: {error}")
            continue
        if arguments.json:
            keep = Path(arguments.json)
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{graph_name(row)}.{row['gpu'][-4:]}.{row['compile']}.{row['torch']}.json").write_text(json.dumps({"row": row, "answer": answer}))
        latency = 1e3 * answer["latency_s"]
        low, high = 1e3 * answer["latency_low_s"], 1e3 * answer["latency_high_s"]
        measured = float(row["step_ms"])
        off = latency / measured - 1
        setting = (row["gpu"][-4:], row["mode"], row["compile"], row["layout"])
        groups[setting].append((off, low <= measured <= high))
        families[(*setting, row["family"])].append((off, low <= measured <= high))
        if arguments.rows:
            print(f"{row['gpu'][-4:]} {row['mode']:9} {row['compile']:8} {row['layout']} {row['torch']:5} {row['model']:34} {measured:9.2f} {latency:9.2f} {100 * off:+6.1f} %")
    print(f"{'setting':44} rows   mean |e|  bias(median)  in 80 %")
    for setting, errors in sorted(groups.items()):
        print(f"{' '.join(setting):44} {len(errors):4} {100 * mean([abs(e) for e, _ in errors]):8.1f} % {100 * statistics.median(e for e, _ in errors):+8.1f} %"
              f" {100 * mean([float(i) for _, i in errors]):8.0f} %")
    for setting, errors in sorted(families.items()):
        print(f"  {' '.join(setting):42} {len(errors):4} {100 * mean([abs(e) for e, _ in errors]):8.1f} % {100 * statistics.median(e for e, _ in errors):+8.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
