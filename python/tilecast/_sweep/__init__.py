"""`tilecast.sweep` with `out`: the rows in chunks, each written by whoever forecasts it, on any engine.

The engine only decides who does which chunk when. What a chunk is follows from the rows, its part file is there whole or not at
all, and a chunk that is done twice gives the same bytes. So there is one row for each point whatever dies, and the same rows by every engine.
"""
from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import time

from .. import _core, _errors
from .._errors import InputError, UnsupportedError

try:
    import pyarrow
    import pyarrow.ipc
except ImportError as error:
    raise ImportError("tilecast.sweep with `out` writes Parquet and needs pyarrow: pip install 'tilecast[sweep]'") from error

from . import columns as _columns
from .job import (
    FINISHED, INPUT, MANIFEST, SWEEP, Job, Report, default_chunk_rows, forecaster_of, hash_of, hash_of_file, is_of_sweep, part_name, read_report,
)
from .progress import Progress
from .store import Store

ENGINES = ("local", "ray", "spark", "dask")
_MANIFEST_VERSION = 1
_SPEC_KEYS = {"parameters", "zip", "draw", "where"}
_FILE_COLUMNS = ("model", "gpu", "cluster", "trace")


@dataclasses.dataclass(frozen=True)
class SweepSummary:
    """What a sweep wrote.

    out: the folder. rows, failures: all of them, and those with an `error`. rejected: points of a spec that its conditions refuse.
    computed_rows: those of this run. seconds: of this run; rows_per_s: computed_rows in a second of it. first_error: of the first part
    that has failures; "" without any.
    """
    out: str
    rows: int
    failures: int
    rejected: int
    computed_rows: int
    seconds: float
    rows_per_s: float
    first_error: str
    filesystem: object = dataclasses.field(repr=False, compare=False, default=None)

    def table(self, columns=None) -> pyarrow.Table:
        """The rows in the order of the question, as a table of pyarrow; `columns` names those to read."""
        import pyarrow.dataset
        wanted = None if columns is None else list(dict.fromkeys([_columns.INDEX, *columns]))
        store = Store(self.out, self.filesystem)
        table = pyarrow.dataset.dataset(store.path, filesystem=store.filesystem, format="parquet").to_table(columns=wanted)
        table = table.sort_by(_columns.INDEX)
        return table if columns is None else table.select(list(columns))


def _engine(on: str):
    if on not in ENGINES:
        raise InputError(f"`on`: expected one of {', '.join(ENGINES)}, found '{on}'")
    if on == "local":
        from . import local
        return local
    return importlib.import_module(f"tilecast.{on}")


def _is_spec(source) -> bool:
    """A dict of lists is a table; with a key that only specs have, or a range, it is a spec."""
    if isinstance(source, (str, os.PathLike, _core.SweepSpec)):
        return True
    return isinstance(source, dict) and (bool(_SPEC_KEYS & set(source)) or any(isinstance(value, dict) and "from" in value for value in source.values()))


def _compared(name: str) -> str:
    return name.lower().replace("_", "-")


@functools.lru_cache(maxsize=1)
def _bundled_names() -> frozenset:
    names = [entry.name for entry in _core.models()] + [entry.id for entry in _core.clusters()]
    for gpu in _core.gpus():
        names += [gpu.id, *gpu.aliases]
    return frozenset(map(_compared, names))


def _named_files(words) -> dict:
    """Hashes of the files and folders that are named: with other contents the question is another one."""
    found = {}
    for word in words:
        if not isinstance(word, str):
            continue
        path, colon, numbers = word.rpartition(":")  # "my.json:sm_count=160"
        if not colon or "=" not in numbers:
            path = word
        # A file that has the name of a bundled model is not read.
        if path and os.path.exists(path) and _compared(path) not in _bundled_names():
            found[path] = hash_of_file(path)
    return found


def _words_in(value, named: bool = False) -> list:
    """The texts of a spec that may name files."""
    if isinstance(value, dict):
        return [word for key, part in value.items() for word in _words_in(part, named or key in _FILE_COLUMNS)]
    if isinstance(value, list):
        return [word for part in value for word in _words_in(part, named)]
    return [value] if named and isinstance(value, str) else []


