"""What a sweep asks, and the work of one chunk of it, which any process can do."""
from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet

from .. import _core
from .._errors import Error, InputError, IoError, NotFoundError
from .columns import INDEX
from .store import Store

MANIFEST, INPUT, FINISHED = "_manifest.json", "_input.arrow", "_SUCCESS"
_FOOTER, SWEEP = b"tilecast", b"sweep"
_BLOCK_BYTES = 1 << 24
# Protocol Buffers allow 2 GiB, so no ONNX file is larger. Larger files hold weights: a forecast reads their shapes, at the start of the file.
_WHOLE_BYTES = 1 << 31
# Of servers under load a forecast takes up to a second.
_SLOW_COLUMNS = {"rate", "concurrency", "trace"}


@dataclasses.dataclass(frozen=True)
class Report:
    """Of one chunk. rejected: points that the conditions of a spec refuse; error: why it could not be done."""
    chunk: int
    rows: int = 0
    failures: int = 0
    rejected: int = 0
    first_error: str = ""
    error: str = ""
    error_kind: str = ""


@dataclasses.dataclass(frozen=True)
class Job:
    """One sweep. Small, so that it can be sent to other processes.

    points: rows, and those that the conditions of a spec refuse. spec: the text of a spec, or None where the rows are in the file `INPUT` of
    the folder, a record batch for each chunk.
    """
    store: Store
    sweep_id: str
    points: int
    chunk_rows: int
    spec: str | None
    weights: str
    calibration: str
    weights_hash: str = ""

    @property
    def chunks(self) -> int:
        """One at least: its part has the columns also where there are no rows."""
        return max(1, -(-self.points // self.chunk_rows))

    def points_in(self, chunk: int) -> int:
        """Rows, and those that the conditions of a spec refuse."""
        return min(self.chunk_rows, self.points - chunk * self.chunk_rows)


def part_name(chunk: int) -> str:
    return f"part-{chunk:05}.parquet"


def default_chunk_rows(rows: int, columns) -> int:
    """Rows of a chunk: many, as alike rows share their graphs, but enough chunks for the cores of a cluster."""
    if _SLOW_COLUMNS & set(columns):
        return min(512, max(16, -(-rows // 64)))
    return min(65_536, max(4_096, -(-rows // 16)))


def hash_of(value) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _add_file(digest, path: Path, size: int) -> None:
    with open(path, "rb") as file:
        while size > 0:
            block = file.read(min(size, _BLOCK_BYTES))
            if not block:
                return
            digest.update(block)
            size -= len(block)


def hash_of_file(path: str) -> str:
    """Of a file, or of all files of a folder but hidden ones; of larger ones in it, which hold weights, the size and the beginning.

    Raises NotFoundError where there is none, IoError where one cannot be read.
    """
    digest = hashlib.sha256()
    at = Path(path)
    try:
        if not at.is_dir():
            digest.update(at.name.encode())
            _add_file(digest, at, at.stat().st_size)
            return digest.hexdigest()
        for file in sorted(at.rglob("*")):
            name = file.relative_to(at)
            if any(part.startswith(".") for part in name.parts) or not file.is_file():
                continue
            size = file.stat().st_size
            digest.update(f"{name.as_posix()} {size} ".encode())
            _add_file(digest, file, size if size <= _WHOLE_BYTES else _BLOCK_BYTES)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: no such file or folder") from error
    except OSError as error:
        raise IoError(f"{path}: cannot be read: {error}") from error
    return digest.hexdigest()


@functools.lru_cache(maxsize=4)
def forecaster_of(weights: str, calibration: str, content: str = ""):
    """content: a hash of the files, as a process may live longer than they stay the same."""
    return _core.Forecaster(weights, calibration) if weights or calibration else _core.default_forecaster()


@functools.lru_cache(maxsize=4)
def spec_of(text: str):
    return _core.SweepSpec(text)


def is_of_sweep(reader, job: Job) -> bool:
    return (reader.schema.metadata or {}).get(SWEEP) == job.sweep_id.encode()


def rows_of(job: Job, chunk: int) -> pyarrow.Table:
    """The rows of a chunk, with their index."""
    if job.spec is None:
        with job.store.open(INPUT) as file, pyarrow.ipc.open_file(file) as reader:
            if not is_of_sweep(reader, job):
                raise InputError(f"{job.store.shown}: '{INPUT}' is of another sweep, which began at the same time; name another folder")
            return pyarrow.Table.from_batches([reader.get_batch(chunk)]).replace_schema_metadata(None)
    rows = spec_of(job.spec).rows(chunk * job.chunk_rows, job.points_in(chunk))
    return pyarrow.table(rows).add_column(0, INDEX, pyarrow.array(rows.indices, pyarrow.int64()))


@functools.lru_cache(maxsize=1)
def _option_metadata() -> dict:
    metadata: dict = {}
    for option in _core.options("forecast"):
        entry = {"doc": option.help}
        if option.unit:
            entry["unit"] = option.unit
        metadata.setdefault(option.name.replace("-", "_"), entry)
    return metadata


def _described(field: pyarrow.Field, name: str) -> pyarrow.Field:
    own = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    return pyarrow.field(name, field.type, True, {**_option_metadata().get(field.name, {}), **own})


def combined(rows: pyarrow.Table, results: pyarrow.Table) -> pyarrow.Table:
    """Rows beside their results. An option with the name of a result gets `given_` before it: `given_dtype`."""
    fields, columns = [], []
    for field in rows.schema:
        name = f"given_{field.name}" if field.name in results.column_names else field.name
        fields.append(_described(field, name))
        columns.append(rows[field.name])
    fields += list(results.schema)
    columns += results.columns
    return pyarrow.Table.from_arrays(columns, schema=pyarrow.schema(fields))


def forecast_table(table: pyarrow.Table, *, weights: str = "", calibration: str = "", threads: int = 1, **options) -> pyarrow.Table:
    """The columns of `table` and of its forecasts."""
    results = pyarrow.table(forecaster_of(weights, calibration).forecast_many(table, threads=threads, **options))
    return combined(table, results)


def _write(job: Job, chunk: int, table: pyarrow.Table, report: Report) -> None:
    footer = {"sweep": job.sweep_id, "chunk": chunk, "failures": report.failures, "rejected": report.rejected, "first_error": report.first_error}
    table = table.replace_schema_metadata({_FOOTER: json.dumps(footer, sort_keys=True)})
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd", row_group_size=job.chunk_rows)
    job.store.write(part_name(chunk), sink.getvalue())


def run_chunk(job: Job, chunk: int, threads: int = 1) -> Report:
    """Forecasts a chunk and writes its part. What goes wrong is in the report: other tries would end the same way."""
    try:
        rows = rows_of(job, chunk)
        results = pyarrow.table(forecaster_of(job.weights, job.calibration, job.weights_hash).forecast_many(rows.drop_columns([INDEX]), threads=threads))
        errors = results["error"].drop_null()
        report = Report(chunk, rows.num_rows, len(errors), job.points_in(chunk) - rows.num_rows, errors[0].as_py() if len(errors) else "")
        _write(job, chunk, combined(rows, results), report)
        return report
    except Error as error:
        return Report(chunk, error=str(error), error_kind=type(error).__name__)
    except (pyarrow.ArrowException, MemoryError, OSError) as error:
        return Report(chunk, error=f"chunk {chunk}: {error or type(error).__name__}", error_kind="IoError")


def read_report(job: Job, chunk: int) -> Report:
    """Of a part that was written before. Raises InputError if it is of another sweep."""
    name = part_name(chunk)
    with job.store.open(name) as file:
        try:
            metadata = pyarrow.parquet.read_metadata(file)
            footer = json.loads(metadata.metadata[_FOOTER])
        except (pyarrow.ArrowException, KeyError, TypeError, ValueError) as error:
            raise IoError(f"{job.store.shown}: '{name}' is damaged ({error}); remove it and run again") from error
    if footer["sweep"] != job.sweep_id or footer["chunk"] != chunk or metadata.num_rows + footer["rejected"] != job.points_in(chunk):
        raise InputError(f"{job.store.shown}: '{name}' is of another sweep; remove it and run again")
    return Report(chunk, metadata.num_rows, footer["failures"], footer["rejected"], footer["first_error"])
