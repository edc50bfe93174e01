#!/usr/bin/env python3
"""Runs the examples of documents whose output is shown ("$ build/release/tilecast ..."), and compares.

    tests/readme_test.py PROGRAM [--update]

A block that begins with "```json file=NAME" is a file of the examples after it.
"""
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "docs/accelerators.md"]
EXAMPLE = re.compile(r"(?<=```\n)\$ build/release/tilecast ([^\n]*)\n(.*?)(?=```\n)", re.S)
FILE = re.compile(r"```json file=(\S+)\n(.*?)```\n", re.S)


def check(document, program, update):
    """How many examples a document has, and how many differ."""
    path = ROOT / document
    text = path.read_text()
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILE.findall(text):
            (Path(folder) / name).write_text(content)

        def run(example):
            nonlocal failed, count
            count += 1
            done = subprocess.run([program, *shlex.split(example[1])], capture_output=True, text=True, env=environment,
                                  cwd=folder)
            found = done.stdout + done.stderr
            if found != example[2]:
                failed += 1
                print(f"{document}: tilecast {example[1]}")
                print("".join(difflib.unified_diff(example[2].splitlines(True), found.splitlines(True), "shown", "found")))
            return f"$ build/release/tilecast {example[1]}\n{found}"

        new = EXAMPLE.sub(run, text)
    if count == 0:
        sys.exit(f"{document}: no example with its output was found")
    if update:
        path.write_text(new)
    return count, failed


def main():
    program, update = os.path.abspath(sys.argv[1]), "--update" in sys.argv[2:]
    results = [check(document, program, update) for document in DOCUMENTS]
    count, failed = (sum(numbers) for numbers in zip(*results))
    print(f"{count} examples, {failed} differ")
    sys.exit(1 if failed and not update else 0)


if __name__ == "__main__":
    main()
