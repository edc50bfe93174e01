"""Forecasts on a Ray cluster: `tilecast.sweep(..., on="ray")`, and data sets of Ray Data.

A sweep runs as Ray tasks, one for each chunk, and not as a pipeline of Ray Data: there the size of blocks depends on the cluster, and a run
that is started again does all of them. A task that is done twice writes the same bytes under the same name, so Ray may repeat the tasks of
workers and nodes that died.
"""
from __future__ import annotations

try:
    import ray
except ImportError as error:
    raise ImportError("tilecast.ray needs Ray: pip install 'tilecast[ray]'") from error

from ._sweep.job import forecast_table, run_chunk

# A chunk whose worker dies so many times is an error: its rows may need more memory than a worker has.
_MAX_RETRIES = 8
# Tasks that wait in the cluster, for each that runs: the scheduler's queue stays short with millions of chunks.
_QUEUED_PER_CPU = 4


def run(job, chunks, progress, workers=None, *, num_cpus=1, task_options=None, **init):
    """Yields the reports of the chunks as they come. Called by tilecast.sweep, whose `engine` gives the keywords.

    workers: tasks at once; None: as many as the cluster has room for. num_cpus: of a task; it uses as many threads.
    task_options: further ones of Ray (resources, runtime_env, ...). init: of ray.init, where Ray is not initialized.
    """
    if not ray.is_initialized():
        ray.init(**{"log_to_driver": False, **init})
    options = {"max_retries": _MAX_RETRIES, "num_cpus": num_cpus, **(task_options or {})}
    task = ray.remote(run_chunk).options(**options)
    shared = ray.put(job)
    threads = max(1, int(num_cpus))
    left, pending = list(reversed(chunks)), {}
    try:
        while left or pending:
            most = workers or max(1, _QUEUED_PER_CPU * int(ray.cluster_resources().get("CPU", 1)))
            while left and len(pending) < most:
                chunk = left.pop()
                pending[task.remote(shared, chunk, threads)] = chunk
            done, _ = ray.wait(list(pending), num_returns=1)
            for reference in done:
                chunk = pending.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield _lost(chunk, error)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)


def _lost(chunk, error):
    from ._sweep.job import Report
    text = str(error).strip().splitlines()
    return Report(chunk, error=f"chunk {chunk}: its Ray task ended: {text[-1] if text else type(error).__name__}", error_kind="IoError")


def forecast(dataset, *, batch_size=65_536, weights=None, calibration=None, **options):
    """The rows of a ray.data.Dataset with their forecasts.

    dataset: a column for each option, as of tilecast.forecast_many; options: columns with one value. batch_size: rows that are forecast
    together; alike ones share their work. The result is a Dataset with the columns of the results behind those of the rows; an option with
    the name of a result gets `given_` before it. Times are in seconds, sizes in bytes; `error` says why a row has no forecast. Columns that
    are no options raise InputError where the data set is read.
    """
    def forecast_batch(table):
        return forecast_table(table, weights=str(weights or ""), calibration=str(calibration or ""), **options)
    return dataset.map_batches(forecast_batch, batch_format="pyarrow", batch_size=batch_size)


__all__ = ["forecast", "run"]
