"""Steps of T5 and Whisper on our own H100, by the class of the host.

    python research/training/host_bound_steps.py PROGRAM DATA

DATA is a folder with models.2.csv and models.3.csv of the measurement kit. Each training step is forecast with `--host fast`,
`typical` and `slow`: the error in percent (forecast over measured less one), and whether the forecast says that the GPU waits for
the host (`host_wait`, with the share of the step that it waits).
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

HOSTS = ("fast", "typical", "slow")
ATTENTION = {"sdpa": "flash", "eager": "eager"}


def steps(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [row for row in rows if row["mode"] == "training" and row["model"].startswith(("t5", "whisper"))]


def forecast(program: str, row: dict[str, str], config: Path, host: str) -> dict[str, Any]:
    optimizer, _, implementation = row["optimizer"].partition("-")
    args = [program, "forecast", str(config), "--gpu", row["gpu"], "--mode", "training", "--batch", row["batch"], "--seq",
            row["seq"], "--dtype", row["dtype"], "--attention", ATTENTION[row["attention"]], "--optimizer", optimizer,
            "--optimizer-impl", implementation or "foreach", "--host", host, "--format", "json"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"error": done.stderr.strip()}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def cell(answer: dict[str, Any], measured_s: float) -> str:
    if "error" in answer:
        return str(answer["error"])
    said = ""
    if "host_wait" in answer["warning_codes"]:
        said = f", waits {100 * answer['host_wait_s'] / answer['latency_s']:.0f} %"
    return f"{100 * (answer['latency_s'] / measured_s - 1):+.1f}{said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    print("| step | measured ms | " + " | ".join(HOSTS) + " |\n|---|--:|" + "--:|" * len(HOSTS))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("models.2.csv", "models.3.csv"):
            for row in steps(given.data / name):
                config = Path(folder) / "config.json"
                config.write_text(row["config"], encoding="utf-8")
                measured_s = float(row["latency_s"])
                cells = [cell(forecast(given.program, row, config, host), measured_s) for host in HOSTS]
                print(f"| {row['model']}, {row['dtype']}, {row['attention']}, {row['batch']} x {row['seq']} | "
                      f"{1e3 * measured_s:.1f} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
