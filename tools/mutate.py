#!/usr/bin/env python3
"""Mutation test: changes one operator or number of a source at a time and sees whether a test fails.

    python3 tools/mutate.py build/mutate --count 100 --seed 1 -o research/mutation/mutants.csv

Each mutant is built, the snapshot of all bundled models compared, then the unit tests run. The table has a row for each mutant: what
killed it ("build", "snapshot", "tests"), or "survived". The sources are restored, also after an interruption; use a worktree of its own.
The build is a unity build in which the mutated sources are compiled alone. Sources: laws of kernels, memory over time, schedulers.
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
TIMEOUT_S = 300  # of a mutant; one may loop for ever
BUILD_TIMEOUT_S = 7200


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


def run(command, timeout_s=TIMEOUT_S):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=timeout_s).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def configure(build, paths):
    alone = ";".join(str(p.relative_to(ROOT)) for p in paths)
    subprocess.run(["cmake", "--preset", "release", "-B", str(build), "-DBUILD_TESTING=ON", "-DTILECAST_MEASURE=OFF", "-DTILECAST_PYTHON=OFF",
                    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", f"-DTILECAST_ALONE={alone}"], cwd=ROOT, check=True, capture_output=True)


def verdict(build, jobs, build_timeout_s=TIMEOUT_S):
    if not run(["cmake", "--build", str(build), "-j", str(jobs), "--target", "tilecast_tests", "snapshot"], build_timeout_s):
        return "build"
    if not run([str(build / "snapshot"), "tests/snapshot/expected.txt"]):
        return "snapshot"
    return "survived" if run([str(build / "tilecast_tests"), "--gtest_brief=1", "--gtest_fail_fast"]) else "tests"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path, help="a build folder, which is configured here")
    parser.add_argument("--count", type=int, default=40, help="mutants, drawn evenly from all (default: 40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="of the build (default: 2)")
    parser.add_argument("--only", default="", help="a part of the sources' paths")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()

    build = args.build.resolve()
    paths = sorted(p for pattern in SOURCES for p in ROOT.glob(pattern) if not p.stem.endswith("_test") and args.only in str(p))
    everything = list(mutants(paths))
    drawn = random.Random(args.seed).sample(everything, min(args.count, len(everything)))
    configure(build, paths)
    if verdict(build, args.jobs, BUILD_TIMEOUT_S) != "survived":
        print("mutate: tests or snapshot fail without a mutant", file=sys.stderr)
        return 1
    args.output.parent.mkdir(parents=True, exist_ok=True)
    counts = {}
    with args.output.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["file", "line", "was", "is", "killed_by", "code"])
        for path, number, start, old, new in drawn:
            text = path.read_text()
            lines = text.splitlines(keepends=True)
            line = lines[number]
            lines[number] = line[:start] + new + line[start + len(old):]
            try:
                path.write_text("".join(lines))
                killer = verdict(build, args.jobs)
            finally:
                path.write_text(text)
            counts[killer] = counts.get(killer, 0) + 1
            table.writerow([path.relative_to(ROOT), number + 1, old.strip(), new.strip(), killer, line.strip()])
            file.flush()
    print(f"mutate: {len(drawn)} of {len(everything)} mutants: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
