#!/usr/bin/env python3
"""The memory plan against exact counts of PyTorch's memory (tests/data/memory_reference.csv, written by tests/pytorch/memory_reference.py).

    tests/check_memory.py <tilecast> [--only TEXT] [--modes] [--max-percent X --mean-percent X --inference-mean-percent X]

Prints the error of each case in percent, then mean and worst by mode and by model. Weights, gradients and optimizer states must be
exact; exit status 1 if they are not, or if an error of the peak passes a limit, or if a case cannot be forecast. The peak is
compared without framework and workspace, which the reference does not count.
"""
import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import memory_families

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "tests" / "data" / "memory_reference.csv"
GPU = "nvidia-h200-sxm-141gb"  # any: no memory plan depends on it, but the largest cases need room
PARTS = ("weights", "gradients", "optimizer")
# T5 is trained with eager attention only (docs/explanation/limits.md).
EAGER_ONLY = ("t5-large training", "types/t5 training", "types/mt5 training", "types/umt5 training")
# Limits of their own, in percent: sinks take two more passes over the scores, which have no memory (docs/explanation/limits.md).
OWN_LIMITS = {"types/granite_swa training": 6.0}
# Parameters that a family's code makes but does not use (tokens of masks) get no gradient and no state.
FAMILY_SLACK = 2e-4


def model_argument(name, folder):
    """A bundled model's name, or a config file made of a model of tests/model_types or measure/kit/zoo.py."""
    if name.startswith(memory_families.PREFIX):
        path = Path(folder) / f"{name.removeprefix(memory_families.PREFIX)}.json"
        path.write_text(json.dumps(memory_families.config_of(name)[1]))
        return str(path)
    if (ROOT / "data" / "models" / f"{name}.json").exists():
        return name
    sys.path.insert(0, str(ROOT / "measure"))
    from kit import zoo
    kind, config = zoo.config_of(name)
    path = Path(folder) / f"{name}.json"
    path.write_text(json.dumps({**config, "architectures": [zoo_architecture(kind, config["model_type"])]}))
    return str(path)


def zoo_architecture(kind, model_type):
    names = {"gpt2": "GPT2", "opt": "OPT", "bert": "Bert", "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2",
             "mixtral": "Mixtral", "t5": "T5", "vit": "ViT", "resnet": "ResNet", "convnext": "ConvNext"}
    ends = {"causal": "LMHeadModel" if model_type == "gpt2" else "ForCausalLM", "masked": "ForMaskedLM",
            "seq2seq": "ForConditionalGeneration", "image": "ForImageClassification"}
    return names[model_type] + ends[kind]


def quantized(model, folder):
    """The model's config with weights in bitsandbytes' NF4 and double quantization."""
    path = ROOT / "data" / "models" / f"{model}.json"
    config = json.loads((path if path.exists() else Path(model)).read_text())
    config["torch_dtype"] = "bfloat16"
    config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
                                     "bnb_4bit_use_double_quant": True, "bnb_4bit_compute_dtype": "bfloat16"}
    target = Path(folder) / f"quantized-{Path(model).stem}.json"
    target.write_text(json.dumps(config))
    return str(target)


def command_of(tilecast, row, model, folder):
    adapters, _, rank = row["adapters"].partition("-")
    command = [tilecast, "forecast", quantized(model, folder) if adapters == "qlora" else model, "--gpu", GPU, "--format", "json",
               "--mode", row["mode"], "--batch", row["batch"], "--attention", "eager" if row["attention"] == "eager" else "flash"]
    if adapters != "qlora":
        command += ["--dtype", row["dtype"]]
    if rank:
        command += ["--lora-rank", rank, "--lora-dtype", "fp32"]
    if row["seq"] != "0":
        command += ["--seq", row["seq"]]
    if row["mode"] == "training":
        optimizer, _, implementation = row["optimizer"].partition("-")
        command += ["--optimizer", optimizer, "--loss", "memory", "--main-params-dtype", "as-model"]
        if optimizer == "sgd":
            command += ["--optimizer-impl", "foreach"]
        elif implementation:
            command += ["--optimizer-impl", implementation.replace("forloop", "for-loop")]
        if row["checkpointing"] != "none":
            command += ["--checkpointing", row["checkpointing"]]
    return command


def known(tilecast, command):
    """The command without options that this program does not have yet, and their names."""
    helped = subprocess.run([tilecast, "forecast", "--help-all"], capture_output=True, text=True).stdout
    kept, missing = [], []
    for word, value in zip(command[3::2], command[4::2]):
        if word in helped:
            kept += [word, value]
        else:
            missing.append(word)
    return command[:3] + kept, missing


def percent(ours, exact):
    return 100.0 * (ours / exact - 1) if exact else (0.0 if not ours else float("inf"))


