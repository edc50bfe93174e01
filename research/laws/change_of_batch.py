#!/usr/bin/env python3
"""How far a measured time is off when it is carried to another number of rows: fits `change_doublings` of data/laws/trace.json.

    research/laws/change_of_batch.py build/release/tilecast FOLDER...

FOLDER: tables that `tilecast evaluate` reads, which have one kernel at many numbers of rows (Vidur's, unpacked; aiconfigurator's gemm.csv: the script takes 40
weights of each GPU of such a file where it is large). Carried is measured x forecast there / forecast here; its error is the residual there less that here. With
residuals whose intervals are `here` and `there` and whose correlation is r = exp(-|log2 c| / doublings), 80 % of the errors should lie within
sqrt(1 - r) * hypot(here, there). One constant, fitted so that the mean coverage over (GPU, operator, c) is 80 %; printed with each GPU left out.
"""
import collections
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FACTORS = (2, 4, 8, 16, 32, 64)
COVERAGE = 0.8
FEWEST = 40  # pairs of a set
ROWS = {"gemm": "m", "rms_norm": "rows", "rotary": "rows"}


def points(tilecast: str, folder: str) -> list:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "points.json"
        subprocess.run([tilecast, "evaluate", folder, "--points", "1000000", "--format", "json", "-o", str(out)], check=True)
        return json.loads(out.read_text())["points"]


def pairs_of(rows: list) -> dict:
    """(log of the change of measured over forecast, widths there, widths here) by operator, GPU and factor, in both directions."""
    series: dict = collections.defaultdict(lambda: collections.defaultdict(list))
    for p in rows:
        if p["op"] not in ROWS:
            continue
        sizes = dict(part.rsplit(" ", 1) for part in p["sizes"].split(", "))
        count = int(sizes.pop(ROWS[p["op"]]))
        sizes.pop("row_alignment", None)
        forecast = p["forecast_s"]
        series[p["op"], p["gpu"], p["software"], p["dtype"], str(sizes)][count].append(
            (math.log(p["measured_s"] / forecast), math.log(p["high_s"] / forecast), math.log(forecast / p["low_s"])))
    pairs = collections.defaultdict(list)
    for (op, gpu, *_), counts in series.items():
        for count, here in counts.items():
            for factor in FACTORS:
                if count * factor not in counts:
                    continue
                there = counts[count * factor]
                error = statistics.median(r for r, *_ in there) - statistics.median(r for r, *_ in here)
                (_, up_here, down_here), (_, up_there, down_there) = here[0], there[0]
                pairs[op, gpu, factor].append((error, math.hypot(up_there, down_here), math.hypot(down_there, up_here), up_there, down_there))
                pairs[op, gpu, factor].append((-error, math.hypot(up_here, down_there), math.hypot(down_here, up_there), up_here, down_here))
    return {key: many for key, many in pairs.items() if len(many) >= FEWEST}


def coverage(pairs: dict, doublings: float) -> float:
    """Mean over the sets; 0: the interval of the forecast there, as if the time here said nothing."""
    shares = []
    for (_, _, factor), many in pairs.items():
        if doublings > 0:
            share = math.sqrt(1 - math.exp(-math.log2(factor) / doublings))
            shares.append(sum(-share * down <= error <= share * up for error, up, down, *_ in many) / len(many))
        else:
            shares.append(sum(-down <= error <= up for error, _, _, up, down in many) / len(many))
    return sum(shares) / len(shares)


def fitted(pairs: dict) -> float:
    return min((0.3 * 1.05**i for i in range(90)), key=lambda d: abs(coverage(pairs, d) - COVERAGE))


def main() -> None:
    tilecast, *folders = sys.argv[1:]
    pairs = pairs_of([p for folder in folders for p in points(tilecast, folder)])
    print(f"{sum(map(len, pairs.values())) // 2:,} pairs in {len(pairs)} sets")
    print(f"all: doublings {fitted(pairs):.2f}, coverage before {coverage(pairs, 0):.3f}, after {coverage(pairs, fitted(pairs)):.3f}")
    for factor in FACTORS:
        some = {key: many for key, many in pairs.items() if key[2] == factor}
        print(f"  {factor:2} times: before {coverage(some, 0):.3f}, after {coverage(some, fitted(pairs)):.3f}")
    for gpu in sorted({gpu for _, gpu, _ in pairs}):
        left_out = fitted({key: many for key, many in pairs.items() if key[1] != gpu})
        own = {key: many for key, many in pairs.items() if key[1] == gpu}
        print(f"  without {gpu}: doublings {left_out:.2f}; its coverage before {coverage(own, 0):.3f}, after {coverage(own, left_out):.3f}")


if __name__ == "__main__":
    main()
