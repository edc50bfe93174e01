#!/usr/bin/env python3
"""Prints the field `reuse` of a recommendation model's config (docs/explanation/recommendation.md) from the files locality_stats_*.txt of
Meta's public dlrm_datasets.

    tools/reuse_histograms.py locality_stats_2021.txt > reuse.json
"""
import json
import re
import sys

BINS = 17


def read(path):
    """The histograms of a file by the names of their recordings."""
    found, name, bins = {}, "", None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip().endswith(".pt"):
                name, bins = line.strip()[:-3], None
            elif line.startswith("Ratio of index distribution"):
                bins = found[name] = {"batch": int(re.search(r"_bs(\d+)", name)[1]), "shares": []}
            elif line.startswith("Histogram"):
                bins = None
            elif line.startswith("(") and bins is not None and len(bins["shares"]) < BINS:
                bins["shares"].append(float(line.rsplit(": ", 1)[1]))
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: tools/reuse_histograms.py locality_stats.txt ...")
    reuse = {}
    for path in sys.argv[1:]:
        reuse.update(read(path))
    if not reuse:
        sys.exit("no recordings found; expected the files locality_stats_*.txt of dlrm_datasets")
    print(json.dumps({"reuse": reuse}, indent=1))


if __name__ == "__main__":
    main()
