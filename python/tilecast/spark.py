"""Forecasts on Spark: `tilecast.sweep(..., on="spark")`, and DataFrames.

A sweep is `mapInArrow` over the numbers of its chunks, one to a partition. Spark repeats the tasks of executors and Python workers that died;
a chunk that is done twice writes the same bytes under the same name.
"""
from __future__ import annotations

import dataclasses
import os
import sys
import threading

try:
    from pyspark.errors import PythonException
    from pyspark.sql import SparkSession
except ImportError as error:
    raise ImportError("tilecast.spark needs PySpark, and Spark needs Java 17: pip install 'tilecast[spark]'") from error

import pyarrow

from ._sweep.job import Report, forecast_table, run_chunk

# With the master `local[N]` Spark repeats no task; what is missing after a failed job is asked for once more.
_JOBS = 3
_BETWEEN_POLLS_S = 0.2
_REPORTS = "chunk long, rows long, failures long, rejected long, first_error string, error string, error_kind string"
# Rows of a forecast of a DataFrame: as of a chunk of a sweep.
_ROWS_TOGETHER = 65_536


def _session(settings: dict):
    session = SparkSession.getActiveSession()
    if session is not None:
        return session
    if str(settings.get("spark.master", "local")).startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # its workers are of the Python that has tilecast
    builder = SparkSession.builder.appName("tilecast")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _chunk_runner(job, chunks, threads):
    def run_chunks(batches):
        for batch in batches:
            for place in batch.column(0).to_pylist():
                report = dataclasses.asdict(run_chunk(job, chunks[place], threads))
                yield pyarrow.RecordBatch.from_pylist([report])
    return run_chunks


class _Collected:
    """A Spark job on a thread of its own: its rows or its error."""

    def __init__(self, frame, group):
        self.frame, self.group, self.rows, self.error = frame, group, [], None
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def _collect(self):
        try:
            self.frame.sparkSession.sparkContext.setJobGroup(self.group, "tilecast.sweep")  # of this thread
            self.rows = self.frame.collect()
        except Exception as error:  # of Spark, Java or the connection to it
            self.error = error


def _finished_tasks(context, group: str) -> int:
    """Of the running stages."""
    tracker = context.statusTracker()
    infos = [tracker.getStageInfo(stage) for number in tracker.getJobIdsForGroup(group) or []
             for stage in getattr(tracker.getJobInfo(number), "stageIds", [])]
    return sum(info.numCompletedTasks for info in infos if info is not None)


def _one_job(session, job, chunks, progress, threads):
    """The reports of the chunks that were done."""
    context = session.sparkContext
    group = f"tilecast-{job.sweep_id[:16]}-{chunks[0]}-{len(chunks)}"
    # A range is made by Spark itself: rows from Python would need a second Python process for each task.
    places = session.range(0, len(chunks), 1, len(chunks))
    collected = _Collected(places.mapInArrow(_chunk_runner(job, chunks, threads), _REPORTS), group)
    before = progress.done
    try:
        while collected.thread.is_alive():
            collected.thread.join(_BETWEEN_POLLS_S)
            done = min(_finished_tasks(context, group), len(chunks))
            progress.at(before + sum(job.points_in(chunk) for chunk in chunks[:done]))
    except BaseException:  # Ctrl-C: Spark would go on with a job that nobody waits for
        context.cancelJobGroup(group)
        raise
    return [Report(**row.asDict()) for row in collected.rows], collected.error


def run(job, chunks, progress, workers=None, *, threads=1, **settings):
    """Yields the reports of the chunks when all are done. Called by tilecast.sweep, whose `engine` gives the keywords.

    It uses the active session; where there is none, settings (`{"spark.master": "spark://host:7077"}`) make one. workers: InputError, as
    Spark's configuration says how many tasks run. threads: of a task; with more than 1 set `spark.task.cpus` to the same.
    """
    from ._errors import InputError
    from ._sweep.job import part_name, read_report
    if workers is not None:
        raise InputError("`workers`: how many tasks run is Spark's configuration (spark.executor.instances, spark.cores.max); leave it out")
    session, error = _session(settings), None
    for _ in range(_JOBS):
        reports, error = _one_job(session, job, chunks, progress, threads)
        yield from reports
        # A job that fails gives no reports of the chunks that it did.
        names = set(job.store.names()) if error is not None else set()
        done = {report.chunk for report in reports}
        for chunk in chunks:
            if chunk not in done and part_name(chunk) in names:
                yield read_report(job, chunk)
                done.add(chunk)
        chunks = [chunk for chunk in chunks if chunk not in done]
        if not chunks or error is None:
            return
        if isinstance(error, PythonException):
            break  # it would end the same way
    text = str(error).strip() or type(error).__name__
    yield Report(chunks[0], error=f"chunk {chunks[0]}: Spark ended its job: {text}", error_kind="IoError")


def _together(batches, rows):
    """Batches of so many rows, as far as there are."""
    waiting, count = [], 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pyarrow.Table.from_batches(waiting)
            waiting, count = [], 0
    if waiting:
        yield pyarrow.Table.from_batches(waiting)


def forecast(frame, *, weights=None, calibration=None, **options):
    """The rows of a DataFrame of Spark with their forecasts.

    frame: a column for each option, as of tilecast.forecast_many; options: columns with one value. The result has the columns of the
    results behind those of the rows; an option with the name of a result gets `given_` before it. Times are in seconds, sizes in bytes;
    `error` says why a row has no forecast. Raises InputError for a column that is no option.
    """
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
    settings = {"weights": str(weights or ""), "calibration": str(calibration or ""), **options}
    empty = forecast_table(to_arrow_schema(frame.schema).empty_table(), **settings)

    def forecast_batches(batches):
        for table in _together(batches, _ROWS_TOGETHER):
            yield from forecast_table(table, **settings).combine_chunks().to_batches()
    return frame.mapInArrow(forecast_batches, from_arrow_schema(empty.schema))


__all__ = ["forecast", "run"]
