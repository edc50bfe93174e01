"""Forecasts on Dask: `tilecast.sweep(..., on="dask")`, and its DataFrames.

A sweep is a future for each chunk. Dask repeats those of workers that died; a chunk that is done twice writes the same bytes under the same name.
"""
from __future__ import annotations

try:
    import distributed
except ImportError as error:
    raise ImportError("tilecast.dask needs Dask: pip install 'tilecast[dask]'") from error

from ._sweep.job import Report, forecast_table, run_chunk


def _client(workers, settings):
    """The one in use, or one of a cluster of processes on this machine; and whether it is new."""
    try:
        return distributed.get_client(), False
    except ValueError:
        defaults = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        return distributed.Client(distributed.LocalCluster(**{**defaults, **settings})), True


def run(job, chunks, progress, workers=None, *, threads=1, **settings):
    """Yields the reports of the chunks as they come. Called by tilecast.sweep, whose `engine` gives the keywords.

    It uses the client in use; where there is none, a LocalCluster with `workers` processes and these settings. threads: of a task.
    """
    client, is_new = _client(workers, settings)
    futures = {}
    try:
        futures = {future: chunk for future, chunk in
                   zip(client.map(lambda chunk: run_chunk(job, chunk, threads), chunks, pure=False), chunks)}
        for future in distributed.as_completed(futures):
            if future.status == "finished":
                yield future.result()
            else:
                error = future.exception()
                yield Report(futures[future], error=f"chunk {futures[future]}: its Dask task ended: {error!r}", error_kind="IoError")
    finally:
        client.cancel(list(futures))
        if is_new:
            cluster = client.cluster
            client.close()
            cluster.close()


def forecast(frame, *, weights=None, calibration=None, **options):
    """The rows of a dask.dataframe with their forecasts, partition by partition.

    frame: a column for each option, as of tilecast.forecast_many; options: columns with one value. The result has the columns of the
    results behind those of the rows; an option with the name of a result gets `given_` before it. Times are in seconds, sizes in bytes;
    `error` says why a row has no forecast. Raises InputError for a column that is no option.
    """
    import pyarrow
    settings = {"weights": str(weights or ""), "calibration": str(calibration or ""), **options}

    def forecast_partition(part):
        return forecast_table(pyarrow.Table.from_pandas(part, preserve_index=False), **settings).to_pandas()
    return frame.map_partitions(forecast_partition, meta=forecast_partition(frame._meta))


__all__ = ["forecast", "run"]