def _weights_of(weights: str, calibration: str) -> dict:
    """Hashes of the files of weights. Weights of the program count as its data."""
    return {"weights": hash_of_file(weights) if weights else None, "calibration": hash_of_file(calibration) if calibration else None}


def _of_table(source, options: dict) -> tuple:
    """What identifies the question, and its rows as they will be cut."""
    table = _columns.read_table(source, options)
    _core.default_forecaster().forecast_many(table.slice(0, 0))  # raises for a column that is no option
    words = [word for name in _FILE_COLUMNS if name in table.column_names
             for word in table[name].unique().to_pylist()]
    question = {"columns": {name: str(table[name].type) for name in table.column_names}, "rows": table.num_rows,
                "content": _columns.content_hash(table), "files": _named_files(words)}
    return question, _columns.alike_together(table), None


def _of_spec(source, options: dict) -> tuple:
    if options:
        raise InputError(f"`{next(iter(options))}`: options of a sweep are in its spec")
    spec = source if isinstance(source, _core.SweepSpec) else _core.SweepSpec(source)
    content = json.loads(spec.text)
    question = {"columns": {column.name: column.type for column in spec.columns}, "rows": spec.size, "content": hash_of(content),
                "files": _named_files(_words_in(content))}
    return question, None, spec.text


def _difference(old: dict, new: dict) -> str:
    """The first thing in which two manifests differ."""
    for name in new:
        if old.get(name) != new[name]:
            if isinstance(new[name], dict) and isinstance(old.get(name), dict):
                return f"{name}: {_difference(old[name], new[name])}"
            return f"'{name}' was {json.dumps(old.get(name))}, is {json.dumps(new[name])}"
    return "it has more entries"


def _check_manifest(store: Store, manifest: dict) -> None:
    """Raises InputError if the folder holds something else."""
    try:
        old = json.loads(store.read(MANIFEST))
    except ValueError as error:
        raise InputError(f"{store.shown}: '{MANIFEST}' is damaged ({error}); remove the folder") from error
    if old != manifest:
        raise InputError(f"{store.shown}: holds the sweep of another question ({_difference(old, manifest)}); "
                         "name another folder, or remove this one")


