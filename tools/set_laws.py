#!/usr/bin/env python3
"""Writes the constants that `tilecast train --laws` fitted into files of laws: python3 tools/set_laws.py FOLDER/laws.json [PREFIX...]

PREFIX: only constants whose names begin with one of these. --from FOLDER, --to FOLDER: where the files are read and
written, both data/laws where nothing else is said. Only files with a fitted constant are written.
"""
import argparse
import json
from pathlib import Path

LAWS = Path(__file__).resolve().parent.parent / "data/laws"


def text_of(entry, indent: int = 0) -> str:
    """As the files of data/laws are written: keys in order, lists on one line."""
    if not isinstance(entry, dict):
        return json.dumps(entry)
    space = " " * (indent + 1)
    members = (f"{space}{json.dumps(key)}: {text_of(value, indent + 1)}" for key, value in sorted(entry.items()))
    return "{\n" + ",\n".join(members) + "\n" + " " * indent + "}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fitted", type=Path)
    parser.add_argument("prefixes", nargs="*")
    parser.add_argument("--from", dest="source", type=Path, default=LAWS)
    parser.add_argument("--to", dest="target", type=Path, default=LAWS)
    options = parser.parse_intermixed_args()
    laws: dict = {}
    for constant in json.loads(options.fitted.read_text())["constants"]:
        if options.prefixes and not constant["name"].startswith(tuple(options.prefixes)):
            continue
        law, *path = constant["name"].split(".")
        if law not in laws:
            laws[law] = json.loads((options.source / f"{law}.json").read_text())
        entry = laws[law]["constants"]
        for key in path:
            entry = entry[key]
        value = constant["value"]
        entry["value"] = int(value) if float(value).is_integer() else value
        print(constant["name"], constant["before"], "->", entry["value"])
    options.target.mkdir(parents=True, exist_ok=True)
    for law, content in laws.items():
        (options.target / f"{law}.json").write_text(text_of(content) + "\n")


if __name__ == "__main__":
    main()
