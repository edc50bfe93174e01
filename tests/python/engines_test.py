"""tilecast.sweep by Ray, Spark and Dask, each with a worker that is killed: one row for each point, and the same bytes as on threads.

It starts clusters of processes, so it is a test of its own: python -m unittest discover -s tests/python -p engines_test.py
"""
import importlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import tilecast
from support import needs
from test_sweep_parquet import ROWS, many_rows, parts


class Engines(unittest.TestCase):
    """Rows by each engine, and a worker that is killed while it writes its part."""
    rows, chunk_rows = 5_000, 500
    python_path = os.pathsep.join([os.path.dirname(os.path.dirname(tilecast.__file__)), os.path.dirname(__file__)])

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        patch = mock.patch.dict(os.environ, {"PYTHONPATH": self.python_path})  # of the workers
        patch.start()
        self.addCleanup(patch.stop)

    def kill_one(self, killed: list) -> None:
        """Ends the process that writes a part; whoever writes it after that goes on."""
        while not (self.folder / "waiting").exists() and not self.ended.is_set():
            time.sleep(0.01)
        if not self.ended.is_set():
            killed.append(int((self.folder / "waiting").read_text()))
            if killed[0] != os.getpid():
                os.kill(killed[0], signal.SIGKILL)
        (self.folder / "go").touch()

    def check(self, on: str, **settings) -> None:
        import pyarrow.fs
        from waiting_files import WaitingFiles
        rows = many_rows(self.rows)
        tilecast.sweep(rows, out=self.folder / "local", chunk_rows=self.chunk_rows, quiet=True)
        killed, out = [], self.folder / on
        self.ended = threading.Event()
        killer = threading.Thread(target=self.kill_one, args=(killed,))
        killer.start()
        files = pyarrow.fs.PyFileSystem(WaitingFiles("part-00002", str(self.folder)))
        try:
            summary = tilecast.sweep(rows, on=on, out=out, filesystem=files, chunk_rows=self.chunk_rows, quiet=True, **settings)
        finally:
            self.ended.set()
            killer.join()
        self.assertEqual(len(killed), 1)
        self.assertNotIn(os.getpid(), killed)
        self.assertEqual((summary.rows, summary.failures), (self.rows, 0))
        self.assertEqual(parts(out), parts(self.folder / "local"))

    @needs("pyarrow", "ray")
    def test_ray(self):
        import ray
        self.addCleanup(ray.shutdown)
        self.check("ray", workers=2, engine={"num_cpus": 1, "include_dashboard": False})
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
            .config("spark.ui.showConsoleProgress", "false").config("spark.executorEnv.PYTHONPATH", self.python_path).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        self.addCleanup(session.stop)
        with self.assertRaisesRegex(tilecast.InputError, "`workers`: how many tasks run is Spark's configuration"):
            tilecast.sweep(ROWS, on="spark", out=self.folder / "workers", workers=2)
        self.check("spark")
        spark = importlib.import_module("tilecast.spark")
        frame = session.createDataFrame([(1,), (2,), (None,)], "batch long")
        found = spark.forecast(frame, model="gpt2", gpu="H100").collect()
        expected = tilecast.forecast_many({"batch": [1, 2, None]}, model="gpt2", gpu="H100")["latency_s"]
        self.assertEqual({row["batch"]: row["latency_s"] for row in found}, dict(zip([1, 2, None], expected)))
        with self.assertRaisesRegex(tilecast.InputError, "column 'bacth' is no option"):
            spark.forecast(frame.withColumnRenamed("batch", "bacth"))

    @needs("pyarrow", "pyspark")
    def test_an_interrupt_ends_the_job_of_spark(self):
        spark = importlib.import_module("tilecast.spark")
        session, ended = mock.MagicMock(), threading.Event()
        frame = session.range.return_value.mapInArrow.return_value
        frame.collect.side_effect = lambda: ended.wait(60) and []
        session.sparkContext.statusTracker.return_value.getJobIdsForGroup.side_effect = KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            spark._one_job(session, mock.Mock(sweep_id="0" * 64), [5, 7], mock.Mock(done=0), 1)
        ended.set()
        session.sparkContext.cancelJobGroup.assert_called_once_with(f"tilecast-{'0' * 16}-5-2")

    @needs("pyarrow", "distributed")
    def test_dask(self):
        self.check("dask", workers=2)


if __name__ == "__main__":
    unittest.main()
