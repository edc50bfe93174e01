"""Tilecast forecasts the time and memory of deep-learning models on GPUs.

    >>> import tilecast
    >>> forecast = tilecast.forecast("gpt2_large", gpu="H100", mode="training", batch=4)
    >>> forecast.latency_s, forecast.memory.peak_bytes

Functions are the commands of the command line, keywords its options with underscores: `tilecast.options("plan")` lists
those of `plan`; None is the default.

model: the name of a bundled model, the path of a config.json, its folder, an ONNX file or a graph file, the content of a
    config as a dict, a configuration of transformers, a torch.nn.Module with `inputs` (a tuple of its arguments, a dict of
    its keyword arguments, or one tensor), or what `load_model` returns.
gpu: an id or alias, the path of a device file or its content as a dict, an entry of `gpus()`, or what `load_gpu` returns;
    for forecasts also an accelerator ("gemmini-16", "gemmini:DIM=8", a description).
weights, calibration: the folder of 'tilecast train', the file of 'tilecast calibrate'.
"""
from __future__ import annotations

try:
    from . import _core
except ImportError as error:
    if error.name != __name__:  # the file is there, and cannot be loaded
        raise
    raise ImportError(
        "tilecast: the compiled part, tilecast._core, is missing: this folder holds the sources of the package only; install "
        "it with 'pip install .' in the root of the repository, and start Python elsewhere"
    ) from None

from ._core import (  # noqa: E402
    Forecaster, ForecastTable, SweepSpec, __version__, allocate, calibrate, calibrate_pairs, clusters, collective, compare, compare_gpus, data_file, doctor,
    evaluate, forecast, gpus, kernel, load_gpu, memory_timeline, models, occupancy, ops, options, plan, power_timeline, shard, share, step_operations, suggest_kernels,
    trace_timeline, train, tune,
)
from ._errors import Error, InputError, InternalError, IoError, NotFoundError, UnsupportedError  # noqa: E402

TYPE_CHECKING = False  # of the module typing, which takes longer to import than this one
if TYPE_CHECKING:
    from typing import Any, overload

    from typing_extensions import Unpack

    from ._core import Path, Sweep, SweepKeywords
    from ._explore import Exploration
    from ._sweep import SweepSummary

__all__ = [
    "Error", "ForecastTable", "Forecaster", "InputError", "InternalError", "IoError", "NotFoundError", "SweepSpec", "UnsupportedError",
    "__version__", "allocate", "calibrate", "calibrate_pairs", "clusters", "collective", "compare", "compare_gpus", "data_file", "doctor", "evaluate", "explore",
    "forecast", "forecast_many", "gpus", "kernel", "load_gpu", "load_model", "memory_timeline", "models", "occupancy", "ops", "options", "plan", "power_timeline", "shard", "share", "step_operations",
    "suggest_kernels", "sweep", "trace", "trace_timeline", "train", "tune",
]


def forecast_many(table, *, threads=0, weights=None, calibration=None, **options):
    """Forecasts each row of a table with a column for each option: model, gpu, batch, ...

    table: an object with __arrow_c_stream__ or __arrow_c_array__ (of pyarrow, polars, pandas, DuckDB, ...) or a dict of
        lists. A missing value is the default.
    threads: 0 uses all cores that the process may use. Equal rows are forecast once.
    options: columns with the same value in all rows.

    The result has a row for each row of the table; `error` says why a row could not be forecast. It has
    __arrow_c_stream__, so pyarrow.table(result) works, and to_dict().
    """
    forecaster = Forecaster(weights or "", calibration or "") if weights or calibration else _core.default_forecaster()
    return forecaster.forecast_many(table, threads=threads, **options)


if TYPE_CHECKING:
    @overload
    def sweep(spec: Path, *, on: None = None, out: None = None, **options: Unpack[SweepKeywords]) -> Sweep: ...
    @overload
    def sweep(spec: Any, *, out: Path, on: str | None = None, filesystem: Any = None, workers: int | None = None, chunk_rows: int | None = None,
              quiet: bool = False, weights: Path | None = None, calibration: Path | None = None, engine: dict | None = None,
              **options: Any) -> SweepSummary: ...