def compare(tilecast, row, folder):
    """(errors by part in percent, peak's error, bytes of the plan less the reference, what is wrong)."""
    command, missing = known(tilecast, command_of(tilecast, row, model_argument(row["model"], folder), folder))
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return None, f"exit {run.returncode}: {run.stderr.strip()[:200]}"
    memory = json.loads(run.stdout)["memory"]
    peak = memory["peak_bytes"] - memory["framework_bytes"] - memory["workspace_bytes"]
    exact = {part: int(row[f"{part}_bytes"]) for part in PARTS}
    # A plan may count the model's buffers (rotary frequencies, position ids) with the weights.
    exact["weights"] += min(max(memory["weights_bytes"] - exact["weights"], 0), int(row["buffers_bytes"]))
    errors = {part: percent(memory[f"{part}_bytes"], exact[part]) for part in PARTS}
    slack = FAMILY_SLACK if row["model"].startswith(memory_families.PREFIX) else 0.0
    wrong = [f"{part} {memory[f'{part}_bytes'] - exact[part]:+} bytes" for part in PARTS
             if abs(memory[f"{part}_bytes"] - exact[part]) > slack * exact[part]]
    return {"peak": percent(peak, int(row["peak_bytes"])), "ours": peak, "parts": errors, "wrong": wrong,
            "missing": missing}, None


def summary(title, errors):
    sizes = [abs(error) for error in errors]
    return f"{title:32} {len(sizes):3} cases   mean {sum(sizes) / len(sizes):6.2f} %   worst {max(sizes):6.2f} %"


def write_table(path, rows):
    """A line for each model, a column for each setting: the error of the peak in percent."""
    columns = ("inference fp32", "inference bf16", "training fp32", "training bf16")
    lines = ["| model | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    cells = {}
    for row, error in rows:
        line = cells.setdefault(row["model"].removeprefix(memory_families.PREFIX), {})
        line.setdefault(f"{row['mode']} {row['dtype']}", []).append(f"{error:+.2f}")
    for model, line in cells.items():
        lines.append(f"| {model} | " + " | ".join(", ".join(line.get(column, ["–"])) for column in columns) + " |")
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilecast")
    parser.add_argument("--only", default="", help="only cases whose fields, separated by blanks, have this text")
    parser.add_argument("--reference", default=REFERENCE, help="another CSV of tests/pytorch/memory_reference.py")
    parser.add_argument("--table", help="writes the errors as a table in Markdown, a line for each model")
    parser.add_argument("--max-percent", type=float, default=5.0, help="of each case's peak [5]")
    parser.add_argument("--mean-percent", type=float, default=0.5, help="of all peaks [0.5]")
    parser.add_argument("--inference-mean-percent", type=float, default=0.5, help="of the peaks of inference [0.5]")
    args = parser.parse_args()
    with open(args.reference, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    keys = list(rows[0])[:9]
    errors, by_model, failures, table = {}, {}, [], []
    print(f"{'case':76} {'exact MiB':>10} {'plan MiB':>10} {'peak %':>8}  weights, gradients, optimizer %")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            name = " ".join(row[key] for key in keys)
            if args.only not in name:
                continue
            found, error = compare(args.tilecast, row, folder)
            if error:
                if not (name.startswith(EAGER_ONLY) and row["attention"] == "sdpa"):
                    failures.append(f"{name}: {error}")
                print(f"{name:76} {error}")
                continue
            table.append((row, found["peak"]))
            errors.setdefault(row["mode"], []).append(found["peak"])
            by_model.setdefault(row["model"], []).append(found["peak"])
            if found["wrong"]:
                failures.append(f"{name}: not exact: {', '.join(found['wrong'])}")
            own = [limit for start, limit in OWN_LIMITS.items() if name.startswith(start)]
            if abs(found["peak"]) > max([args.max_percent, *own]):
                failures.append(f"{name}: peak {found['peak']:+.1f} %")
            print(f"{name:76} {int(row['peak_bytes']) / 2**20:10.0f} {found['ours'] / 2**20:10.0f} {found['peak']:+8.2f}  "
                  + " ".join(f"{found['parts'][part]:+.2f}" for part in PARTS)
                  + (f"  without {' '.join(found['missing'])}" if found["missing"] else ""))
    if args.table:
        write_table(args.table, table)
    for title, group in (*by_model.items(), *errors.items()):
        print(summary(title, group))
    every = [error for group in errors.values() for error in group]
    limits = {"all": (every, args.mean_percent), "inference": (errors.get("inference", []), args.inference_mean_percent)}
    for title, (group, limit) in limits.items():
        if group and sum(map(abs, group)) / len(group) > limit:
            failures.append(f"mean of {title}: above {limit} %")
    print("\n".join(["", *failures]) if failures else "all within the limits")
    return 1 if failures or not every else 0


if __name__ == "__main__":
    sys.exit(main())
