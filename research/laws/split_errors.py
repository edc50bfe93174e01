#!/usr/bin/env python3
"""Splits the error of whole-model forecasts into operators, graph and what no operator explains.

For each label of the NeuSight data set whose graph is known node by node (see compare_labels.py), one
line per kind of operator: its measured time (the node's, less the call overhead, times how often it
runs), the forecast, and what their difference is of the measured whole. Then
  graph      nodes above 0.5 % of a layer that have no kernel in the forecast
  rest       the measured whole less the sum of its operators: the host, clocks that differ between
             single calls and a busy model, errors of the per-node files
so that forecast - measured = sum over operators + graph - rest. The per-node times of A100-PCIE-40GB
are known to be unreliable: its rest is large.

    research/laws/split_errors.py <scripts/asplos of the NeuSight repository> [--gpu T4] [--weights DIR]
"""
import argparse
import csv
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import compare_labels as labels

# gpt3's sizes are GPT-2's graph.
RULES_OF = {"gpt3_27": "gpt2_large", "gpt3_xl": "gpt2_large"}


def split(path: Path, weights: list) -> None:
    match = re.match(r"(.+)-(inf|train)-(\d+)-(\d+)$", path.stem)
    model, mode, seq, batch = match[1], match[2], int(match[3]), int(match[4])
    kernels = labels.forecast(model, path.parent.name, "training" if mode == "train" else "inference", seq,
                              batch, weights)
    by_name = defaultdict(list)
    for kernel in kernels:
        by_name[kernel["name"], kernel["phase"]].append(kernel)
    csv.field_size_limit(sys.maxsize)
    nodes = list(csv.DictReader(path.open()))
    floor = sorted(float(n["fw_latency"]) for n in nodes if n["Name"].startswith(("view", "size")))[0]
    measured, forecast, seen, missing = defaultdict(float), defaultdict(float), set(), 0.0
    layers = max(k["count"] for k in kernels)
    for phase, column in [("forward", "fw_latency")] + ([("backward", "bw_latency")] if mode == "train" else []):
        for node in nodes:
            cost = max(0.0, float(node[column]) - floor) + (float(node["acc_latency"]) if phase == "backward" else 0)
            targets = labels.partner(RULES_OF.get(model, model), node["Name"]) or []
            found = [(t, phase) for t in targets if (t, phase) in by_name]
            if not found:
                if not labels.NO_KERNEL.match(node["Name"]):
                    missing += cost * 1e-3
                continue
            # Several nodes may be one kernel of ours (an activation written out).
            first = max(by_name[found[0]], key=lambda k: k["latency_s"])
            measured[first["op"]] += cost * 1e-3 * first["count"]
            seen.update(found)
    for key, group in by_name.items():
        for kernel in group:
            op = max(group, key=lambda k: k["latency_s"])["op"]
            forecast[op if key in seen else "extra: " + op] += kernel["latency_s"] * kernel["count"]
    whole = json.loads(path.with_suffix(".json").read_text())["e2e_latency"] * 1e-3
    total = sum(forecast.values())
    rest = whole - sum(measured.values()) - missing
    print(f"{path.parent.name} {path.stem}: measured {1e3 * whole:.1f} ms, forecast {1e3 * total:.1f} ms "
          f"({100 * (total / whole - 1):+.1f} %), {layers} layers")
    for op in sorted(set(measured) | set(forecast), key=lambda o: -max(measured[o], forecast[o])):
        share = 100 * (forecast[op] - measured[op]) / whole
        if abs(share) >= 0.05 or measured[op] > 0.005 * whole:
            error = f"{100 * (forecast[op] / measured[op] - 1):+6.1f} %" if measured[op] else "       -"
            print(f"    {op:28} measured {1e3 * measured[op]:9.2f}  forecast {1e3 * forecast[op]:9.2f} ms "
                  f"{error}   of the whole {share:+5.1f} %")
    print(f"    {'graph: nodes without kernel':28} measured {1e3 * missing:9.2f} ms {'':32}{-100 * missing / whole:+5.1f} %")
    print(f"    {'rest: not in any operator':28} measured {1e3 * rest:9.2f} ms {'':32}{-100 * rest / whole:+5.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("asplos", type=Path)
    parser.add_argument("--gpu", default="", help="part of the GPU folder's name")
    parser.add_argument("--weights", help="a folder of weights, say of a left-out GPU")
    args = parser.parse_args()
    weights = ["--weights", args.weights] if args.weights else []
    for path in sorted((args.asplos / "label").glob(f"*{args.gpu}*/*.csv")):
        match = re.match(r"(.+)-(inf|train)-(\d+)-(\d+)$", path.stem)
        if match and RULES_OF.get(match[1], match[1]) in labels.RULES and path.with_suffix(".json").exists():
            split(path, weights)


if __name__ == "__main__":
    main()
