#!/usr/bin/env python3
"""Runs the examples of README.md whose output is shown ("$ build/release/tilecast ..."), and compares.

    tests/readme_test.py PROGRAM [--update]
"""
import difflib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
EXAMPLE = re.compile(r"(?<=```\n)\$ build/release/tilecast ([^\n]*)\n(.*?)(?=```\n)", re.S)


def main():
    program, update = sys.argv[1], "--update" in sys.argv[2:]
    text = README.read_text()
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    failed = count = 0

    def run(example):
        nonlocal failed, count
        count += 1
        done = subprocess.run([program, *shlex.split(example[1])], capture_output=True, text=True, env=environment)
        found = done.stdout + done.stderr
        if found != example[2]:
            failed += 1
            print(f"README.md: tilecast {example[1]}")
            print("".join(difflib.unified_diff(example[2].splitlines(True), found.splitlines(True), "shown", "found")))
        return f"$ build/release/tilecast {example[1]}\n{found}"

    new = EXAMPLE.sub(run, text)
    if count == 0:
        sys.exit("README.md: no example with its output was found")
    if update:
        README.write_text(new)
    print(f"{count} examples, {failed} differ")
    sys.exit(1 if failed and not update else 0)


if __name__ == "__main__":
    main()
