#!/usr/bin/env python3
"""Forecasts of servers against public measurements, as docs/server_accuracy.md.

    research/servers/accuracy.py build/release/tilecast ../shared/data            prints the tables
    research/servers/accuracy.py build/release/tilecast ../shared/data --write    writes them into docs/server_accuracy.md

The tables: servers/inferencex.csv.xz, servers/inferencex_dsr1.csv.xz and energy/mlenergy_llm.csv.xz. What their rows do not say is in
settings.json, each entry with its source.
"""
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import sections  # noqa: E402

PAGE = "docs/server_accuracy.md"
SETTINGS = ROOT / "research" / "servers" / "settings.json"
METRICS = {"tpot": "TPOT", "ttft": "TTFT", "tokens_per_s_per_gpu": "tokens/s/GPU"}
SHORT = {"nvidia-h100-sxm5-80gb": "H100", "nvidia-h200-sxm-141gb": "H200", "nvidia-b200-sxm-180gb": "B200", "amd-mi300x": "MI300X"}
# Prompts of ML.ENERGY's servers, tokens, in place of those that settings.json assumes.
OTHER_PROMPTS = (100, 500, 1500)


def evaluate(program: str, table: Path, settings: str = str(SETTINGS)) -> "dict[str, Any]":
    command = [program, "evaluate", str(table), "--servers", settings, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    answer: "dict[str, Any]" = json.loads(done.stdout)
    return answer


def model_name(model: str) -> str:
    return model.replace("--", "/").split("/")[-1]


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def errors_of(evaluation: "dict[str, Any]", metric: str, **names: str) -> "dict[str, Any] | None":
    wanted = {"software": "", "model": "", "gpu": "", "dtype": "", **names}
    found = [e for e in evaluation["errors"] if e["metric"] == metric and all(e[key] == value for key, value in wanted.items())]
    return found[0] if found else None


def all_errors(evaluation: "dict[str, Any]", metrics: "dict[str, str]") -> str:
    """In all, by software and by GPU."""
    text = row("figure", "rows of", "rows", "mean %", "median %", "90 % are below", "forecast / measured", "in 80 % interval")
    text += "|---|---|--:|--:|--:|--:|--:|--:|\n"
    for metric, title in metrics.items():
        for e in evaluation["errors"]:
            if e["metric"] != metric or e["model"]:
                continue
            of = e["software"] or SHORT.get(e["gpu"], e["gpu"]) or "all"
            cells = [f"{e[key]:.1f}" for key in ("mape_percent", "median_percent", "p90_percent")]
            text += row(title, of, f"{e['count']:,}", *cells, f"{e['bias_ratio']:.2f}", f"{e['coverage_percent']:.0f} %")
    return text


def groups(evaluation: "dict[str, Any]", metrics: "dict[str, str]") -> str:
    """Median error and forecast / measured of each software, model, GPU and dtype."""
    keys = sorted({(e["software"], e["model"], e["gpu"], e["dtype"]) for e in evaluation["errors"] if e["model"]})
    text = row("software", "model", "GPU", "dtype", "rows", *metrics.values()) + "|---|---|---|---|--:|" + "--:|" * len(metrics) + "\n"
    for software, model, gpu, dtype in keys:
        found = [errors_of(evaluation, metric, software=software, model=model, gpu=gpu, dtype=dtype) for metric in metrics]
        rows = max(e["count"] for e in found if e)
        text += row(software, model_name(model), SHORT.get(gpu, gpu), dtype, rows,
                    *(f"{e['median_percent']:.1f} % (x {e['bias_ratio']:.2f})" if e else "-" for e in found))
    return text


def left_out(evaluation: "dict[str, Any]") -> str:
    return "".join(f"- {reason}\n" for reason in evaluation["unmatched"])


def beside_others(evaluation: "dict[str, Any]") -> str:
    """The errors that others published, of their rows, beside ours."""
    def ours(metric: str, key: str) -> str:
        e = errors_of(evaluation, metric)
        return f"{e[key]:.1f}" if e else "-"

    means, medians = ([ours(metric, key) for metric in METRICS] for key in ("mape_percent", "median_percent"))
    text = row("tool", "what it saw", "error", *METRICS.values()) + "|---|---|---|--:|--:|--:|\n"
    text += row("Tilecast", "kernels of these GPUs; a server's constants from these rows", "mean", *means)
    text += row("Tilecast", "the same", "median", *medians)
    text += row("aiconfigurator 0.12", "kernels of these GPUs", "median", 13.9, 33, 15.1)
    text += row("KernelSight-LM", "kernels of other GPUs", "mean", 12.8, 15.4, "-")
    text += row("BLIS", "servers, other models than those judged", "mean", "-", 17.6, "6.7 (end to end)")
    text += row("BLIS", "the same, on A100", "mean", "-", "-", "15.7 (end to end)")
    text += row("BLIS", "the same, on L40S", "mean", "-", "-", "13.3 (end to end)")
    return text


def with_prompts(tokens: int) -> str:
    """The settings with prompts of one length for all tasks, as text."""
    settings = json.loads(SETTINGS.read_text(encoding="utf-8"))
    for rule in settings["rules"]:
        if "prompt" in rule.get("options", {}):
            rule["options"]["prompt"] = tokens
    return json.dumps(settings)


def prompts_table(program: str, table: Path, assumed: "dict[str, Any]") -> str:
    text = row("prompts assumed", "rows", "mean %", "median %", "forecast / measured") + "|---|--:|--:|--:|--:|\n"
    runs = [("as settings.json says", assumed)]
    runs += [(f"{tokens:,} tokens", evaluate(program, table, with_prompts(tokens))) for tokens in OTHER_PROMPTS]
    for name, evaluation in runs:
        e = errors_of(evaluation, "itl")
        assert e is not None
        text += row(name, e["count"], f"{e['mape_percent']:.1f}", f"{e['median_percent']:.1f}", f"{e['bias_ratio']:.2f}")
    return text


def main() -> None:
    program, data = sys.argv[1], Path(sys.argv[2])
    inferencex = evaluate(program, data / "servers" / "inferencex.csv.xz")
    dsr1 = evaluate(program, data / "servers" / "inferencex_dsr1.csv.xz")
    energy_table = data / "energy" / "mlenergy_llm.csv.xz"
    energy = evaluate(program, energy_table)
    gaps = {"itl": "time between tokens", "tokens_per_s_per_gpu": "tokens/s/GPU", "power": "power", "energy_per_token": "energy of a token"}
    parts = {
        "others": beside_others(inferencex),
        "inferencex": all_errors(inferencex, METRICS) + "\n" + groups(inferencex, METRICS),
        "deepseek": all_errors(dsr1, METRICS) + "\n" + groups(dsr1, METRICS) + "\nLeft out:\n" + left_out(dsr1),
        "full": all_errors(energy, gaps) + "\n" + groups(energy, gaps) + "\n" + prompts_table(program, energy_table, energy) + "\nLeft out:\n" + left_out(energy),
    }
    for name, text in parts.items():
        if "--write" in sys.argv:
            sections.replace(PAGE, f"<!-- {name}: begin -->", f"<!-- {name}: end -->", text)
        else:
            print(f"{name}\n\n{text}")


if __name__ == "__main__":
    main()
