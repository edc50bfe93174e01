#!/usr/bin/env python3
"""Checks that #includes and docs/architecture.md follow the table in cmake/layers.cmake, that no two headers define a type of the same name,
and that no source calls a function that depends on the locale.

Two types of one name in one namespace are undefined behaviour that no compiler reports: the linker keeps one's functions for both.
Exit status 1 where something is wrong.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = (ROOT / "cmake/layers.cmake").read_text()
CALLS = [(name, words.split()) for name, words in re.findall(r"^(tilecast_\w+)\(([^)]*)\)", TABLE, re.MULTILINE)]
# folder: what it may include directly; "may include" is transitive.
LAYERS = {words[0]: words[1:] for name, words in CALLS if name == "tilecast_layer"}
# Folders that may see the headers of the façade besides error.h and choices.h, which all may.
FACADE = {folder for name, words in CALLS if name == "tilecast_sees_facade" for folder in words}


def reachable(folder: str) -> set:
    result, queue = {folder}, [folder]
    while queue:
        for below in LAYERS[queue.pop()]:
            if below not in result:
                result.add(below)
                queue.append(below)
    return result


def types_defined_twice() -> list:
    """A line for each type of a namespace that is defined in a second header."""
    homes, wrong = {}, []
    for path in [*sorted((ROOT / "src").rglob("*.h")), *sorted((ROOT / "include").rglob("*.h"))]:
        text = path.read_text()
        space = re.search(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
        for match in re.finditer(r"^(?:struct|class|enum class) ([\w:]+)[^;{]*\{", text, re.MULTILINE):
            name = f"{space[1] if space else ''}::{match[1]}"
            if homes.setdefault(name, path) != path:
                wrong.append(f"{path}: {name} is defined in {homes[name]} too; give one of them another name")
    return wrong


def documented_wrongly() -> list:
    """A line for each folder whose row in docs/architecture.md states other folders than the table."""
    path = ROOT / "docs/architecture.md"
    rows = re.findall(r"^\| `src/(\w+)` \|.*\| ([^|]+) \|$", path.read_text(), re.MULTILINE)
    stated = {folder: sorted(last.replace("–", "").replace(",", " ").split()) for folder, last in rows}
    wrong = []
    for folder, below in LAYERS.items():
        expected = sorted([*below, *(["façade"] if folder in FACADE else [])])
        if stated.get(folder) != expected:
            wrong.append(f"{path}: src/{folder} may include {', '.join(expected) or '–'}; its row states {stated.get(folder)}")
    return wrong


# Their results depend on the locale of the process, which a library does not choose: base/ascii.h, base/number.h.
LOCALE = re.compile(r"\b(?:std::(?:is(?:alnum|alpha|digit|lower|print|punct|space|upper|xdigit)|to(?:lower|upper)"
                    r"|stof|stod|stold|strto[dfl]\w*|atof|atoi|locale)|setlocale|strtod|atof)\(")


def locale_functions() -> list:
    """A line for each use of a function that reads the locale, outside of tests."""
    wrong = []
    for path in sorted((ROOT / "src").rglob("*.h")) + sorted((ROOT / "src").rglob("*.cc")):
        if path.stem.endswith("_test"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := LOCALE.search(line):
                wrong.append(f"{path}:{number}: {match[0]}…) depends on the locale; use base/ascii.h or base/number.h")
    return wrong


def main() -> int:
    wrong = types_defined_twice() + documented_wrongly() + locale_functions()
    for path in sorted((ROOT / "src").rglob("*.h")) + sorted((ROOT / "src").rglob("*.cc")):
        folder = path.relative_to(ROOT / "src").parts[0]
        if folder not in LAYERS:
            wrong.append(f"{path}: folder '{folder}' is in no layer; add it to cmake/layers.cmake")
            continue
        if path.stem.endswith("_test"):
            continue  # tests may look anywhere
        allowed = reachable(folder)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#include "([^"]+)"', line)
            if not match:
                continue
            top = match[1].split("/")[0]
            if top == "tilecast":
                if match[1] not in ("tilecast/error.h", "tilecast/choices.h") and folder not in FACADE:
                    wrong.append(f"{path}:{number}: {folder} may not include {match[1]}")
            elif top not in allowed:
                wrong.append(f"{path}:{number}: {folder} may not include {top}")
    for path in sorted((ROOT / "include/tilecast").glob("*.h")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#include "([^"]+)"', line)
            if match and not match[1].startswith("tilecast/"):
                wrong.append(f"{path}:{number}: the façade may include the standard library only")
    print("\n".join(wrong) if wrong else "layers: every include points up, as docs/architecture.md states")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
