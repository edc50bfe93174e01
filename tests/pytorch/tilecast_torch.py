"""tilecast.torch of this checkout: `from tilecast_torch import package`. It needs no compiled part of the Python package."""
import importlib
import sys
import types
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[2] / "python" / "tilecast"


def _load():
    if "tilecast" not in sys.modules:
        parent = types.ModuleType("tilecast")
        parent.__path__ = [str(_FOLDER)]
        sys.modules["tilecast"] = parent
    return importlib.import_module("tilecast.torch")


package = _load()
