#!/usr/bin/env python3
"""Runs tests/cases/*.case: a command line, its input files and its whole expected output.

A case is a text file:

    $ tilecast kernel linear --gpu V100 -m 64
    --- file my.json            (any number: files in the folder that the command runs in)
    ...
    --- exit 1
    --- stdout
    ...
    --- stderr
    ...

    tests/run_cases.py <program> [--update] [--left-out] [name ...]

The program is tilecast_cases: tilecast with small weights that never change. A case whose comment has the line "# embedded weights"
runs with the program tilecast beside it: what it shows is a property of the real weights.

--update rewrites the expected output; read the diff before you commit it. --left-out: a case that fails for a component that the
build lacks is skipped.
"""
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

# What changes the width and the colors of tables is not taken from whoever runs the tests.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE")}
CASES = Path(__file__).resolve().parent / "cases"


def parse(text: str) -> dict:
    case = {"comment": "", "command": "", "files": {}, "exit": 0, "stdout": "", "stderr": ""}
    target, name = "comment", ""
    for line in text.splitlines(keepends=True):
        if line.startswith("$ ") and target == "comment":
            case["command"] = line[2:].strip()
        elif line.startswith("--- file "):
            target, name = "file", line[9:].strip()
            case["files"][name] = ""
        elif line.startswith("--- exit "):
            case["exit"] = int(line[9:])
        elif line.strip() in ("--- stdout", "--- stderr"):
            target = line.strip()[4:]
        elif target == "file":
            case["files"][name] += line
        else:
            case[target] += line
    return case


def render(case: dict) -> str:
    text = case["comment"] + "$ " + case["command"] + "\n"
    for name, content in case["files"].items():
        text += f"--- file {name}\n{content}"
    text += f"--- exit {case['exit']}\n--- stdout\n{case['stdout']}"
    if case["stderr"]:
        text += "--- stderr\n" + case["stderr"]
    return text


def run(tilecast: str, case: dict) -> dict:
    if "# embedded weights\n" in case["comment"]:
        tilecast = str(Path(tilecast).with_name("tilecast"))
    with tempfile.TemporaryDirectory() as folder:
        for name, content in case["files"].items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        command = shlex.split(case["command"])
        assert command[0] == "tilecast", "a case runs tilecast"
        result = subprocess.run([tilecast, *command[1:]], cwd=folder, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=600, env=ENVIRONMENT)
    # Progress is written of what takes more than 2 s: that depends on the machine.
    errors = re.sub(r"^tilecast: +\d+ %  .*\n", "", result.stderr, flags=re.MULTILINE)
    return {**case, "exit": result.returncode, "stdout": result.stdout, "stderr": errors}


def main() -> int:
    tilecast = str(Path(sys.argv[1]).resolve())
    update = "--update" in sys.argv
    names = [a for a in sys.argv[2:] if not a.startswith("--")]
    paths = [p for p in sorted(CASES.glob("*.case")) if not names or p.stem in names]
    failed = 0
    for path in paths:
        expected = path.read_text()
        actual = render(run(tilecast, parse(expected)))
        if actual == expected:
            continue
        if "--left-out" in sys.argv and "this build of Tilecast has no " in actual:
            print(f"skipped: {path.name} needs a component that this build lacks")
            continue
        if update:
            path.write_text(actual)
            print(f"rewrote {path.name}")
            continue
        failed += 1
        print(f"{path.name} differs:")
        sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True),
                                                   "expected", "actual"))
    print(f"{len(paths) - failed} cases passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
