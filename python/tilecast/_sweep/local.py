"""Chunks on threads of this process. The GIL is free while a chunk is forecast and written."""
from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from .job import run_chunk


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(job, chunks, progress, workers=None):
    """Yields the reports of the chunks as they come. workers: threads; None is a thread for each core."""
    cores = workers or usable_cores()
    at_once = max(1, min(cores, len(chunks)))
    with ThreadPoolExecutor(at_once) as pool:
        futures = {pool.submit(run_chunk, job, chunk, max(1, cores // at_once)) for chunk in chunks}
        try:
            while futures:
                done, futures = wait(futures, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            for future in futures:
                future.cancel()
