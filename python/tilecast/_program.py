"""The program `tilecast` where the package is installed, and `python -m tilecast`: the code of the compiled module."""
from __future__ import annotations

import os
import signal
import sys

from . import _core


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as any program: Python's own handler waits for Python code
    os.environ.setdefault("TILECAST_PYTHON", sys.executable)  # `explore` is handed on to this Python
    words = [os.fsencode(word) for word in sys.argv]
    return _core._run_program([b"tilecast", *words[1:]])
