#!/usr/bin/env python3
"""Checks that the committed weights reproduce the committed errors: of whole models
(data/weights/model_errors.json) and, as a sample, of aiconfigurator's attention in narrow types
(data/weights/layer_errors.json).

Needs the public measurements; looked for at $TILECAST_DATA (scripts/asplos of the NeuSight
repository) and $TILECAST_LAYERS (aiconfigurator's tables), and beside the checkout
(../shared/data). Skipped without them.

    tests/check_accuracy.py <tilecast> [--write]      --write: the errors of the layers, after training
"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHIVE = ROOT.parent / "shared/data/neusight/neusight.tar.xz"
LAYERS = Path(os.environ.get("TILECAST_LAYERS", ROOT.parent / "shared/data/aiconfigurator"))
LAYER_SAMPLE = ["attention_encoder.csv.xz", "attention_decode.csv.xz"]


def layer_errors(tilecast: str) -> dict:
    """Mean error in percent by GPU, operator, precision and software."""
    found = {}
    for table in LAYER_SAMPLE:
        output = subprocess.run([tilecast, "evaluate", str(LAYERS / table), "--format", "json"], check=True,
                                capture_output=True, text=True).stdout
        for row in json.loads(output)["rows"]:
            name = f"{row['gpu']} {row['op']} {row['dtype']} {row['software']}"
            found[name] = round(row["mape_percent"], 2)
    return found


def check_layers(tilecast: str) -> int:
    if not (LAYERS / LAYER_SAMPLE[0]).exists():
        print(f"no layers at $TILECAST_LAYERS or {LAYERS}: their errors are not checked")
        return 0
    committed = json.loads((ROOT / "data/weights/layer_errors.json").read_text())
    found = layer_errors(tilecast)
    wrong = [f"{name}: committed {error} %, found {found.get(name)}" for name, error in committed.items()
             if name not in found or abs(found[name] - error) > 0.1]
    print("\n".join(wrong) if wrong else f"{len(committed)} errors of layers are as committed")
    return 1 if wrong or not committed else 0


def check(tilecast: str, data: Path) -> int:
    output = subprocess.run([tilecast, "evaluate", str(data / "label"), "--format", "json"], check=True,
                            capture_output=True, text=True).stdout
    committed = json.loads((ROOT / "data/weights/model_errors.json").read_text())
    found = {}
    for m in json.loads(output)["models"]:
        parts = [m["gpu"], m["model"], m["mode"], str(m["seq"]), str(m["batch"]), m["option"]]
        found[" ".join(p for p in parts if p)] = 100 * (m["forecast_s"] / m["measured_s"] - 1)
    wrong = [f"{name}: committed {error:+.1f} %, found {found.get(name)}" for name, error in committed.items()
             if name not in found or abs(found[name] - error) > 0.1]
    print("\n".join(wrong) if wrong else f"{len(committed)} whole-model errors are as committed")
    return 1 if wrong or not committed else 0


def main() -> int:
    if sys.argv[2:] == ["--write"]:
        (ROOT / "data/weights/layer_errors.json").write_text(json.dumps(layer_errors(sys.argv[1]), indent=1) + "\n")
        return 0
    given = os.environ.get("TILECAST_DATA")
    if not given and not ARCHIVE.exists():
        print(f"skipped: no measurements at $TILECAST_DATA or {ARCHIVE}")
        return 0
    if check_layers(sys.argv[1]):
        return 1
    if given:
        return check(sys.argv[1], Path(given))
    with tempfile.TemporaryDirectory() as folder, tarfile.open(ARCHIVE) as archive:
        wanted = [m for m in archive.getmembers() if "/label/" in m.name or "/DLmodel_configs/" in m.name]
        archive.extractall(folder, members=wanted)
        return check(sys.argv[1], Path(folder) / "scripts/asplos")


if __name__ == "__main__":
    sys.exit(main())
