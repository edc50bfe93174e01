#!/usr/bin/env python3
"""Speed of the Python package: import, a warm forecast, and forecast_many. Wall and CPU time, for machines that are not idle.

    PYTHONPATH=build/release/python bench/python_bench.py [FILE...]     also of imported graphs: ONNX, graph notation
"""
import itertools
import random
import subprocess
import sys
import time


def import_seconds() -> tuple:
    """The least of ten processes: wall and CPU time."""
    program = ("import time; w, c = time.perf_counter(), time.process_time(); import tilecast\n"
               "print(time.perf_counter() - w, time.process_time() - c)")
    runs = [subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
            for _ in range(10)]
    return min(float(run[0]) for run in runs), min(float(run[1]) for run in runs)


def per_call(call, seconds: float = 1.0) -> tuple:
    """The median wall time and the mean CPU time of a call."""
    call()
    times, cpu, end = [], time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2], (time.process_time() - cpu) / len(times)


def rows_of(count: int) -> dict:
    """Inference and training of models on GPUs; each of the first half is there a second time."""
    models = ["gpt2_large", "bert_large", "opt_13", "gpt3_xl", "llama-3.2-1b", "vit-base", "t5-large"]
    gpus = ["H100", "A100", "V100", "T4", "L4", "H200", "MI300X", "L40S"]
    table = list(itertools.product(models, gpus, ["inference", "training"], range(1, 400)))
    random.Random(1).shuffle(table)
    table = table[:count // 2] * 2
    random.Random(2).shuffle(table)
    return {name: list(values) for name, values in zip(("model", "gpu", "mode", "batch"), zip(*table))}


def of_files(tilecast, paths: list) -> None:
    """Warm forecasts of imported graphs, and a table of all files on all GPUs, each row twice."""
    for path in paths:
        start = time.perf_counter()
        model = tilecast.load_model(path)
        loaded = time.perf_counter() - start
        start = time.perf_counter()
        tilecast.forecast(model, gpu="H100")
        first = time.perf_counter() - start
        wall, cpu = per_call(lambda model=model: tilecast.forecast(model, gpu="H100"))
        print(f"{path.rsplit('/', 1)[-1]:38} {1e3 * wall:8.3f} ms  CPU {1e3 * cpu:.3f} ms; read in {1e3 * loaded:.2f} ms, "
              f"first forecast {1e3 * first:.2f} ms")
    gpus = [gpu.id for gpu in tilecast.gpus()]
    table = {"model": [path for path in paths for _ in gpus] * 2, "gpu": gpus * len(paths) * 2}
    start, cpu = time.perf_counter(), time.process_time()
    result = tilecast.forecast_many(table)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"forecast_many files     {len(table['gpu']) / wall:8,.0f} rows/s, {len(table['gpu']) / cpu:,.0f} rows per CPU second; {result!r}")


def main() -> None:
    wall, cpu = import_seconds()
    print(f"import tilecast        {1e3 * wall:8.2f} ms  CPU {1e3 * cpu:.2f} ms")
    import tilecast
    for model, options in (("gpt2_large", {"batch": 8}), ("gpt3_27", {"mode": "training", "seq": 2048}), ("vit-base", {"batch": 8})):
        wall, cpu = per_call(lambda model=model, options=options: tilecast.forecast(model, gpu="H100", **options))
        print(f"{model:22} {1e3 * wall:8.3f} ms  CPU {1e3 * cpu:.3f} ms")
    for mode in ("inference", "training", None):
        table = rows_of(20_000)
        if mode:
            table["mode"] = mode
            keep = [i for i, batch in enumerate(table["batch"]) if batch <= 8]
            table = {name: values if name == "mode" else [values[i] for i in keep] for name, values in table.items()}
        count = len(table["model"])
        start, cpu = time.perf_counter(), time.process_time()
        result = tilecast.forecast_many(table)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        failed = sum(error is not None for error in result["error"])
        print(f"forecast_many {mode or 'mixed':9} {count / wall:8,.0f} rows/s, {count / cpu:,.0f} rows per CPU second; {result!r}, "
              f"{failed} failed, {result['fits'].count(True)} fit")
    if sys.argv[1:]:
        of_files(tilecast, sys.argv[1:])


if __name__ == "__main__":
    main()
