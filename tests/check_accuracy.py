#!/usr/bin/env python3
"""Checks that the committed weights reproduce the committed errors (data/weights/model_errors.json).

Needs the public measurements; looked for at $TILECAST_DATA (scripts/asplos of the NeuSight
repository) and beside the checkout (../shared/data/neusight/neusight.tar.xz). Skipped without them.
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
    given = os.environ.get("TILECAST_DATA")
    if given:
        return check(sys.argv[1], Path(given))
    if not ARCHIVE.exists():
        print(f"skipped: no measurements at $TILECAST_DATA or {ARCHIVE}")
        return 0
    with tempfile.TemporaryDirectory() as folder, tarfile.open(ARCHIVE) as archive:
        wanted = [m for m in archive.getmembers() if "/label/" in m.name or "/DLmodel_configs/" in m.name]
        archive.extractall(folder, members=wanted)
        return check(sys.argv[1], Path(folder) / "scripts/asplos")


if __name__ == "__main__":
    sys.exit(main())
