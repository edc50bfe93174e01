#!/usr/bin/env python3
"""Prints collective_errors.json of a folder, which `tilecast train --collectives` wrote, as the table of docs/accuracy.md."""
import json
import sys
from pathlib import Path

SPLITS = ["fitted", "held-out sizes", "held-out ranks", "left-out GPU", "left-out links"]


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: research/accuracy/collectives_table.py FOLDER", file=sys.stderr)
        return 2
    errors = json.loads((Path(sys.argv[1]) / "collective_errors.json").read_text())
    table = {}
    for e in errors:
        table.setdefault((e["gpu"], e["collective"]), {})[e["rows_of"]] = e
    print("| GPU | collective | rows | " + " | ".join(SPLITS) + " |")
    print("|---|---|--:|" + "--:|" * len(SPLITS))
    for (gpu, collective), splits in sorted(table.items()):
        cells = [f"{splits[s]['median_percent']:.1f} / {splits[s]['mape_percent']:.1f}" if s in splits else "-" for s in SPLITS]
        print(f"| {gpu} | {collective or '**all of NCCL**'} | {splits['fitted']['count']} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
