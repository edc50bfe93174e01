#!/usr/bin/env python3
"""Where the published choices of large training runs rank among all that their software could run.

    research/plan/plan_ranks.py build/release/tilecast ../shared/data/published/large_runs.csv [RUN ...] [--write]

For each run of Megatron-LM (Narayanan et al., SC'21, table 1): `tilecast plan` over the space that this software
had (no sequence parallelism, no sharded states, whole layers computed again, gradients reduced after the backward
pass, eager attention with fused pointwise chains), with every candidate simulated. The published degrees, at the
best micro-batch and number of parts a stage (the table does not state them), are then compared with all
candidates that fit, by our times; and with those that keep the paper's rule (section 3), tensor parallelism
within a node first: a pipeline only where it has as many ranks as a node has GPUs.
--write replaces the table in research/plan/choices.md.
"""

import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "accuracy"))
from large_runs import CLUSTERS, config_of  # noqa: E402

import sections  # noqa: E402 (large_runs adds its folder)

BEGIN, END = "<!-- published choices: begin -->", "<!-- published choices: end -->"


NODE = 8  # GPUs of a node of all runs


def standing(candidates, own_s):
    """Rank and share of a time among the candidates."""
    rank = 1 + sum(float(c["latency_s"]) < own_s for c in candidates)
    return rank, 100 * rank / len(candidates)


def candidates_of(program, config, row):
    args = [program, "plan", config, "--memory-reserve", "0", "--cluster", CLUSTERS[row["gpu"]],
            "--nodes", str(int(row["gpus"]) // NODE), "--batch", row["global_batch"], "--seq", row["seq"],
            "--dtype", row["precision"], "--optimizer", "adam", "--attention", "eager",
            "--overlap-grad-reduce", "off", "--sequence-parallel", "off", "--zero", "0", "--cp", "1",
            "--checkpointing", row["recompute"], "--full-search", "--format", "csv"]
    run = subprocess.run(args, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{row['run']}: {run.stderr}")
    return list(csv.DictReader(io.StringIO(run.stdout)))


def main():
    args = [a for a in sys.argv[1:] if a != "--write"]
    if len(args) < 2:
        sys.exit(__doc__)
    program, path, runs = args[0], args[1], args[2:]
    lines = ["| run | GPUs | published tp, pp, dp | candidates | fit | rank | first | best tp, pp, dp | best is faster by "
             "| keep the rule | rank | first |",
             "|---|---:|---|---:|---:|---:|---:|---|---:|---:|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder, open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["run"].startswith("megatron") or (runs and row["run"] not in runs):
                continue
            config = pathlib.Path(folder) / "config.json"
            config.write_text(json.dumps(config_of(row)))
            candidates = candidates_of(program, str(config), row)
            fitting = [c for c in candidates if c["latency_s"]]
            own = [c for c in fitting if all(c[k] == row[k] for k in ("tp", "pp", "dp"))]
            if not own:
                lines.append(f"| {row['run']} | {row['gpus']} | {row['tp']}, {row['pp']}, {row['dp']} | "
                             f"{len(candidates)} | {len(fitting)} | does not fit | | | | | | |")
                continue
            time = min(float(c["latency_s"]) for c in own)
            rank, share = standing(fitting, time)
            best = min(fitting, key=lambda c: float(c["latency_s"]))
            by_rule = [c for c in fitting if int(c["pp"]) == 1 or int(c["tp"]) == NODE]
            rule_rank, rule_share = standing(by_rule, time)
            lines.append(f"| {row['run']} | {row['gpus']} | {row['tp']}, {row['pp']}, {row['dp']} | {len(candidates)} | "
                         f"{len(fitting)} | {rank} | {share:.1f} % | {best['tp']}, {best['pp']}, {best['dp']} | "
                         f"{100 * (time / float(best['latency_s']) - 1):.1f} % | {len(by_rule)} | {rule_rank} | "
                         f"{rule_share:.1f} % |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if "--write" in sys.argv:
        sections.replace("research/plan/choices.md", BEGIN, END, text)


if __name__ == "__main__":
    main()
