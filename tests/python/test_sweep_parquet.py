"""tilecast.sweep into Parquet: one row for each point, whatever dies, and the same rows by every engine."""
import glob
import importlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import tilecast
from support import needs

ROWS = {"model": ["gpt2", "nope", "resnet-50"] * 40, "gpu": "H100", "batch": [1 + i % 7 for i in range(120)], "dtype": None}
SPEC = {"model": ["gpt2"], "gpu": ["H100"], "batch": {"from": 1, "to": 5}, "where": "batch < 4",
        "draw": {"count": 4, "seed": 3, "columns": {"parameters": {"memory_bytes_per_s": {"from": 1e12, "to": 4e12}}}}}


def parts(folder) -> dict:
    """The content of all parts by name."""
    return {os.path.basename(path): pathlib.Path(path).read_bytes() for path in glob.glob(os.path.join(str(folder), "part-*.parquet"))}


def many_rows(count: int) -> dict:
    """Rows of two fast models."""
    return {"model": ["resnet-50" if i % 2 else "gpt2" for i in range(count)], "gpu": ["H100" if i % 3 else "T4" for i in range(count)],
            "mode": ["training" if i % 5 else "inference" for i in range(count)], "batch": [1 + i % 613 for i in range(count)]}


@needs("pyarrow")
class Sweeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out.parquet"

    def sweep(self, rows=ROWS, **options):
        return tilecast.sweep(rows, **{"out": self.out, "quiet": True, "chunk_rows": 16, **options})

    def test_rows_are_those_of_a_table_of_forecasts(self):
        import pyarrow
        summary = self.sweep()
        self.assertEqual((summary.rows, summary.failures, summary.computed_rows), (120, 40, 120))
        self.assertIn("nope: no such file", summary.first_error)
        table = summary.table()
        expected = pyarrow.table(tilecast.forecast_many(ROWS))
        self.assertEqual(table.select(expected.column_names), expected)
        self.assertEqual(table["index"].to_pylist(), list(range(120)))
        self.assertEqual(table["model"].to_pylist(), ROWS["model"])
        self.assertEqual(table["given_dtype"].null_count, 120)  # the option; `dtype` is the one that was used
        self.assertEqual(summary.table(["batch", "latency_s"]).column_names, ["batch", "latency_s"])

    def test_columns_have_units(self):
        schema = self.sweep().table().schema
        self.assertEqual(schema.field("latency_s").metadata[b"unit"], b"s")
        self.assertEqual(schema.field("peak_bytes").metadata[b"unit"], b"bytes")
        self.assertIn(b"why there is no forecast", schema.field("error").metadata[b"doc"])

    def test_alike_rows_are_in_one_part(self):
        """Rows of a model are beside each other, so each part has few graphs."""
        import pyarrow.parquet
        self.sweep(chunk_rows=40)
        for name in sorted(parts(self.out)):
            self.assertEqual(len(pyarrow.parquet.read_table(self.out / name)["model"].unique()), 1)

    def test_any_number_of_workers_gives_the_same_bytes(self):
        self.sweep()
        other = self.out.with_name("other")
        self.sweep(out=other, workers=5)
        self.assertEqual(len(parts(self.out)), 8)
        self.assertEqual(parts(self.out), parts(other))

    def test_a_run_does_what_is_missing(self):
        self.sweep()
        whole = parts(self.out)
        (self.out / "part-00003.parquet").unlink()
        (self.out / ".part-00003.parquet.0123.tmp").write_bytes(b"half of it")
        summary = self.sweep()
        self.assertEqual((summary.computed_rows, summary.rows, summary.failures), (16, 120, 40))
        self.assertEqual(parts(self.out), whole)
        self.assertEqual(sorted(os.listdir(self.out)), sorted([*whole, "_SUCCESS", "_manifest.json"]))
        self.assertEqual(self.sweep().computed_rows, 0)

    def test_a_folder_of_another_question_is_refused(self):
        self.sweep()
        for change, message in (({"seq": 64}, "another question .*'seq' was null"), ({"chunk_rows": 17}, "'chunk_rows' was 16, is 17"),
                                ({"rows": {**ROWS, "batch": 1}}, "another question")):
            with self.assertRaisesRegex(tilecast.InputError, message):
                self.sweep(**change)
        whole = parts(self.out)
        name = sorted(whole)[0]
        (self.out / name).write_bytes(whole[sorted(whole)[1]])
        with self.assertRaisesRegex(tilecast.InputError, "'part-00000.parquet' is of another sweep"):
            self.sweep()
        (self.out / name).write_bytes(whole[name][:100])
        with self.assertRaisesRegex(tilecast.IoError, "'part-00000.parquet' is damaged"):
            self.sweep()

    def test_a_model_file_that_changed_is_another_question(self):
        config = self.out.with_name("config.json")
        text = '{"model_type": "gpt2", "vocab_size": 100, "n_positions": 64, "n_embd": 64, "n_layer": %d, "n_head": 4}'
        config.write_text(text % 2)
        rows = {"model": [str(config)], "gpu": ["H100"]}
        self.assertEqual(self.sweep(rows).failures, 0)
        config.write_text(text % 3)
        with self.assertRaisesRegex(tilecast.InputError, "another question"):
            self.sweep(rows)

    CONFIG = '{"model_type": "gpt2", "vocab_size": 100, "n_positions": 64, "n_embd": 64, "n_layer": %d, "n_head": 4}'

    def test_each_named_file_that_changed_is_another_question(self):
        """Also in a folder whose name has no dot, in folders below it, and with other numbers of a device behind its name."""
        from tilecast import _sweep
        folder = pathlib.Path(self.enter_folder())
        for name in ("m", "p/unet", "p/.cache"):
            (folder / name).mkdir(parents=True)
        for name in ("m/config.json", "p/unet/config.json", "p/.cache/x", "d.json"):
            (folder / name).write_text(self.CONFIG % 2)
        words = ["m", "p", "d.json:sm_count=160", "gpt2", "H100:sm_count=160", "nothing"]
        before = _sweep._named_files(words)
        self.assertEqual(sorted(before), ["d.json", "m", "p"])
        (folder / "p/.cache/x").write_text("another")
        self.assertEqual(_sweep._named_files(words), before)
        for changed, name in (("m/config.json", "m"), ("p/unet/config.json", "p"), ("d.json", "d.json")):
            (folder / changed).write_text(self.CONFIG % 3)
            after = _sweep._named_files(words)
            self.assertEqual([word for word in after if after[word] != before[word]], [name])
            before = after
        self.assertEqual(self.sweep({"model": ["m"], "gpu": ["H100"]}).failures, 0)
        (folder / "m/config.json").write_text(self.CONFIG % 4)
        for rows in ({"model": ["m"], "gpu": ["H100"]}, {"model": ["m"], "gpu": ["H100"], "where": "1 > 0"}):
            with self.assertRaisesRegex(tilecast.InputError, "another question"):
                self.sweep(rows)

    def enter_folder(self) -> str:
        """A new folder, in which the test goes on."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        return folder.name

    def test_files_are_hashed_in_blocks(self):
        """Of a large file in a folder the beginning counts, and the size."""
        import hashlib

        from tilecast._sweep import job
        folder = pathlib.Path(self.enter_folder())
        (folder / "a").write_bytes(b"x" * 5000)
        with mock.patch.object(job, "_BLOCK_BYTES", 1024):
            self.assertEqual(job.hash_of_file(str(folder / "a")), hashlib.sha256(b"a" + b"x" * 5000).hexdigest())
        with mock.patch.object(job, "_BLOCK_BYTES", 1024), mock.patch.object(job, "_WHOLE_BYTES", 4096):
            before = job.hash_of_file(str(folder))
            (folder / "a").write_bytes(b"x" * 4999 + b"y")
            self.assertEqual(job.hash_of_file(str(folder)), before)
            for content in (b"x" * 5001, b"y" + b"x" * 4999):
                (folder / "a").write_bytes(content)
                self.assertNotEqual(job.hash_of_file(str(folder)), before)

    def test_a_wrong_path_of_weights_leaves_no_folder(self):
        for wrong in ({"weights": "nothing"}, {"calibration": "nothing.json"}, {"weights": os.path.dirname(__file__)}):
            with self.assertRaises(tilecast.Error):
                self.sweep(**wrong)
            self.assertFalse(self.out.exists(), wrong)
        self.assertEqual(self.sweep().rows, 120)

    def test_another_commit_is_another_question(self):
        from tilecast import _core
        self.assertRegex(_core.__commit__, r"^([0-9a-f]{12}(\+changes)?)?$")
        self.sweep()
        with mock.patch.object(_core, "__commit__", "0123456789ab"), self.assertRaisesRegex(tilecast.InputError, "another question .'commit' was"):
            self.sweep()

    def test_any_write_may_be_the_last_of_a_run(self):
        """Each write in turn fails; the same call then gives the rows of an undisturbed run."""
        from tilecast._sweep.store import Store
        self.sweep(out=self.out.with_name("expected"))
        write = Store._write
        for at in range(11):  # the manifest, the rows, 8 parts, the mark of success
            out, count = self.out.with_name(f"fault-{at}"), 0

            def failing(store, name, content, *rest):
                nonlocal count
                count += 1
                if count == at + 1:
                    raise OSError("no room")
                return write(store, name, content, *rest)
            with mock.patch.object(Store, "_write", failing), self.assertRaisesRegex(tilecast.IoError, "cannot be written: no room"):
                self.sweep(out=out, workers=1)
            self.assertEqual(self.sweep(out=out).rows, 120)
            self.assertEqual(parts(out), parts(self.out.with_name("expected")))
            self.assertEqual(sorted(os.listdir(out)), sorted([*parts(out), "_SUCCESS", "_manifest.json"]))

    def test_a_folder_with_rows_and_no_manifest_is_continued(self):
        self.out.mkdir()
        (self.out / "_input.arrow").write_bytes(b"of a run that was killed")
        self.assertEqual(self.sweep().computed_rows, 120)

    def test_two_questions_at_once(self):
        """The second one finds no manifest, as the first one has not written it yet: one of them ends with an error, and no rows are mixed."""
        from tilecast._sweep.store import Store
        names, second, other = Store.names, [], {**ROWS, "batch": 2}

        def names_then_another(store):
            found = names(store)
            if not second:
                second.append(True)
                second[0] = self.sweep(other)
            return found
        with mock.patch.object(Store, "names", names_then_another), self.assertRaisesRegex(tilecast.InputError, "another question"):
            self.sweep()
        self.assertEqual(second[0].table(["batch"])["batch"].unique().to_pylist(), [2])
        self.assertEqual(self.sweep(other).computed_rows, 0)

    def test_rows_of_another_question_are_not_forecast(self):
        """As on a file system where the second of two writers wins."""
        from tilecast._sweep import job
        run_chunk, rows = job.run_chunk, []

        def keep_rows(one, chunk, threads):
            rows.append((self.out.with_name("third") / "_input.arrow").read_bytes())
            return run_chunk(one, chunk, threads)
        with mock.patch("tilecast._sweep.local.run_chunk", keep_rows):
            self.sweep(out=self.out.with_name("third"), rows={**ROWS, "batch": 2}, workers=1)

        def other_rows(one, chunk, threads):
            (self.out / "_input.arrow").write_bytes(rows[0])
            return run_chunk(one, chunk, threads)
        with mock.patch("tilecast._sweep.local.run_chunk", other_rows), self.assertRaisesRegex(tilecast.InputError, "_input.arrow' is of another sweep"):
            self.sweep(workers=1)
        self.assertEqual(parts(self.out), {})

    def test_two_drivers_of_one_question(self):
        """The first one that ends removes the rows; the parts that it wrote are the second one's."""
        from tilecast._sweep import job
        run_chunk, first = job.run_chunk, []

        def after_the_first(one, chunk, threads):
            if not first:
                first.append(None)
                first[0] = self.sweep(workers=1)
            return run_chunk(one, chunk, threads)
        with mock.patch("tilecast._sweep.local.run_chunk", after_the_first):
            summary = self.sweep(workers=1)
        self.assertEqual((first[0].computed_rows, summary.computed_rows, summary.rows, summary.failures), (120, 0, 120, 40))

    def test_wrong_calls(self):
        with self.assertRaisesRegex(tilecast.InputError, "column 'bacth' is no option; did you mean 'batch'"):
            self.sweep({"model": ["gpt2"], "gpu": ["H100"], "bacth": [1]})
        with self.assertRaisesRegex(tilecast.InputError, "column 'gpu' has 1 rows; expected 2"):
            self.sweep({"model": ["gpt2"] * 2, "gpu": ["H100"]})
        with self.assertRaisesRegex(tilecast.InputError, "`on`: expected one of local, ray, spark, dask, found 'slurm'"):
            self.sweep(on="slurm")
        with self.assertRaisesRegex(tilecast.InputError, "`out` is missing"):
            tilecast.sweep(ROWS, on="local")
        with self.assertRaisesRegex(tilecast.InputError, "column 'batch' is there twice"):
            self.sweep(batch=3)
        with self.assertRaisesRegex(tilecast.InputError, "column 'index' is no option"):
            self.sweep({"model": ["gpt2"], "gpu": ["H100"], "index": [1]})
        with self.assertRaisesRegex(TypeError, "expected a table"):
            self.sweep(3)
        with self.assertRaisesRegex(tilecast.UnsupportedError, "column 'batch': expected text, whole numbers, floats or booleans"):
            self.sweep({"model": ["gpt2"], "gpu": ["H100"], "batch": [[1]]})
        self.out.write_text("")
        with self.assertRaisesRegex(tilecast.InputError, "is a file; `out` is a folder"):
            self.sweep()
        self.out.unlink()
        self.out.mkdir()
        (self.out / "mine.txt").write_text("")
        with self.assertRaisesRegex(tilecast.InputError, "holds other files and no sweep"):
            self.sweep()

    def test_values_of_all_kinds(self):
        config = {"model_type": "gpt2", "vocab_size": 100, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}
        rows = {"model": [config, "gpt2", "gpt2"], "gpu": "H100", "batch": [1, "many", None], "cuda_graphs": [None, None, True]}
        table = self.sweep(rows).table()
        expected = tilecast.forecast_many(rows)
        self.assertEqual(table["error"].to_pylist(), expected["error"])
        self.assertEqual(table["latency_s"].to_pylist(), expected["latency_s"])
        import pyarrow
        source = pyarrow.table({"model": pyarrow.array(["gpt2", "gpt2"]).dictionary_encode(), "batch": pyarrow.array([1.0, float("nan")])})
        table = self.sweep(source, gpu="T4", out=self.out.with_name("b")).table()
        self.assertEqual(len(set(table["latency_s"].to_pylist())), 1)
        nothing = self.sweep({"model": [], "gpu": []}, out=self.out.with_name("c"))
        self.assertEqual((nothing.rows, nothing.table(["latency_s"]).num_rows), (0, 0))

    def test_other_file_systems(self):
        import pyarrow.fs
        self.sweep(out="file://" + str(self.out))
        within = pyarrow.fs.SubTreeFileSystem(str(self.out.parent), pyarrow.fs.LocalFileSystem())
        self.sweep(out="other", filesystem=within)
        self.assertEqual(parts(self.out), parts(self.out.with_name("other")))
        with self.assertRaisesRegex(tilecast.InputError, "`out` 'nosuch://x'"):
            self.sweep(out="nosuch://x")

    def test_a_full_disk_loses_nothing(self):
        """A limit on the size of files, as a disk without room; then without it."""
        program = ("import resource, sys, tilecast; sys.path.insert(0, sys.argv[1]); from test_sweep_parquet import ROWS\n"
                   "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))\n"
                   "tilecast.sweep(ROWS, out=sys.argv[2], quiet=True, chunk_rows=16, workers=1)")
        self.sweep(out=self.out.with_name("expected"))
        sizes = [len(content) for _, content in sorted(parts(self.out.with_name("expected")).items())]
        command = [sys.executable, "-c", program, os.path.dirname(__file__), str(self.out), str(max(sizes) - 1)]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertRegex(result.stderr, "IoError: .*cannot be written: .*; [0-9] of 8 parts are written: run the same again")
        self.assertFalse((self.out / "_SUCCESS").exists())
        self.assertFalse([name for name in os.listdir(self.out) if name.endswith(".tmp")])
        self.sweep()
        self.assertEqual(parts(self.out), parts(self.out.with_name("expected")))

    def test_a_killed_driver_is_continued(self):
        program = "import sys, tilecast; sys.path.insert(0, sys.argv[1]); from test_sweep_parquet import many_rows\n" \
                  "tilecast.sweep(many_rows(20000), out=sys.argv[2], chunk_rows=500, workers=1)"
        driver = subprocess.Popen([sys.executable, "-c", program, os.path.dirname(__file__), str(self.out)], stderr=subprocess.DEVNULL)
        while driver.poll() is None and len(parts(self.out)) < 3:
            time.sleep(0.002)
        driver.kill()
        driver.wait()
        there = len(parts(self.out))
        self.assertLess(there, 40, "the driver ended too early to be killed")
        summary = self.sweep(many_rows(20000), chunk_rows=500)
        self.assertEqual((summary.rows, summary.computed_rows), (20000, 20000 - 500 * there))
        self.assertEqual(sorted(summary.table(["index"])["index"].to_pylist()), list(range(20000)))

    def test_points_of_a_spec(self):
        """The rows of `tilecast sweep`, by place; those that conditions refuse are none."""
        import csv
        summary = self.sweep(SPEC, chunk_rows=5)
        self.assertEqual((summary.rows, summary.rejected, summary.failures), (12, 8, 0))
        self.assertEqual((self.out / "_SUCCESS").read_text(), '{"rows": 12, "failures": 0, "rejected": 8}')
        self.assertEqual(len(parts(self.out)), 4)
        spec, file = self.out.with_name("spec.json"), self.out.with_name("out.csv")
        spec.write_text(json.dumps(SPEC))
        tilecast.sweep(spec, output_file=file)
        with open(file) as lines:
            expected = {int(row["index"]): float(row["latency_s"]) for row in csv.DictReader(lines)}
        table = summary.table()
        self.assertEqual(dict(zip(table["index"].to_pylist(), table["latency_s"].to_pylist())), expected)
        self.assertEqual(table.schema.field("parameters.memory_bytes_per_s").metadata[b"unit"], b"bytes/s")
        for other in (spec, tilecast.SweepSpec(SPEC)):
            self.assertEqual(self.sweep(other, chunk_rows=5).computed_rows, 0)
        with self.assertRaisesRegex(tilecast.InputError, "`seq`: options of a sweep are in its spec"):
            self.sweep(spec, seq=3)
        # Few points of a spec can all be refused.
        nothing = self.sweep({**SPEC, "where": "batch > 9"}, out=self.out.with_name("none"))
        self.assertEqual((nothing.rows, nothing.rejected), (0, 20))

    def test_import_loads_no_engine(self):
        program = "import sys, tilecast; print([m for m in ('pyarrow', 'ray', 'pyspark', 'dask', 'optuna', 'typing_extensions') if m in sys.modules])"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout, "[]\n")


