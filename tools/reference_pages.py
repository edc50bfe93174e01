#!/usr/bin/env python3
"""Writes the generated pages of docs/reference from what the program says about itself.

    tools/reference_pages.py PROGRAM           compares the committed pages, exit status 1 if one differs
    tools/reference_pages.py PROGRAM --write   writes them
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "Made by `tools/generate.sh`; do not edit. A test compares it with the program.\n"


def run(program, *words):
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run([program, *words], check=True, capture_output=True, text=True, env=environment).stdout


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join("–" if cell is None else str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def rate(value, unit, scale):
    return None if value is None else f"{value / scale:.4g} {unit}"


def commands(program):
    names = re.findall(r"^  ([a-z]+) {2,}", run(program, "--help").split("Commands:")[1].split("\nOptions:")[0], re.M)
    page = f"# Commands\n\n{NOTE}\n```\n{run(program, '--help')}```\n"
    for name in names:
        page += f"\n## {name}\n```\n{run(program, name, '--help-all')}```\n"
    return page


def operators(program):
    rows = json.loads(run(program, "ops", "--format", "json"))
    return (f"# Operators\n\n{NOTE}\n`tilecast kernel NAME --help` shows the sizes of an operator.\n\n"
            + table(["operator", "PyTorch", "ONNX", "what it does"],
                    [[f"`{row['name']}`", row["pytorch"], row["onnx"], row["description"]] for row in rows]))


def devices(program):
    gpus = json.loads(run(program, "gpus", "--format", "json"))
    clusters = json.loads(run(program, "clusters", "--format", "json"))

    def peak(gpu, dtype):
        return rate(gpu["matrix_flops_per_s"].get(dtype) or gpu["vector_flops_per_s"].get(dtype), "TFLOP/s", 1e12)

    def links(cluster):
        return "; ".join(f"{link['kind']} {link['bytes_per_s'] / 1e9:.4g} GB/s to {link['gpus']}" for link in cluster["links"])

    return (f"# Devices and clusters\n\n{NOTE}\nIds and aliases are taken by `--gpu` and `--cluster`, case and punctuation ignored. Every number has its source in\n"
            "`data/devices` and `data/clusters`; your own files: [device files](device_files.md).\n\n## GPUs\n"
            + table(["id", "aliases", "architecture", "memory", "bandwidth", "SMs", "FP32", "BF16", "FP8"],
                    [[f"`{gpu['id']}`", ", ".join(gpu["aliases"]), gpu["architecture"], rate(gpu["memory_bytes"], "GiB", 2**30),
                      rate(gpu["memory_bytes_per_s"], "TB/s", 1e12), gpu["sm_count"],
                      rate(gpu["vector_flops_per_s"].get("fp32"), "TFLOP/s", 1e12), peak(gpu, "bf16"), peak(gpu, "fp8")] for gpu in gpus])
            + "\n## Clusters\n"
            + table(["id", "name", "GPUs of a node", "GPU", "links of a GPU"],
                    [[f"`{cluster['id']}`", cluster["name"], cluster["gpus_per_node"], f"`{cluster['gpu']}`", links(cluster)] for cluster in clusters]))


def models(program):
    rows = json.loads(run(program, "models", "--format", "json"))
    return (f"# Bundled models\n\n{NOTE}\nAny other model: [import a model](../guide/import_a_model.md).\n\n"
            + table(["name", "family", "parameters", "positions", "note"],
                    [[f"`{row['name']}`", row["family"], f"{row['parameters']:,}", f"{row['positions']:,}" if row["positions"] else None, row["note"]]
                     for row in rows])
            + f"\n## Families\n```\n{run(program, 'help', 'families')}```\n")


PAGES = {"commands.md": commands, "operators.md": operators, "devices.md": devices, "models.md": models}


def main():
    program, write = os.path.abspath(sys.argv[1]), "--write" in sys.argv[2:]
    old = []
    for name, page in PAGES.items():
        text = page(program)
        path = FOLDER / name
        if write:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            old.append(name)
    if old:
        sys.exit(f"docs/reference: {', '.join(old)} differ from the program; tools/generate.sh writes them")
    print(f"{len(PAGES)} pages {'written' if write else 'are current'}")


if __name__ == "__main__":
    main()
