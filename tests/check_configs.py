#!/usr/bin/env python3
"""Real config.json files (../shared/data/configs) are forecast with the parameters that their names say and in the types that they
name, or refused as a family that is not known.

    tests/check_configs.py <tilecast>
"""
import json
import re
import subprocess
import sys
from pathlib import Path

CONFIGS = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "configs"

# Names that say no total, in billions: the model cards. Mixtral's experts share everything but their MLPs; DeepSeek-R1 and Kimi K2
# without the layer that predicts further tokens.
PUBLISHED = {"Mixtral-8x7B": 46.7, "Mixtral-8x22B": 140.6, "DeepSeek-R1": 671, "DeepSeek-V3": 671, "Kimi-K2": 1026, "MiniMax-M2": 229}
# MiMo-7B has 7.8 with its layer for further tokens, Qwen3-1.7B 1.72, Qwen3-8B 8.19.
TOLERANCE = 0.10


def said(name: str):
    for part, billions in PUBLISHED.items():
        if part in name:
            return billions
    sizes = re.findall(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[bB](?![A-Za-z])", name)
    return float(sizes[0]) if sizes else None


def sources_named(folder: Path) -> list:
    """The sources that the forecast's type must have one of; none where the config names no type."""
    text = (folder / "config.json").read_text()
    beside = folder / "hf_quant_config.json"
    if '"quantization_config"' in text:
        return ["quantization_config"]
    if beside.exists() and json.loads(beside.read_text()).get("quantization", {}).get("quant_algo"):
        return ["hf_quant_config.json"]
    return ["torch_dtype", "dtype"] if re.search(r'"(torch_)?dtype"', text) else []


def check(tilecast: str, folder: Path, form: list) -> str:
    command = [tilecast, "forecast", str(folder), "--gpu", "H100", "--format", "json"] + form
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 1:
        refused = "unknown family" in run.stderr or "not JSON" in run.stderr
        return "" if refused else run.stderr.strip()
    if run.returncode != 0:
        return f"exit {run.returncode}: {run.stderr.strip()}"
    forecast = json.loads(run.stdout)
    billions = said(folder.name)
    if billions and abs(forecast["parameters"] / 1e9 / billions - 1) > TOLERANCE:
        return f"{forecast['parameters'] / 1e9:.2f} G parameters, its name says {billions}"
    sources = sources_named(folder)
    if sources and forecast["dtype_source"] not in sources:
        return f"{forecast['dtype']} ({forecast['dtype_source']}), though the config names a type in {' or '.join(sources)}"
    return ""


def main() -> int:
    if not CONFIGS.is_dir():
        print("skipped: no ../shared/data/configs")
        return 0
    folders = sorted(p for p in CONFIGS.iterdir() if (p / "config.json").exists())
    failed = 0
    for folder in folders:
        for form in (["--mode", "inference", "--seq", "128"], ["--prompt", "128", "--output", "8", "--tp", "8"]):
            problem = check(sys.argv[1], folder, form)
            if problem:
                print(f"{folder.name} {' '.join(form[:2])}: {problem}")
                failed += 1
    print(f"{2 * len(folders) - failed} forecasts passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
