#!/usr/bin/env python3
"""Rewrites the expected output of tests/cases from the release build; review the diff."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.exit(subprocess.run([sys.executable, ROOT / "tests/run_cases.py", ROOT / "build/release/tilecast", "--update",
                         *sys.argv[1:]]).returncode)
