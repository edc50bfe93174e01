#!/usr/bin/env python3
"""The picture of the README: errors of kernel times on GPUs that were left out of training, beside those of the roofline.

    tools/left_out_picture.py            compares docs/left_out.svg with data/weights/errors.json, exit status 1 if it differs
    tools/left_out_picture.py --write    writes it
"""
import collections
import html
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "left_out.svg"
LEFT, RIGHT, TOP, STEP, WIDTH = 190, 90, 66, 20, 760
LARGEST = 80  # percent, the right end of the axis
OURS, ROOFLINE, INK, QUIET = "#0b6e99", "#b8b8b8", "#222222", "#666666"  # their lightness differs: they survive grey


def errors():
    """(GPU, rows, our error, the roofline's): percent, means over all rows of the GPU, the least error first."""
    rows = collections.defaultdict(list)
    for row in json.loads((ROOT / "data" / "weights" / "errors.json").read_text())["left_out"]:
        rows[row["gpu"]].append(row)
    table = []
    for gpu, own in rows.items():
        count = sum(row["count"] for row in own)
        table.append((gpu, count, *(sum(row[key] * row["count"] for row in own) / count
                                    for key in ("mape_percent", "roofline_mape_percent"))))
    return sorted(table, key=lambda entry: entry[2])


def text(x, y, words, size=12, color=INK, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{more}>{html.escape(words)}</text>'


def picture(table):
    height = TOP + STEP * len(table) + 44
    scale = (WIDTH - LEFT - RIGHT) / LARGEST
    better = sum(ours < roofline for _, _, ours, roofline in table)
    middle = sorted(ours for _, _, ours, _ in table)[len(table) // 2]
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             text(16, 24, f"Kernel times of a GPU that training never saw: half of {len(table)} GPUs within {middle:.0f} %", 15,
                  more=' font-weight="bold"'),
             text(16, 44, f"Mean error of the forecast against measurements; better than the roofline on {better} of {len(table)}", 12, QUIET)]
    bottom = TOP + STEP * len(table)
    for percent in range(0, LARGEST + 1, 20):
        x = LEFT + percent * scale
        lines += [f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#e4e4e4"/>',
                  text(x, bottom + 16, f"{percent} %", 11, QUIET, "middle")]
    for i, (gpu, count, ours, roofline) in enumerate(table):
        y = TOP + STEP * i + 4
        a, b = LEFT + ours * scale, LEFT + roofline * scale
        lines += [text(LEFT - 10, y + 4, gpu, 11, INK, "end"),
                  f'<line x1="{a:.1f}" y1="{y}" x2="{b:.1f}" y2="{y}" stroke="#d0d0d0" stroke-width="2"/>',
                  f'<circle cx="{b:.1f}" cy="{y}" r="4" fill="{ROOFLINE}"/>', f'<circle cx="{a:.1f}" cy="{y}" r="5" fill="{OURS}"/>',
                  text(WIDTH - RIGHT + 82, y + 4, f"{count:,} rows", 10, QUIET, "end")]
        if i == 0:
            lines += [text(a + 9, y - 7, f"Tilecast {ours:.1f} %", 11, OURS), text(b, y - 7, f"roofline {roofline:.0f} %", 11, QUIET, "middle")]
        else:
            lines.append(text(a - 9, y + 4, f"{ours:.1f}", 10, OURS, "end"))
    lines += [text(LEFT, bottom + 34, "mean absolute error, percent of the measured time; each GPU left out of training in turn", 11, QUIET), "</svg>"]
    return "\n".join(lines) + "\n"


def main():
    made = picture(errors())
    if "--write" in sys.argv:
        PICTURE.write_text(made)
        return 0
    if PICTURE.exists() and PICTURE.read_text() == made:
        return 0
    print(f"{PICTURE} is not what data/weights/errors.json gives: tools/left_out_picture.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
