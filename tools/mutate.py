#!/usr/bin/env python3
"""Mutation test: changes one operator or number of a source at a time and sees whether a test fails.

    cmake -S . -B build/mutate -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" -DCMAKE_UNITY_BUILD=OFF
    python3 tools/mutate.py build/mutate --count 40 --seed 1 -o research/mutation/survivors.csv

Each mutant is built, the unit tests run, then the snapshot of all bundled models. The table has a row for each mutant: what killed
it ("build", "tests", "snapshot"), or "survived". The sources are restored, also after an interruption. One mutant takes about 20 s
of two cores. Sources: laws of kernels, memory over time, schedulers of servers.
"""
import argparse
import csv
import random
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("src/predict/law_*.cc", "src/memory/*.cc", "src/sim/scheduler*.cc", "src/sim/engine*.cc")
# What is replaced, and by what; the first group is kept.
RULES = (
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "), (r" && ", " || "), (r" \|\| ", " && "),
    (r"std::max\(", "std::min("), (r"std::min\(", "std::max("), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
)
TIMEOUT_S = 300


def code_lines(text):
    """(number, line) of the lines that hold code of a function, without comments."""
    for number, line in enumerate(text.splitlines()):
        code = line.split("//")[0]
        if code.startswith("  ") and not code.strip().startswith(("#", '"')):
            yield number, code


def mutants(paths):
    for path in paths:
        text = path.read_text()
        for number, code in code_lines(text):
            for pattern, new in RULES:
                for match in re.finditer(pattern, code):
                    yield path, number, match.start(), match[0], new


def run(command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=TIMEOUT_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def verdict(build):
    if not run(["cmake", "--build", str(build), "--target", "tilecast_tests", "snapshot"]):
        return "build"
    if not run([str(build / "tilecast_tests"), "--gtest_brief=1", "--gtest_fail_fast"]):
        return "tests"
    return "survived" if run([str(build / "snapshot"), "tests/snapshot/expected.txt"]) else "snapshot"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path, help="a configured build folder")
    parser.add_argument("--count", type=int, default=40, help="mutants, drawn evenly from all (default: 40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the sources' paths")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()

    build = args.build.resolve()
    paths = sorted(p for pattern in SOURCES for p in ROOT.glob(pattern) if not p.stem.endswith("_test") and args.only in str(p))
    everything = list(mutants(paths))
    drawn = random.Random(args.seed).sample(everything, min(args.count, len(everything)))
    if verdict(build) != "survived":
        print("mutate: tests or snapshot fail without a mutant", file=sys.stderr)
        return 1
    args.output.parent.mkdir(parents=True, exist_ok=True)
    counts = {}
    with args.output.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["file", "line", "was", "is", "killed_by", "code"])
        for path, number, start, old, new in sorted(drawn, key=lambda m: (str(m[0]), m[1], m[2])):
            text = path.read_text()
            lines = text.splitlines(keepends=True)
            line = lines[number]
            lines[number] = line[:start] + new + line[start + len(old):]
            try:
                path.write_text("".join(lines))
                killer = verdict(build)
            finally:
                path.write_text(text)
            counts[killer] = counts.get(killer, 0) + 1
            table.writerow([path.relative_to(ROOT), number + 1, old.strip(), new.strip(), killer, line.strip()])
            file.flush()
    print(f"mutate: {len(drawn)} of {len(everything)} mutants: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
