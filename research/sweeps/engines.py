#!/usr/bin/env python3
"""One sweep by each engine: the same rows, bit for bit, whatever dies; and what each engine costs.

    PYTHONPATH=build/release/python python3 research/sweeps/engines.py [--rows 1000000] [--engines local,ray,spark,dask] [--folder FOLDER]

Half of the rows are distinct: passes and training steps of ten models and static text generation of four, on ten GPUs. For each engine it
measures a run, ends a worker with SIGKILL in the middle of one, ends the driver and starts it again, and with root fills a small disk.
CPU seconds are those of all processes of a run, as far as a look at /proc every 0.2 s sees them.
"""
import argparse
import hashlib
import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODELS = ["gpt2_large", "bert_large", "opt_13", "gpt3_xl", "llama-3.2-1b", "vit-base", "t5-large", "resnet-50", "gpt2", "bert-base"]
GPUS = ["H100", "A100", "V100", "T4", "L4", "H200", "MI300X", "L40S", "A10", "B200"]
GENERATING = ["llama-3-8b", "gpt2_large", "llama-3.2-1b", "gpt3_xl"]
COLUMNS = ("model", "gpu", "mode", "batch", "prompt", "output")
SETTINGS = {"local": {}, "ray": {"include_dashboard": False}, "spark": {"spark.master": "local-cluster[2,1,1024]"}, "dask": {}}
# Whose death costs a worker: what its command line holds.
WORKERS = {"ray": "ray::", "spark": "pyspark.daemon", "dask": "spawn_main"}


def make_table(rows: int, path: Path) -> None:
    """Half of the rows once, the others drawn from them, in random order."""
    import pyarrow
    import pyarrow.parquet
    half = rows // 2
    tokens = itertools.product(GENERATING, GPUS, [None], range(1, 65), [64, 128, 256, 512, 1024], [16, 32, 64, 128, 256])
    passes = itertools.product(MODELS, GPUS, ["inference", "training"], range(1, 2401), [None], [None])
    generator = random.Random(1)
    tokens, passes = list(tokens), list(passes)
    if half < len(tokens) + len(passes):
        share = half / (len(tokens) + len(passes))
        tokens = generator.sample(tokens, round(share * len(tokens)))
        # Batches from 1 on, as in a grid.
        passes = [row for row in passes if row[3] <= math.ceil(2400 * half / 544_000)]
    distinct = [*tokens, *passes]
    table = distinct + generator.choices(distinct, k=rows - len(distinct))
    generator.shuffle(table)
    columns = dict(zip(COLUMNS, zip(*table)))
    kinds = {name: pyarrow.int64() if name in ("batch", "prompt", "output") else pyarrow.string() for name in COLUMNS}
    pyarrow.parquet.write_table(pyarrow.table({name: pyarrow.array(columns[name], kinds[name]) for name in COLUMNS}), path)
    print(f"{len(table):,} rows, {len(distinct):,} of them distinct", flush=True)


def drive(table: str, engine: str, out: str) -> None:
    """A driver: what the others run as a process of its own."""
    import pyarrow.parquet
    import tilecast
    rows = pyarrow.parquet.read_table(table)
    start = time.monotonic()
    try:
        summary = tilecast.sweep(rows, on=engine, out=out, workers=None if engine == "spark" else 2, quiet=True, engine=SETTINGS[engine])
    except tilecast.IoError as error:
        print(json.dumps({"error": str(error)}))
        sys.exit(3)
    numbers = {name: getattr(summary, name) for name in ("rows", "failures", "computed_rows", "rows_per_s")}
    print(json.dumps({**numbers, "wall_s": time.monotonic() - start}))


def parts_in(out: Path) -> list:
    return sorted(out.glob("part-*.parquet")) if out.is_dir() else []


def digest_of(out: Path) -> str:
    digest = hashlib.sha256()
    for part in parts_in(out):
        digest.update(part.name.encode() + part.read_bytes())
    return digest.hexdigest()[:16]


