"""Forecasts of published training runs beside what was measured.

    OMP_NUM_THREADS=1 python research/training/published_runs.py PROGRAM DATA [--rows FILE]

DATA is a folder with megatron_bridge.csv, megatron_lm_golden.csv.xz and mpt_llm_foundry.csv. Each row becomes a
`tilecast forecast` command; what no command describes is listed with the reason. Errors are printed by group: of the
time of a step, with the share of runs inside the 80 % interval, and of the peak memory of the last rank, where set-ups
count once (the same command, GPU and environment).
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import statistics
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

CLUSTERS = {
    "nvidia-a100-sxm4-40gb": "dgx-a100",
    "nvidia-a100-sxm4-80gb": "dgx-a100",
    "nvidia-h100-sxm5-80gb": "dgx-h100",
    "nvidia-gb200": "gb200-nvl72",
}
BUNDLED = {  # by hf_model
    "meta-llama/Meta-Llama-3-8B": "llama-3-8b",
    "meta-llama/Meta-Llama-3-70B": "llama-3-70b",
    "meta-llama/Llama-3.1-405B": "llama-3.1-405b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen/Qwen3-235B-A22B": "qwen3-235b-a22b",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
}


@dataclass
class Run:
    """A measured run and the command that asks for it."""

    name: str
    group: str
    gpu: str
    config: str  # JSON of a model, or the name of a bundled one
    options: dict[str, str]
    step_s: float | None = None
    peak_bytes: int | None = None
    result: dict | None = None
    problem: str = ""
    remarks: list[str] = field(default_factory=list)

    def key(self) -> str:
        return json.dumps([self.gpu, self.config, sorted(self.options.items())])


class NotDescribed(Exception):
    """No command describes the row."""


def of_mpt(row: dict[str, str], software: bool) -> Run:
    """MPT without ALiBi is GPT-2 without dropout."""
    if row["precision"] == "amp_fp8" and not software:
        raise NotDescribed("FP8 training")
    if row["cpu_offload"] == "1":
        raise NotDescribed("CPU offload")
    seq = row["seq"]
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": int(row["d_model"]),
        "n_head": int(row["n_heads"]),
        "n_layer": int(row["n_layers"]),
        "vocab_size": int(row["vocab"]),
        "n_positions": int(seq),
        "activation_function": "gelu",
        "resid_pdrop": 0,
        "embd_pdrop": 0,
        "attn_pdrop": 0,
    }
    options = {
        "cluster": CLUSTERS[row["gpu"]],
        "dp": row["gpus"],
        "batch": row["global_batch"],
        "micro-batch-size": row["micro_batch"],
        "seq": seq,
        "dtype": "bf16",
        "main-params-dtype": "fp32",
        "zero": "3" if row["sharding"] == "FULL_SHARD" else "2",
        "attention": "flash",
        "optimizer": "adamw",
        "optimizer-impl": "foreach",
        "checkpointing": "full" if row["checkpointing"] == "1" else "none",
    }
    if software:  # the table's runs had PyTorch 1.13 to 2.1
        options["software-version"] = "2.1"
    if row["precision"] == "amp_fp8":
        options["dtype"] = "fp8"
    name = f"{row['model']} seq {seq} x {row['gpus']} mb {row['micro_batch']} ckpt {row['checkpointing']}"
    return Run(name, f"MPT FSDP {row['gpu'].split('-', 1)[1]}", row["gpu"], json.dumps(config), options,
               float(row["step_s"]))


def of_bridge(row: dict[str, str], software: bool) -> Run:
    """Vendor-tuned runs of Megatron-Bridge."""
    model = BUNDLED.get(row["hf_model"])
    if model is None:
        raise NotDescribed(f"no bundled model {row['hf_model']}")
    if row["dtype"] == "fp8" and not software:
        raise NotDescribed("FP8 training")
    if row["variant"] == "tokendrop":
        raise NotDescribed("tokens beyond an expert's capacity are dropped")
    tp, pp, cp, ep, vpp = (int(row[k] or 1) for k in ("tp", "pp", "cp", "ep", "vpp"))
    dp = int(row["gpus"]) // (tp * pp * cp)
    if dp % ep != 0 and dp * tp % ep == 0:
        ep //= tp  # experts over dp x tp ranks: asked as tp ranks that divide each expert, with the same work
    options = {
        "cluster": "dgx-h100",
        "dp": str(dp),
        "tp": str(tp),
        "pp": str(pp),
        "cp": str(cp),
        "ep": str(ep),
        "batch": row["global_batch"],
        "micro-batch-size": row["micro_batch"],
        "seq": row["seq"],
        "dtype": "bf16",
        "main-params-dtype": "fp32",
        "zero": "3" if int(row["fsdp"] or 0) > 0 else "1",
        "attention": "flash",
        "optimizer": "adam",
        "fusion": "pointwise",
    }
    if tp > 1:
        options["sequence-parallel"] = "on"
    if software:
        options["software"] = "megatron"
        again = [m for m in row["recipe_recompute"].split() if m in ("layernorm", "moe_act", "core_attn")]
        if again and again == row["recipe_recompute"].split():
            options["checkpointing"], options["recompute-modules"] = "selective", ",".join(again)
    if row["dtype"] == "fp8":
        options["dtype"], options["fp8-recipe"] = "fp8", "tensorwise"
    if row["task"] == "lora":
        options["lora-rank"] = "16"
        options.pop("main-params-dtype")
        options["zero"] = "0"
    if vpp > 1:
        count = {"llama-3-70b": 80, "llama-3.1-405b": 126, "qwen3-30b-a3b": 48, "qwen3-235b-a22b": 94,
                 "deepseek-v3": 61}[model]
        options["pipeline-schedule"] = "interleaved"
        options["num-layers-per-virtual-pipeline-stage"] = str(-(-count // (pp * vpp)))
    group = {"lora": "LoRA", "sft": "SFT"}.get(row["task"], "experts" if ep > 1 else "dense")
    return Run(f"{row['model']} {row['container']} x {row['gpus']}", f"Bridge {row['dtype']} {group}", row["gpu"],
               model, options, float(row["step_s"]))


def of_golden(row: dict[str, str], software: bool) -> Run:
    """Runs of Megatron-LM's CI."""
    args = json.loads(row["args"])
    for reason, there in (
        ("no config describes the model", not row["config"]),
        ("FP8 training", bool(row["fp8"]) and (not software or row["fp8_param_gather"] == "1")),
        ("muon", row["optimizer"] != "adam"),
        ("resumed from a checkpoint", row["second_run"] == "1"),
        ("number of GPUs unknown", row["dp"] in ("", "0")),
        ("instances of the distributed optimizer", row["dist_optimizer_instances"] != "1"),
        ("selective recomputation of modules", not set(row["recompute_modules"].split())
         <= ({"core_attn", "layernorm", "moe_act"} if software else set())),
        ("embedding's gradients deferred", row["defer_embedding_wgrad"] == "1"),
        ("tensor parallelism of experts of its own", row["ep"] != "1" and row["etp"] != row["tp"]
         and row["etp"] != "1"),
        ("a decoder of its own length", bool(row["decoder_seq"])),
        ("layers for multi-token prediction", "mtp-num-layers" in args),
    ):
        if there:
            raise NotDescribed(reason)
    config = json.loads(row["config"])
    options = {
        "cluster": CLUSTERS[row["gpu"]],
        "batch": row["global_batch"],
        "seq": row["seq"],
        "micro-batch-size": row["micro_batch"],
        "zero": "3" if row["fsdp"] == "1" else row["dist_optimizer"],
        "dtype": row["precision"],
        "main-params-dtype": "fp32" if row["main_params"] == "fp32" else "as-model",
        "attention": "eager" if row["attention_backend"] in ("unfused", "local")
        or (row["attention_backend"] == "auto" and row["env"] == "lts" and row["date"] < "2025-11-06") else "flash",
        "fusion": "pointwise",
        "optimizer": "adam",
        "optimizer-impl": "fused",
        "loss": "full",
        "overlap-grad-reduce": "on" if row["overlap_grad_reduce"] == "1" else "off",
        "checkpointing": "full" if row["recompute"] == "full" else
        "selective" if row["recompute"] == "selective" else "none",
    }
    if row["transformer_impl"] == "local":
        options["attention"] = "eager"
    for degree in ("dp", "tp", "pp", "cp", "ep"):
        options[degree] = row[degree]
    if row["sequence_parallel"] == "1" and int(row["tp"]) > 1:
        options["sequence-parallel"] = "on"
    if int(row["vpp"]) > 1:
        options["pipeline-schedule"] = "interleaved"
        options["num-layers-per-virtual-pipeline-stage"] = str(
            -(-int(row["layers"]) // (int(row["pp"]) * int(row["vpp"]))))
    if row["chunk_layers"]:
        options["pipeline-layers"] = row["chunk_layers"].replace(" ", ",")
    divisor = args.get("make-vocab-size-divisible-by")
    if divisor:
        options["make-vocab-size-divisible-by"] = str(divisor)
    if software:
        options["software"] = "megatron"
        if row["cross_entropy_fusion"]:
            options["cross-entropy"] = "compiled"
        if row["fp8"]:
            options["dtype"], options["fp8-recipe"] = "fp8", row["fp8_recipe"] or "delayed"
        if row["recompute_modules"]:
            options["recompute-modules"] = row["recompute_modules"].replace(" ", ",")
    family = "experts" if "num-experts" in args else row["family"]
    return Run(f"{row['case']} {row['gpu']} {row['env']}", f"golden {family}", row["gpu"], json.dumps(config), options,
               float(row["step_s"]) if row["step_s"] else None, int(row["peak_allocated_bytes"]))


PROGRAM = ""


def ask(run: Run, folder: Path) -> None:
    """Runs the command of a run."""
    model = run.config
    if model.startswith("{"):
        path = folder / f"{abs(hash(model))}" / "config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(model)
        model = str(path)
    command = [PROGRAM, "forecast", model, "--mode", "training", "--format", "json"]
    for option, value in run.options.items():
        command += [f"--{option}", value]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        run.problem = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
        return
    run.result = json.loads(done.stdout)


def read(data: Path, software: bool) -> tuple[list[Run], Counter[str]]:
    """All rows as runs, and the reasons of those that are left out."""
    files = {
        "mpt_llm_foundry.csv": of_mpt,
        "megatron_bridge.csv": of_bridge,
        "megatron_lm_golden.csv.xz": of_golden,
    }
    runs: list[Run] = []
    left_out: Counter[str] = Counter()
    for name, describe in files.items():
        path = data / name
        with (lzma.open(path, "rt") if path.suffix == ".xz" else path.open()) as text:
            for row in csv.DictReader(text):
                try:
                    runs.append(describe(row, software))
                except NotDescribed as reason:
                    left_out[f"{name}: {reason}"] += 1
    return runs, left_out


def time_line(group: str, runs: Iterable[Run]) -> str:
    errors, inside, ratios = [], 0, []
    for run in runs:
        assert run.result is not None and run.step_s is not None
        forecast = run.result["latency_s"]
        errors.append(abs(forecast / run.step_s - 1) * 100)
        ratios.append(forecast / run.step_s)
        inside += run.result["latency_low_s"] <= run.step_s <= run.result["latency_high_s"]
    return (f"{group:34} {len(errors):4} {statistics.mean(errors):6.1f} {statistics.median(errors):6.1f} "
            f"{max(errors):6.1f} {statistics.geometric_mean(ratios):6.2f} {100 * inside / len(errors):5.0f}")


def peak_of(run: Run) -> int:
    """Bytes of tensors on the last rank."""
    assert run.result is not None
    memory = run.result["memory"]
    peak = run.result["stages"][-1]["peak_bytes"] if "stages" in run.result else memory["peak_bytes"]
    return peak - memory["framework_bytes"]


def memory_line(group: str, runs: list[Run]) -> str:
    setups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        setups[run.key()].append(run)
    errors, ratios = [], []
    for alike in setups.values():
        measured = statistics.median(run.peak_bytes or 0 for run in alike)
        errors.append(abs(peak_of(alike[0]) / measured - 1) * 100)
        ratios.append(peak_of(alike[0]) / measured)
    errors.sort()
    return (f"{group:34} {len(errors):4} {statistics.median(errors):6.1f} {errors[int(0.9 * (len(errors) - 1))]:6.1f} "
            f"{errors[-1]:6.1f} {statistics.geometric_mean(ratios):6.2f}")


def main() -> None:
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=Path)
    parser.add_argument("--rows", type=Path, help="CSV of all runs")
    parser.add_argument("--software", action="store_true", help="with --software megatron or fsdp")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    PROGRAM = given.program
    runs, left_out = read(given.data, given.software)
    distinct: dict[str, Run] = {}
    for run in runs:
        distinct.setdefault(run.key(), run)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.threads) as pool:
        list(pool.map(lambda run: ask(run, Path(folder)), distinct.values()))
    for run in runs:
        first = distinct[run.key()]
        run.result, run.problem = first.result, first.problem
    for run in runs:
        if run.problem:
            left_out[f"{run.group}: {run.problem}"] += 1
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.result is not None:
            groups[run.group].append(run)
    print(f"{'time of a step':34} runs   mean median  worst  ratio   in %")
    for group, members in sorted(groups.items()):
        if timed := [run for run in members if run.step_s is not None]:
            print(time_line(group, timed))
    print(f"\n{'peak memory of the last rank':34} set-ups median  p90  worst  ratio")
    golden = [run for run in runs if run.result is not None and run.peak_bytes is not None]
    for group, members in sorted(groups.items()):
        if peaks := [run for run in members if run.peak_bytes is not None]:
            print(memory_line(group, peaks))
    print(memory_line("all", golden))
    print("\nnot described")
    for reason, count in left_out.most_common():
        print(f"{count:4} {reason[:200]}")
    if given.rows:
        with given.rows.open("w", newline="") as text:
            out = csv.writer(text)
            out.writerow(["group", "name", "options", "measured_s", "forecast_s", "measured_bytes", "forecast_bytes",
                          "parts"])
            for run in runs:
                if run.result is None:
                    continue
                out.writerow([run.group, run.name, json.dumps(run.options), run.step_s, run.result["latency_s"],
                              run.peak_bytes, peak_of(run), json.dumps(run.result["memory"])])


if __name__ == "__main__":
    main()
