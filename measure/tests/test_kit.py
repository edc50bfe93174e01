"""The campaign's logic, without a GPU: python3 measure/tests/test_kit.py"""

import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURE = os.path.dirname(HERE)
sys.path.insert(0, MEASURE)

from kit import card, design, zoo  # noqa: E402
from kit.families import families  # noqa: E402
from kit.table import Table, TableError, read_table  # noqa: E402
from kit.worker import Worker, WorkerError  # noqa: E402

SIMULATED = [sys.executable, os.path.join(HERE, "simulated_worker.py")]


def run_kit(folder, *arguments, **environment):
    return subprocess.run([sys.executable, "-m", "kit", "--dry-run", "-o", folder, *arguments],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": MEASURE, **environment})


def rows_of(folder, family):
    return read_table(os.path.join(folder, "simulated-gpu", family + ".csv"))[1]


class Design(unittest.TestCase):
    def test_asks_for_the_same_cases_in_the_same_order_each_time(self):
        self.assertEqual([f.cases for f in families()], [f.cases for f in families()])

    def test_no_case_twice_and_every_input_given(self):
        for family in families():
            keys = [tuple(str(case.get(c, "")) for c in family.inputs) for case in family.cases]
            self.assertEqual(len(keys), len(set(keys)), family.name)
            for case in family.cases:
                self.assertEqual(set(case) - set(family.inputs), set(), family.name)

    def test_a_run_cut_short_is_a_fair_sample(self):
        family = next(f for f in families() if f.name == "matmul")
        everything = collections.Counter(case["dtype"] for case in family.cases)
        start = collections.Counter(case["dtype"] for case in family.cases[:400])
        for dtype, count in everything.items():
            expected = 400 * count / len(family.cases)
            # Four standard deviations of a draw of 400.
            self.assertAlmostEqual(start[dtype], expected, delta=4 * expected ** 0.5 + 1, msg=dtype)

    def test_matrix_sizes_cover_decades_and_tile_edges(self):
        rng = design.generator("test")
        sizes = [design.matrix_size(rng, 16, 16384) for _ in range(3000)]
        self.assertTrue(all(16 <= size <= 16384 for size in sizes))
        decades = collections.Counter(size.bit_length() for size in sizes)
        self.assertGreater(min(decades[bits] for bits in range(6, 14)), 150)
        edges = collections.Counter(size % 16 for size in sizes)
        self.assertGreater(edges[0], 900)
        self.assertGreater(edges[1], 150)
        self.assertGreater(edges[15], 150)

    def test_fp8_products_are_those_that_the_library_takes(self):
        for case in next(f for f in families() if f.name == "matmul").cases:
            if case["dtype"] in ("fp8", "int8"):
                self.assertEqual((case["m"] % 16, case["n"] % 16, case["k"] % 16), (0, 0, 0))
                self.assertEqual((case["trans_a"], case["trans_b"]), (0, 1))

    def test_shares_are_of_the_whole(self):
        self.assertAlmostEqual(sum(f.share for f in families()), 1)

    def test_forty_models_of_every_kind(self):
        self.assertGreaterEqual(len(zoo.MODELS), 40)
        self.assertEqual({kind for kind, _ in zoo.MODELS.values()},
                         {"causal", "masked", "seq2seq", "image", "unet", "dlrm"})
        cases = zoo.cases()
        self.assertEqual({case["model"] for case in cases}, set(zoo.MODELS))
        self.assertEqual({case["dtype"] for case in cases}, {"fp32", "tf32", "bf16", "amp"})


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "card", "a.csv")
        self.addCleanup(self.folder.cleanup)

    def table(self, columns=("x", "y")):
        table = Table(self.path, list(columns), {"gpu_name": "T4", "date": "today"})
        self.addCleanup(table.close)
        return table

    def test_header_and_rows_come_back(self):
        self.table().write({"x": 1, "y": 'a, "b"\nc'})
        facts, rows = read_table(self.path)
        self.assertEqual(facts, {"gpu_name": "T4", "date": "today"})
        self.assertEqual(rows, [{"x": "1", "y": 'a, "b" c'}])

    def test_a_torn_last_row_is_dropped_and_written_anew(self):
        table = self.table()
        table.write({"x": 1, "y": 2})
        table.close()
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("3,4")  # no newline: cut off
        self.assertEqual(len(read_table(self.path)[1]), 1)
        self.table().write({"x": 5, "y": 6})
        self.assertEqual([row["x"] for row in read_table(self.path)[1]], ["1", "5"])

    def test_other_columns_are_refused(self):
        self.table().close()
        with self.assertRaisesRegex(TableError, "has other columns than this kit writes"):
            self.table(("x", "z"))

    def test_two_writers_are_refused(self):
        self.table()
        with self.assertRaisesRegex(TableError, "another run writes this file"):
            self.table()

    def test_a_full_disk_leaves_whole_rows(self):
        program = (
            "import resource, signal, sys; sys.path.insert(0, sys.argv[1])\n"
            "from kit.table import Table, TableError\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "table = Table(sys.argv[2], ['x'], {})\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
            "try:\n"
            "    for i in range(1000): table.write({'x': f'row {i} ' + 'x' * 30})\n"
            "except TableError as error: print(error)\n")
        found = subprocess.run([sys.executable, "-c", program, MEASURE, self.path], capture_output=True, text=True)
        self.assertIn("The rows before are whole", found.stdout)
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.endswith("x\n"))
        self.assertGreater(len(read_table(self.path)[1]), 40)


