#!/usr/bin/env python3
"""Writes docs/reference/price_tables.md from data/prices: python3 tools/price_page.py [--check]

--check: writes nothing; exit status 1 where the page is not the one of the data.
"""
import csv
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/price_tables.md"
HEAD = """# Price tables

<!-- Written by tools/price_page.py from data/prices. -->

A price table states what an hour of a GPU costs: `--price-per-gpu-hour aws-on-demand` takes each GPU's price from a table that comes with
Tilecast, `--price-per-gpu-hour prices.csv` from a file. Nothing uses a table unless it is asked for. Results state the row, with its date and source
(`gpu_price` in JSON), and costs in its currency.

```sh
tilecast forecast llama-3-8b --gpus H100,A100,L40S --prompt 1024 --price-per-gpu-hour aws-on-demand
tilecast plan llama-3-8b --gpus H100,L40S --prompt 512 --output 128 --tpot-s 0.03 --price-per-gpu-hour prices.csv
```

| column | what |
|---|---|
| `gpu` | id, name or alias of a GPU or a cluster (`tilecast gpus`, `tilecast clusters`); one row each. A cluster's row comes before that of its GPU |
| `price_per_gpu_hour` | of one GPU, also in a row of a cluster |
| `currency` | three letters (`USD`). GPUs that are compared need prices in one currency |
| `date` | of the price: `2025`, `2025-06` or `2025-06-30` |
| `source` | where it can be looked up; one that begins with `guess` cannot, and says what it is from |

A file needs the first two columns only. Lines that begin with `#` before the header are remarks. Prices change, differ by region and fall with
commitments: give your own for decisions. **Those below are guesses**: list prices from memory, not looked up. A link in a row's source, with its date, would settle it.
"""


def table(path: Path) -> str:
    lines = path.read_text().splitlines()
    remarks = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    text = f"\n## {path.stem}\n{remarks}.\n\n| gpu | price per hour | currency | date | source |\n|---|--:|---|---|---|\n"
    for row in rows:
        text += f"| {row['gpu']} | {row['price_per_gpu_hour']} | {row['currency']} | {row['date']} | {row['source']} |\n"
    return text


def page() -> str:
    return HEAD + "".join(table(path) for path in sorted((ROOT / "data/prices").glob("*.csv")))


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text() == text:
            print("price_page: docs/reference/price_tables.md is current")
            return 0
        print("price_page: docs/reference/price_tables.md is not that of data/prices; run tools/price_page.py")
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
