#!/usr/bin/env python3
"""Writes docs/reference/laws.md, the table of the constants of the laws, from data/laws: python3 tools/law_page.py [--check]

--check: writes nothing; exit status 1 where the page is not the one of the data.
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/laws.md"
HEAD = """# Constants of the laws

<!-- Written by tools/law_page.py from data/laws. -->

A law is a formula that gives the time of a kernel or of a collective from its work and the data sheet. Its constants are data: one file
for each law in `data/laws`. What differs between kinds of software is in `data/software`. Files of the same names in a folder `laws` beside
the weights that `--weights` names replace the bundled ones.

A source begins with how the value was found: measured, data sheet, documented (by a vendor or in source code), fitted, guess. The source of a
group is that of its constants.
"""


def rows(group: dict, prefix: str):
    """(name, value, unit, what, source) of each constant of a group; groups have no value."""
    for key, entry in group.items():
        if key in ("what", "source"):
            continue
        own = entry.get("source", "")
        if "value" in entry:
            yield prefix + key, entry["value"], entry["unit"], entry["what"], own
        else:
            yield prefix + key, None, "", entry.get("what", ""), own
            yield from rows(entry, prefix + key + ".")


def shown(value) -> str:
    if isinstance(value, list):
        return ", ".join("x".join(str(number) for number in item) if isinstance(item, list) else str(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def page() -> str:
    parts = [HEAD]
    for path in sorted((ROOT / "data/laws").glob("*.json")):
        law = json.loads(path.read_text())
        parts.append(f"\n## {path.stem}\n{law['what']}\n")
        if "source" in law:
            parts.append(f"\nWhere no other source is stated: {law['source']}.\n")
        parts.append("\n| constant | value | unit | what | source |\n|---|--:|---|---|---|\n")
        for name, value, unit, what, source in rows(law["constants"], ""):
            cells = [f"`{name}`", "" if value is None else shown(value), "" if unit == "1" else unit, what, source]
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text() == text:
            print("law_page: docs/reference/laws.md is current")
            return 0
        print("law_page: docs/reference/laws.md is not that of data/laws; run tools/law_page.py")
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