class Processes:
    """The descendants of a process, with their CPU seconds and command lines, also of those that ended since."""

    def __init__(self, root: int):
        self.root, self.known, self.cpu = root, {root}, {}
        self.tick = os.sysconf("SC_CLK_TCK")

    def look(self) -> dict:
        """Command lines by process."""
        parents, lines = {}, {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                lines[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            parents[int(entry)] = (int(stat[1]), (int(stat[11]) + int(stat[12])) / self.tick)
        grew = True
        while grew:
            fresh = {process for process, (parent, _) in parents.items() if parent in self.known and process not in self.known}
            self.known |= fresh
            grew = bool(fresh)
        for process in self.known & set(parents):
            self.cpu[process] = max(self.cpu.get(process, 0.0), parents[process][1])
        return {process: lines[process] for process in self.known & set(lines)}


def run(table: Path, engine: str, out: Path, at_parts=None, act=None) -> dict:
    """A run of a driver; `act(driver, processes)` once there are so many parts."""
    command = [sys.executable, __file__, "--drive", str(table), engine, str(out)]
    start = time.monotonic()
    # Executors start in folders of their own.
    paths = os.pathsep.join(os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                              env={**os.environ, "PYTHONPATH": paths})
    processes = Processes(driver.pid)
    while driver.poll() is None:
        lines = processes.look()
        if act is not None and len(parts_in(out)) >= at_parts:
            act(driver, processes, lines)
            act = None
        time.sleep(0.2)
    said = driver.stdout.read().strip().splitlines()
    result = json.loads(said[-1]) if said and said[-1].startswith("{") else {}
    return {**result, "status": driver.returncode, "all_s": time.monotonic() - start, "cpu_s": sum(processes.cpu.values()), "acted": act is None,
            "processes": processes}


def end_a_worker(engine: str):
    def act(_, processes, lines):
        workers = [process for process, line in lines.items() if WORKERS[engine] in line and "raylet" not in line]
        busiest = max(workers, key=lambda process: processes.cpu.get(process, 0.0))
        os.kill(busiest, signal.SIGKILL)
    return act


def end_all_but_us(processes) -> None:
    """What a dead driver leaves behind: workers that would go on."""
    for process in processes.look():
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def check(engine: str, table: Path, folder: Path, expected: str, parts: int) -> list:
    """Runs in which something dies. Lines of the report."""
    lines = []
    out = folder / f"{engine}-worker"
    if engine in WORKERS:
        result = run(table, engine, out, max(1, parts // 4), end_a_worker(engine))
        lines.append(f"{engine}: a worker killed: {'the same rows' if digest_of(out) == expected else 'OTHER ROWS'}, "
                     f"{result.get('computed_rows', 0):,} computed, status {result['status']}, {result.get('wall_s', 0):.1f} s")
        shutil.rmtree(out)
    out = folder / f"{engine}-driver"
    first = run(table, engine, out, max(1, parts // 4), lambda driver, *_: driver.kill())
    end_all_but_us(first["processes"])
    left = len(parts_in(out))
    second = run(table, engine, out)
    lines.append(f"{engine}: the driver killed with {left} of {parts} parts: {'the same rows' if digest_of(out) == expected else 'OTHER ROWS'}, "
                 f"{second.get('computed_rows', 0):,} rows computed by the second run")
    shutil.rmtree(out)
    if os.geteuid() == 0 and engine != "dask":
        lines.append(full_disk(engine, table, folder, expected))
    return lines


def full_disk(engine: str, table: Path, folder: Path, expected: str) -> str:
    """A disk with room for a third of the parts, then for all."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    size = sum(part.stat().st_size for part in parts_in(folder / "local")) + table.stat().st_size
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size // 3}", "tmpfs", str(disk)], stderr=subprocess.DEVNULL).returncode:
        return f"{engine}: a full disk: skipped, tmpfs cannot be mounted"
    try:
        first = run(table, engine, disk / "out")
        left = len(parts_in(disk / "out"))
        subprocess.run(["mount", "-o", f"remount,size={4 * size}", str(disk)], check=True)
        second = run(table, engine, disk / "out")
        same = digest_of(disk / "out") == expected and second["status"] == 0
        return (f"{engine}: a full disk: status {first['status']}, {left} parts; '{first.get('error', '')[:160]}'; with room "
                f"{'the same rows' if same else 'OTHER ROWS'}")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engines", default="local,ray,spark,dask")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--no-deaths", action="store_true", help="measure only")
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.drive:
        return drive(*arguments.drive)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / "table.parquet"
        make_table(arguments.rows, table)
        engines, results = list(dict.fromkeys(["local", *arguments.engines.split(",")])), {}
        for engine in engines:
            shutil.rmtree(folder / engine, ignore_errors=True)
            results[engine] = run(table, engine, folder / engine)
            if engine == "local":
                parts, expected = len(parts_in(folder / "local")), digest_of(folder / "local")
                print(f"{parts} parts, {sum(part.stat().st_size for part in parts_in(folder / 'local')) / 1e6:.1f} MB")
                print("engine   sweep s   process s   CPU s   rows/s   failures   rows")
            result = results[engine]
            same = "the same" if digest_of(folder / engine) == expected else "OTHER"
            print(f"{engine:8} {result.get('wall_s', 0):7.1f} {result['all_s']:11.1f} {result['cpu_s']:7.1f} {result.get('rows_per_s', 0):8,.0f} "
                  f"{result.get('failures', 0):10,}   {same}", flush=True)
            if engine != "local":
                shutil.rmtree(folder / engine)
        if not arguments.no_deaths:
            for engine in engines:
                print("\n".join(check(engine, table, folder, expected, parts)), flush=True)


if __name__ == "__main__":
    main()