class Workers(unittest.TestCase):
    def test_a_crash_costs_one_case(self):
        worker = Worker(["env", "SIMULATED_CRASH_EVERY=2", *SIMULATED])
        self.addCleanup(worker.stop)
        case = {"do": "time", "family": "rows", "m": 3}
        statuses = [worker.ask(case, 30)["status"] for _ in range(4)]
        self.assertEqual(statuses, ["ok", "failed", "ok", "failed"])

    def test_a_hang_ends_at_its_limit(self):
        worker = Worker(["env", "SIMULATED_HANG=rows", *SIMULATED])
        self.addCleanup(worker.stop)
        started = time.monotonic()
        self.assertEqual(worker.ask({"do": "time", "family": "rows"}, 1)["status"], "timeout")
        self.assertLess(time.monotonic() - started, 10)

    def test_one_that_does_not_start_says_why(self):
        with self.assertRaisesRegex(WorkerError, "no such card"):
            Worker(["sh", "-c", "echo no such card >&2; exit 1"]).check()
        with self.assertRaisesRegex(WorkerError, "No such file"):
            Worker(["/nowhere/worker"]).check()


class Campaigns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.folder = folder.name
        self.addCleanup(folder.cleanup)

    def test_measures_all_when_there_is_time_and_nothing_twice(self):
        first = run_kit(self.folder, "--families", "rows,device,model_kernels")
        self.assertEqual(first.returncode, 0, first.stderr)
        wanted = next(f for f in families() if f.name == "rows").cases
        self.assertEqual(len(rows_of(self.folder, "rows")), len(wanted))
        # One case of that family gives many rows, and counts as one.
        self.assertGreater(len(rows_of(self.folder, "model_kernels")), len(zoo.profiled_cases()))
        run_kit(self.folder, "--families", "rows,device,model_kernels")
        self.assertEqual(len(rows_of(self.folder, "rows")), len(wanted))
        statuses = collections.Counter(row["status"] for row in rows_of(self.folder, "rows"))
        self.assertGreater(statuses["out_of_memory"], 0, "out of memory is recorded, not fatal")
        self.assertIn("out_of_memory", first.stdout)

    def test_stops_in_time_and_goes_on_later(self):
        started = time.monotonic()
        run_kit(self.folder, "--minutes", "0.05", "--families", "rows,movement", SIMULATED_DELAY_S="0.05")
        self.assertLess(time.monotonic() - started, 10)
        part = rows_of(self.folder, "rows")
        self.assertLess(0, len(part))
        run_kit(self.folder, "--families", "rows")
        whole = rows_of(self.folder, "rows")
        self.assertEqual(whole[:len(part)], part)
        keys = [tuple(row[c] for c in ("op", "dtype", "m", "n", "k", "l2")) for row in whole]
        self.assertEqual(len(keys), len(set(keys)))

    def test_shares_the_time_as_the_families_ask(self):
        # Slow enough that the cases' time is the worker's, long enough for some turns of each.
        run_kit(self.folder, "--minutes", "0.15", "--families", "matmul,rows", SIMULATED_DELAY_S="0.03")
        ratio = len(rows_of(self.folder, "matmul")) / len(rows_of(self.folder, "rows"))
        shares = {f.name: f.share for f in families()}
        self.assertAlmostEqual(ratio, shares["matmul"] / shares["rows"], delta=1.2)

    def test_ctrl_c_leaves_whole_rows(self):
        environment = {**os.environ, "PYTHONPATH": MEASURE, "SIMULATED_DELAY_S": "0.02"}
        process = subprocess.Popen([sys.executable, "-m", "kit", "--dry-run", "-o", self.folder], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        path = os.path.join(self.folder, "simulated-gpu", "matmul.csv")
        for _ in range(200):
            with contextlib.suppress(FileNotFoundError):
                if len(read_table(path)[1]) > 5:
                    break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("run again to go on", err)
        with open(path, encoding="utf-8") as file:
            self.assertTrue(file.read().endswith("\n"))
        self.assertIn("matmul", out)

    def test_another_driver_gets_a_file_of_its_own(self):
        run_kit(self.folder, "--minutes", "0.03", "--families", "rows", SIMULATED_DELAY_S="0.05")
        path = os.path.join(self.folder, "simulated-gpu", "rows.csv")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("# driver: 0", "# driver: 1"))
        run_kit(self.folder, "--families", "rows")
        second = rows_of(self.folder, "rows.2")
        wanted = next(f for f in families() if f.name == "rows").cases
        self.assertEqual(len(second) + len(rows_of(self.folder, "rows")), len(wanted))

    def test_a_folder_that_cannot_be_written_is_named(self):
        blocked = os.path.join(self.folder, "file")
        with open(blocked, "w", encoding="utf-8") as file:
            file.write("x")
        found = run_kit(blocked, "--families", "rows")
        self.assertEqual(found.returncode, 1)
        self.assertIn(blocked, found.stderr)

    def test_a_dry_run_leaves_the_source_tree_alone(self):
        temporary = os.path.join(self.folder, "tmp")
        os.mkdir(temporary)
        found = subprocess.run(["sh", os.path.join(MEASURE, "run.sh"), "--dry-run", "--minutes", "0.1", "--families",
                                "rows"], capture_output=True, text=True, timeout=120,
                               env={**os.environ, "TMPDIR": temporary})
        self.assertEqual(found.returncode, 0, found.stderr)
        made = os.listdir(temporary)
        self.assertEqual(len(made), 1)
        folder = os.path.join(temporary, made[0])
        self.assertIn(f"made-up rows go to {folder}", found.stderr)
        self.assertIn(f"rows are in {folder}", found.stdout)
        self.assertTrue(rows_of(folder, "rows"))
        self.assertFalse(os.path.exists(os.path.join(os.path.dirname(MEASURE), "data", "measurements", "simulated-gpu")))

    def test_a_list_gets_its_times_and_nothing_twice(self):
        path = os.path.join(self.folder, "few.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("gpu,op,dtype,software,m,n,k,rows,columns,latency_s\n"
                       "H100,linear,bf16,vllm,64,128,256,,,\n"
                       "H100,softmax,fp32,pytorch,,,,64,128,\n"
                       "H100,experts,bf16,vllm,64,,,,,\n"
                       "H100,linear,bf16,pytorch,8,8,8,,,5e-6\n")
        found = run_kit(self.folder, "--list", path)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("2 of 4 kernels measured now", found.stdout)
        self.assertIn("1 not measured: a kernel of serving software", found.stdout)
        facts, rows = read_table(path)
        self.assertIn("simulated", facts)  # so that no calibration takes them for real
        times = [row["latency_s"] for row in rows]
        self.assertTrue(float(times[0]) > 0 and float(times[1]) > 0)
        self.assertEqual(times[2:], ["", "5e-6"])
        self.assertIn("0 of 4 kernels measured now", run_kit(self.folder, "--list", path).stdout)
        self.assertEqual([row["latency_s"] for row in read_table(path)[1]], times)

    def test_wrong_words_are_named(self):
        self.assertIn("unknown family 'rowz'", run_kit(self.folder, "--families", "rowz").stderr)
        self.assertIn("none.csv: No such file", run_kit(self.folder, "--list", "none.csv").stderr)
        self.assertIn("expected more than 0", run_kit(self.folder, "--minutes", "0").stderr)

    def test_without_a_gpu_nothing_is_written(self):
        found = subprocess.run([sys.executable, "-m", "kit", "-o", self.folder, "--kernels-worker", "/nowhere",
                                "--python", "/nowhere/python"], capture_output=True, text=True,
                               env={**os.environ, "PYTHONPATH": MEASURE})
        self.assertEqual(found.returncode, 1)
        self.assertIn("nothing can be measured on this machine", found.stderr)
        self.assertIn("kernels: not built", found.stderr)
        self.assertEqual(os.listdir(self.folder), [])


