#!/usr/bin/env python3
"""Rewrites the expected output of tests/cases with the release build's tilecast_cases; review the diff."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.exit(subprocess.run([sys.executable, ROOT / "tests/run_cases.py", ROOT / "build/release/tilecast_cases", "--update",
                         *sys.argv[1:]]).returncode)
