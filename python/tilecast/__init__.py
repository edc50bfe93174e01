"""Tilecast forecasts the time and memory of deep-learning models on GPUs.

    >>> import tilecast
    >>> forecast = tilecast.forecast("gpt2_large", gpu="H100", mode="training", batch=4)
    >>> forecast.latency_s, forecast.memory.peak_bytes

Options are the words of the command line, with underscores: `tilecast.options()` lists them.
"""
from __future__ import annotations

from . import _core
from ._core import Forecaster, ForecastTable, __version__, gpus, load_gpu, models, ops, options
from ._errors import Error, InputError, InternalError, IoError, NotFoundError, UnsupportedError

__all__ = [
    "Error", "ForecastTable", "Forecaster", "InputError", "InternalError", "IoError", "NotFoundError", "UnsupportedError",
    "__version__", "evaluate", "forecast", "forecast_many", "gpus", "kernel", "load_gpu", "load_model", "models", "ops",
    "options",
]

_default = None


def _forecaster(weights, calibration) -> Forecaster:
    """With the embedded weights: one for all calls. Others are read for each call, since files can change."""
    global _default
    if weights or calibration:
        return Forecaster(weights or "", calibration or "")
    if _default is None:
        _default = Forecaster()
    return _default


def forecast(model, gpu=None, *, inputs=None, weights=None, calibration=None, **options):
    """Forecasts a model on a GPU: one pass or training step, or text generation if `prompt` is given.

    model: the name of a bundled model, the path of a config.json, its folder, an ONNX file or a graph file, the content
        of a config as a dict, a configuration of transformers, a torch.nn.Module with `inputs`, or what `load_model`
        returns.
    gpu: an id or alias, the path of a device file or its content as a dict, or what `load_gpu` returns; or an accelerator
        ("gemmini-16", "gemmini:DIM=8", a description), with `exact`, `mapping` and `parameters` as further options.
    inputs: example inputs of a torch.nn.Module: a tuple of its arguments, a dict of its keyword arguments, or one tensor.
    weights, calibration: the folder of 'tilecast train', the file of 'tilecast calibrate'.
    options: batch, mode, dtype, ...; None is the default. `tilecast.options()` lists all.
    """
    return _forecaster(weights, calibration).forecast(model, gpu, inputs=inputs, **options)


def forecast_many(table, *, threads=0, weights=None, calibration=None, **options):
    """Forecasts each row of a table with a column for each option: model, gpu, batch, ...

    table: an object with __arrow_c_stream__ or __arrow_c_array__ (of pyarrow, polars, pandas, DuckDB, ...) or a dict of
        lists. A missing value is the default.
    threads: 0 uses all cores that the process may use. Equal rows are forecast once.
    options: columns with the same value in all rows.

    The result has a row for each row of the table; `error` says why a row could not be forecast. It has
    __arrow_c_stream__, so pyarrow.table(result) works, and to_dict().
    """
    return _forecaster(weights, calibration).forecast_many(table, threads=threads, **options)


def load_model(model, *, inputs=None, mode=None):
    """Reads a model once, for several forecasts. `mode` is that of the forecasts of a torch.nn.Module."""
    from ._models import load_model as load
    return load(model, inputs, mode)


def kernel(op, gpu, *, weights=None, calibration=None, **sizes):
    """Forecasts the kernels of one operator: kernel("linear", gpu="A100", m=4096, n=5120, k=1280)."""
    return _forecaster(weights, calibration).kernel(op, gpu, **sizes)


def evaluate(path, *, predictor="learned", weights=None, calibration=None):
    """Compares forecasts with the measurements in a file or folder."""
    from os import fspath
    return _forecaster(weights, calibration).evaluate(fspath(path), predictor=predictor)