def sweep(spec, *, on=None, out=None, **options):
    """Forecasts many points: all that a spec describes, or each row of a table.

    Without `on` and `out` it is `tilecast sweep`: spec is a file, `output_file` names a CSV file, the result is a Sweep.
    With `out` the result is a folder of Parquet files; it needs pyarrow:

        tilecast.sweep({"model": [...], "gpu": [...], "batch": [...]}, out="many.parquet")
        tilecast.sweep("spec.json", on="ray", out="s3://bucket/many.parquet")

    spec: a table as forecast_many takes it, or a SweepSpec or the path of its file. A dict of lists is a table; with `parameters`, `zip`,
        `draw`, `where` or a range it is a spec.
    on: "local" (threads of this process), "ray", "spark" or "dask"; the rows are the same, bit for bit.
    out: a path or URI that pyarrow.fs knows; all workers must see it. One that a killed run left is continued; one of another question is
        an InputError. Parts are part-00000.parquet, ..., each complete; `_SUCCESS` is there when all are. The types and units of columns
        are in the metadata of the fields.
    filesystem: of `out`, in place of the one that it names. workers: threads, or tasks at once; None: all cores, or as Spark's configuration says.
    chunk_rows: rows of a part, and of what a killed worker loses. weights, calibration: paths that all workers must see.
    engine: a dict of settings of the engine: see tilecast.ray.run, tilecast.spark.run, tilecast.dask.run.
    quiet: no progress on standard error. options: columns with one value.

    The rows of a table are reordered, so that alike ones share their work: column `index` is the place in the table. A row that cannot be
    forecast has an `error`. Returns a SweepSummary: rows, failures, seconds, rows_per_s, and table(). Raises IoError where a part cannot
    be written (disk full) or workers ended for good; the same call then does what is missing.
    """
    if on is None and out is None:
        return _core.sweep(spec, **options)
    if out is None:
        raise InputError("`out` is missing: the folder of the sweep's Parquet files")
    from ._sweep import sweep as run
    return run(spec, on=on or "local", out=out, **options)


def explore(spec: Any, *, objectives: Any = None, designs: int = 400, batch: int = 50, sampler: str | None = None, seed: int = 0,
            on: str = "local", state: Any = None, **settings: Any) -> Exploration:
    """Searches designs of a GPU or accelerator that does not exist, under limits of the user. Needs Optuna and pyarrow.

    spec: a file, or its content as a dict: `device`, a known one; `parameters`, ranges of its numbers or lists; `numbers` and `definitions`,
        expressions over them; `limits`, "area_mm2 <= 800"; `forecasts`, each with options and `weight`; `objectives`.
    objectives: expressions over parameters, definitions, and the totals `time` (s), `energy` (J), `cost` and NAME_latency_s, ... of the
        forecast NAME; "max:..." is maximized. In place of those of the spec.
    designs: how many are asked, `batch` at a time. sampler: "nsga2" (default with several objectives), "tpe" (with one), "random".
    seed: the same seed gives the same designs, on any engine.
    on, workers, engine, filesystem, weights, calibration: as of sweep. state: a folder that keeps the batches: a run that was killed continues.
    show: a function of the designs that were asked and all of them.

    Returns an Exploration: `designs` and `front`, tables of pyarrow. Raises InputError that names the place in the spec.
    """
    from ._explore import explore as run
    return run(spec, objectives=objectives, designs=designs, batch=batch, sampler=sampler, seed=seed, on=on, state=state, **settings)


def trace(trace, gpu=None, **options):
    """What a profile of PyTorch shows, beside what it should take, and on another GPU.

    trace: the path of a trace (.json, .json.gz), or a torch.profiler.profile that has ended; with record_shapes=True its operators
        have forecasts. PyTorch exports a profile once: to keep the trace, export it and give the path.
    gpu: the GPU to carry it to. options: as of `tilecast trace`.

    The result is a TraceReport; times are in seconds. Raises InputError for what is no trace.
    """
    if not hasattr(trace, "export_chrome_trace"):
        return _core.trace(trace, gpu, **options)
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.json.gz")
        trace.export_chrome_trace(path)
        return _core.trace(path, gpu, **options)


def load_model(model, *, inputs=None, mode=None):
    """Reads a model once, for several forecasts. `mode` is that of the forecasts of a torch.nn.Module."""
    from ._models import load_model as load
    return load(model, inputs, mode)