class Cards(unittest.TestCase):
    def test_driver_names_are_found_among_the_devices(self):
        self.assertEqual(card.device_id("NVIDIA H200"), ("nvidia-h200-sxm-141gb", True))
        self.assertEqual(card.device_id("NVIDIA H100 80GB HBM3"), ("nvidia-h100-sxm5-80gb", True))
        self.assertEqual(card.device_id("Strange (TM) Card"), ("strange-tm-card", False))


class WholeModels(unittest.TestCase):
    """models.py on a CPU; skipped where PyTorch is missing."""

    def setUp(self):
        self.python = os.environ.get("TILECAST_PYTHON", sys.executable)
        probe = subprocess.run([self.python, "-c", "import torch, transformers"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("PyTorch and Transformers are not installed")

    def test_every_kind_of_model_steps(self):
        for model in zoo.TINY:
            for mode in ("inference", "training"):
                found = subprocess.run([self.python, os.path.join(MEASURE, "models.py"), "--device", "cpu", "--model",
                                        model, "--mode", mode, "--batch", "2", "--seq", "16"],
                                       capture_output=True, text=True, timeout=300)
                self.assertEqual(found.returncode, 0, found.stderr)
                row = json.loads(found.stdout.splitlines()[-1])
                self.assertGreater(row["latency_s"], 0)
                self.assertEqual(row["backward_s"] > 0, mode == "training")

    def test_a_bad_request_is_answered_and_the_next_one_served(self):
        worker = Worker([self.python, os.path.join(MEASURE, "models.py"), "--serve", "--device", "cpu"])
        self.addCleanup(worker.stop)
        case = {"do": "time", "family": "models", "model": "tiny-gpt2", "mode": "inference", "dtype": "fp4",
                "attention": "eager", "batch": 1, "seq": 8}
        self.assertEqual(worker.ask(case, 200)["status"], "unsupported")
        answer = worker.ask({**case, "dtype": "bf16"}, 200)
        self.assertEqual(answer["status"], "ok")
        self.assertEqual(json.loads(answer["config"])["model_type"], "gpt2")


if __name__ == "__main__":
    unittest.main()
