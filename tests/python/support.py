"""Shared by the tests of the Python package."""
import importlib.util
import json
import os
import subprocess
import unittest

PROGRAM = os.environ.get("TILECAST_PROGRAM")  # the command line, to compare with


def needs(*modules: str):
    """Skips a test where a module is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def command_line(*words: str) -> dict:
    """What `tilecast ... --format json` writes."""
    if not PROGRAM:
        raise unittest.SkipTest("TILECAST_PROGRAM is not set: there is nothing to compare with")
    result = subprocess.run([PROGRAM, *words, "--format", "json"], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)
