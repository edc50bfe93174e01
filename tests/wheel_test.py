#!/usr/bin/env python3
"""Checks an installed wheel: the program on the environment's path, the time of `import tilecast`, the tests of the package.

    tests/wheel_test.py ENVIRONMENT [IMPORT_MS]     run by the Python of that virtual environment

IMPORT_MS: what `import tilecast` may take of a processor, 5; a machine that others use at the same time needs more.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

TRIES = 15
IMPORT = "import time; start = time.process_time(); import tilecast; print(time.process_time() - start)"


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", **options).stdout


def main():
    environment = Path(sys.argv[1]).resolve()
    longest_ms = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    python, program = str(environment / "bin/python"), str(environment / "bin/tilecast")
    print(output(program, "--version").strip())
    words = ("forecast", "gpt2_large", "--gpu", "H100", "--mode", "training", "--batch", "4")
    asked = json.loads(output(program, *words, "--format", "json"))["latency_s"]
    call = "import tilecast; print(tilecast.forecast('gpt2_large', gpu='H100', mode='training', batch=4).latency_s)"
    assert float(output(python, "-I", "-c", call)) == asked, "Python and the program differ"
    # Of several, the fastest: other programs of the machine only add time.
    fastest_ms = min(float(output(python, "-I", "-c", IMPORT)) for _ in range(TRIES)) * 1e3
    assert fastest_ms <= longest_ms, f"import tilecast takes {fastest_ms:.1f} ms"
    tests = Path(__file__).resolve().parent / "python"
    subprocess.run([python, "-m", "unittest", "discover", "-q", "-s", str(tests)], check=True, cwd="/", env={**os.environ, "TILECAST_PROGRAM": program})
    print(f"wheel: Python {sys.version.split()[0]}, import tilecast {fastest_ms:.1f} ms, tests pass")


if __name__ == "__main__":
    main()
