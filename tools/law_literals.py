#!/usr/bin/env python3
"""Counts the numbers that are left in the code of laws. Constants of laws are data (data/laws): python3 tools/law_literals.py [--list]

A number is a numeric literal other than 0, 1, 2 and 0.5, outside comments, strings and #include lines. What may stay is geometry and
arithmetic that no fit would move: bits of a byte, lanes of a warp, exponents, sizes in the names of features. Each has a name.
Exit status 1 where there are more than MOST.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 60
LAWS = """
src/predict/law*.cc src/predict/law*.h src/predict/blocks.h src/predict/chip.* src/predict/bound.* src/predict/collective.cc
src/predict/coverage.* src/predict/embedding.* src/predict/features.* src/predict/interval.* src/predict/learned.* src/predict/miopen.*
src/predict/kind_*.cc src/predict/residual.* src/predict/roofline.* src/predict/similarity.* src/predict/unmeasured.*
src/collectives/collective.cc src/collectives/law* src/collectives/paths.*
""".split()
PLAIN = {"0", "1", "2", "0.0", "1.0", "2.0", "0.5"}
IGNORED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'(?!\d)|^\s*#[^\n]*', re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F']+|\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?)[fFuUlL]*")


def literals(path: Path) -> list:
    """(line, number) of each that counts."""
    text = IGNORED.sub(lambda match: "\n" * match[0].count("\n"), path.read_text())
    found = []
    for match in NUMBER.finditer(text):
        if match[0].rstrip("fFuUlL") not in PLAIN:
            found.append((text.count("\n", 0, match.start()) + 1, match[0]))
    return found


def main() -> int:
    total = 0
    for pattern in LAWS:
        paths = sorted(ROOT.glob(pattern))
        if not paths:
            sys.exit(f"law_literals: no file is like {pattern}")
        for path in paths:
            if path.stem.endswith("_test"):
                continue
            found = literals(path)
            total += len(found)
            if found and "--list" in sys.argv[1:]:
                print(f"{path.relative_to(ROOT)}: {len(found)}: " + ", ".join(f"{number} ({line})" for line, number in found))
    print(f"law_literals: {total} numbers are left in the code of laws, at most {MOST} may be")
    return 1 if total > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