def processes() -> list:
    """Descendants of this process: ids and command lines."""
    parents, lines = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(entry)] = int(pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            lines[int(entry)] = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    ours = {os.getpid()}
    while fresh := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= fresh
    return [(process, lines[process]) for process in sorted(ours)]


class Engines(unittest.TestCase):
    """50,000 rows by each engine, and a worker that is killed meanwhile."""
    rows, chunk_rows = 50_000, 2_500

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def kill_one(self, out, line: str, killed: list) -> None:
        """Ends a process with `line` in its command line once there are two parts."""
        while len(parts(out)) < 2 and not self.ended:
            time.sleep(0.02)
        found = [process for process, text in processes() if line in text]
        if found and not self.ended:
            os.kill(found[-1], signal.SIGKILL)
            killed.append(found[-1])

    def check(self, on: str, line: str, **settings) -> None:
        rows = many_rows(self.rows)
        tilecast.sweep(rows, out=self.folder / "local", chunk_rows=self.chunk_rows, quiet=True)
        self.ended, killed, out = False, [], self.folder / on
        killer = threading.Thread(target=self.kill_one, args=(out, line, killed))
        killer.start()
        try:
            summary = tilecast.sweep(rows, on=on, out=out, chunk_rows=self.chunk_rows, quiet=True, **settings)
        finally:
            self.ended = True
            killer.join()
        self.assertEqual(len(killed), 1, f"no process with '{line}' was there to be killed")
        self.assertEqual((summary.rows, summary.failures), (self.rows, 0))
        self.assertEqual(parts(out), parts(self.folder / "local"))

    @needs("pyarrow", "ray")
    def test_ray(self):
        import ray
        self.addCleanup(ray.shutdown)
        self.check("ray", "ray::", workers=2, engine={"num_cpus": 1, "include_dashboard": False})
        import ray.data
        rows = {"batch": [1, 2, 3]}
        data = importlib.import_module("tilecast.ray").forecast(ray.data.from_items([{"batch": batch} for batch in rows["batch"]]), model="gpt2", gpu="H100")
        found = sorted(data.take_all(), key=lambda row: row["batch"])
        self.assertEqual([row["latency_s"] for row in found], tilecast.forecast_many(rows, model="gpt2", gpu="H100")["latency_s"])

    @needs("pyarrow", "pyspark")
    @unittest.skipIf(shutil.which("java") is None, "not installed: Java")
    def test_spark(self):
        from pyspark.sql import SparkSession
        os.environ["PYSPARK_PYTHON"] = sys.executable
        session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false") \
            .config("spark.ui.showConsoleProgress", "false").config("spark.executorEnv.PYTHONPATH", os.path.dirname(os.path.dirname(tilecast.__file__))).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        self.addCleanup(session.stop)
        self.check("spark", "pyspark.daemon")
        spark = importlib.import_module("tilecast.spark")
        frame = session.createDataFrame([(1,), (2,), (None,)], "batch long")
        found = spark.forecast(frame, model="gpt2", gpu="H100").collect()
        expected = tilecast.forecast_many({"batch": [1, 2, None]}, model="gpt2", gpu="H100")["latency_s"]
        self.assertEqual({row["batch"]: row["latency_s"] for row in found}, dict(zip([1, 2, None], expected)))
        with self.assertRaisesRegex(tilecast.InputError, "column 'bacth' is no option"):
            spark.forecast(frame.withColumnRenamed("batch", "bacth"))

    @needs("pyarrow", "distributed")
    def test_dask(self):
        self.check("dask", "spawn_main", workers=2)


if __name__ == "__main__":
    unittest.main()