def _claim(store: Store, manifest: dict) -> None:
    """Writes the manifest. Raises InputError if the folder holds something else, also of a sweep that began at the same time."""
    names = store.names()
    if MANIFEST not in names:
        if [name for name in names if not name.startswith(".") and name != INPUT]:
            raise InputError(f"{store.shown}: holds other files and no sweep; name another folder")
        store.write_new(MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
    _check_manifest(store, manifest)


def _input_bytes(table: pyarrow.Table, job: Job):
    """A record batch for each chunk."""
    sink = pyarrow.BufferOutputStream()
    schema = table.schema.with_metadata({SWEEP: job.sweep_id})
    with pyarrow.ipc.new_file(sink, schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for first in range(0, max(table.num_rows, 1), job.chunk_rows):
            arrays = [column.combine_chunks() for column in table.slice(first, job.chunk_rows).columns]
            writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
    return sink.getvalue()


def _has_rows(store: Store, job: Job) -> bool:
    """Whether the rows of this sweep are there. Those of another one are what a run left that died."""
    try:
        with store.open(INPUT) as file, pyarrow.ipc.open_file(file) as reader:
            return is_of_sweep(reader, job)
    except (pyarrow.ArrowException, _errors.IoError):
        return False


def _prepare(source, store: Store, chunk_rows, options: dict, weights: str, calibration: str) -> tuple:
    """Checks the question and writes the manifest, and for a table its rows."""
    question, table, spec = (_of_spec if _is_spec(source) else _of_table)(source, options)
    rows = question["rows"]
    chunk_rows = int(chunk_rows or default_chunk_rows(rows, question["columns"]))
    if chunk_rows < 1:
        raise InputError(f"`chunk_rows`: expected 1 or more, found {chunk_rows}")
    manifest = {"schema_version": _MANIFEST_VERSION, "version": _core.__version__, "commit": _core.__commit__,
                "data": _core._hash_of_embedded_data(), "rows": rows, "chunk_rows": chunk_rows, "question": question, "weights": _weights_of(weights, calibration)}
    weights_hash = hash_of(manifest["weights"])
    forecaster_of(weights, calibration, weights_hash)  # raises for what is none, before the folder is made
    store.create()
    _claim(store, manifest)
    store.remove_unfinished()
    job = Job(store, hash_of(manifest), rows, chunk_rows, spec, weights, calibration, weights_hash)
    names = set(store.names())
    if any(part_name(chunk) not in names for chunk in range(job.chunks)):
        store.remove(FINISHED)
        if table is not None and not (INPUT in names and _has_rows(store, job)):
            store.write(INPUT, _input_bytes(table, job))
    return job, manifest


def _raise_for(report: Report, left: int, job: Job) -> None:
    kind = getattr(_errors, report.error_kind, _errors.Error)
    raise kind(f"{report.error}; {job.chunks - left} of {job.chunks} parts are written: run the same again for the others")


def _run(job: Job, engine, workers, quiet: bool, settings: dict) -> tuple:
    """Does the missing chunks. Returns all reports, and the rows of this run."""
    names = set(job.store.names())
    reports = {chunk: read_report(job, chunk) for chunk in range(job.chunks) if part_name(chunk) in names}
    missing = [chunk for chunk in range(job.chunks) if chunk not in reports]
    done = sum(job.points_in(chunk) for chunk in reports)
    progress, computed, failed = Progress(job.points, done, quiet), 0, None
    if missing:
        running = engine.run(job, missing, progress, workers, **settings)
        try:
            for report in running:
                if report.error and part_name(report.chunk) in job.store.names():  # another driver of the same question wrote it
                    report = read_report(job, report.chunk)
                    reports[report.chunk] = report
                    done += job.points_in(report.chunk)
                    continue
                if report.error:
                    failed = failed or report
                    if engine.__name__ != "tilecast.spark":
                        break
                    continue
                reports[report.chunk] = report
                computed += report.rows
                done += job.points_in(report.chunk)
                progress.at(done)
        finally:
            running.close()
            progress.end()
    left = job.chunks - len(reports)
    if failed is not None:
        _raise_for(failed, left, job)
    if left:
        raise _errors.IoError(f"{job.store.shown}: {left} of {job.chunks} parts are missing, as workers ended; run the same again for them")
    return reports, computed


def sweep(source, *, on="local", out, filesystem=None, workers=None, chunk_rows=None, quiet=False, weights=None, calibration=None,
          engine=None, **options) -> SweepSummary:
    """See tilecast.sweep."""
    runs = _engine(on)
    if hasattr(source, "forecast"):
        raise TypeError("a sweep needs a table or a spec, found a model")
    start = time.monotonic()
    store = Store(out, filesystem)
    job, manifest = _prepare(source, store, chunk_rows, options, os.fspath(weights or ""), os.fspath(calibration or ""))
    reports, computed = _run(job, runs, workers, quiet, dict(engine or {}))
    rows, failures, rejected = (sum(getattr(report, name) for report in reports.values()) for name in ("rows", "failures", "rejected"))
    _check_manifest(store, manifest)  # where the last of two writers wins, it may be another one's
    if FINISHED not in store.names():
        store.write(FINISHED, json.dumps({"rows": rows, "failures": failures, "rejected": rejected}).encode())
    store.remove(INPUT)
    store.remove_unfinished()
    seconds = time.monotonic() - start
    first = min((report for report in reports.values() if report.failures), key=lambda report: report.chunk, default=Report(0))
    return SweepSummary(store.shown, rows, failures, rejected, computed, seconds, computed / seconds if seconds > 0 else 0.0,
                        first.first_error, filesystem)


__all__ = ["ENGINES", "SweepSummary", "sweep", "UnsupportedError"]
