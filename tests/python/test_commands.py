"""Every command, asked on the command line and in Python: the same JSON."""
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import tilecast
from support import PROGRAM, command_line

SWEEP = {"model": ["resnet-50"], "gpu": ["gemmini"], "batch": [1], "parameters": {"DIM": [8, 16]}}
ROWS = "gpu,op,dtype,m,n,latency_s\nH100,softmax,fp32,1024,1024,0.000008\n"
FEW = "gpu,op,dtype,batch,m,n,k,latency_s,protocol\n" + "".join(
    f"L4,linear,fp32,1,{64 * (i % 7 + 1)},{96 * (i % 5 + 1)},{64 * (i + 1)},{1e-5 * (i % 9 + 1)},back_to_back\n" for i in range(60))
CONVOLUTION = "conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F"
PRODUCT = "gemm m=4096 n=512 k=1024 dtype=fp16"


def plain(result):
    """What JSON has of a result."""
    if hasattr(result, "to_json"):
        return json.loads(result.to_json())
    if isinstance(result, (list, tuple)):
        return [plain(part) for part in result]
    return result


class Commands(unittest.TestCase):
    maxDiff = 2000

    def check(self, words: list, result) -> None:
        self.assertEqual(plain(result), command_line(*words))

    def test_forecast(self):
        self.check(["forecast", "gpt2_med", "--gpu", "A100", "--batch", "2"], tilecast.forecast("gpt2_med", "A100", batch=2))
        self.check(["forecast", "llama-3-8b", "--gpu", "H100", "--prompt", "128", "--output", "16"],
                   tilecast.forecast("llama-3-8b", "H100", prompt=128, output=16))
        self.check(["forecast", "gpt2_med", "--cluster", "dgx-a100", "--mode", "training", "--batch", "16", "--dp", "8"],
                   tilecast.forecast("gpt2_med", cluster="dgx-a100", mode="training", batch=16, dp=8))
        self.check(["forecast", "resnet-50", "--gpu", "gemmini", "--parameters", "DIM=8"],
                   tilecast.forecast("resnet-50", "gemmini", parameters={"DIM": 8}))

    def test_comparison(self):
        self.check(["forecast", "gpt2_large", "--gpus", "H100,T4", "--batch", "4"],
                   tilecast.compare_gpus("gpt2_large", gpus=["H100", "T4"], batch=4))
        self.check(["forecast", "llama-3-8b", "--gpus", "H100,L40S", "--prompt", "128", "--output", "16"],
                   tilecast.compare_gpus("llama-3-8b", [tilecast.load_gpu("H100"), "L40S"], prompt=128, output=16))

    def test_comparison_of_two(self):
        self.check(["compare", "H100", "T4", "--model", "gpt2_med", "--batch", "2"],
                   tilecast.compare("H100", "T4", model="gpt2_med", batch=2))
        with self.assertRaisesRegex(tilecast.InputError, "'T4' states no model: give it with `model`"):
            tilecast.compare("T4", "H100")

    def test_memory_timeline(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "memory.json")
            self.run_command("forecast", "gpt2_med", "--gpu", "T4", "--mode", "training", "--memory-timeline", "json", "-o", path)
            expected = json.loads(pathlib.Path(path).read_text())
        self.assertEqual(plain(tilecast.memory_timeline("gpt2_med", "T4", mode="training")), expected)

    def test_kernel(self):
        expected = command_line("kernel", "attention", "--gpu", "H100", "--dtype", "bf16", "-m", "64", "-n", "64", "-k", "64",
                                "--heads", "8", "--causal", "--warm")
        answer = tilecast.kernel("attention", "H100", dtype="bf16", m=64, n=64, k=64, heads=8, causal=True, warm=True)
        self.assertEqual(plain(answer), expected)

    def test_collective(self):
        self.check(["collective", "all_reduce", "--cluster", "dgx-h100", "--ranks", "16", "--bytes", "67108864"],
                   tilecast.collective("all_reduce", cluster="dgx-h100", ranks=16, bytes=67108864))

    def test_plan_of_training(self):
        self.check(["plan", "gpt2_med", "--cluster", "dgx-a100", "--batch", "16", "--seq", "1024", "--tp", "1,2", "--zero", "0,1",
                    "--price-per-gpu-hour", "2"],
                   tilecast.plan("gpt2_med", cluster="dgx-a100", batch=16, seq=1024, tp=[1, 2], zero=[0, 1], price_per_gpu_hour=2))

    def test_plan_of_training_on_several_kinds(self):
        words = ["plan", "gpt2_med", "--gpus", "H100,A100", "--batch", "16", "--seq", "1024", "--tp", "1", "--pp", "1", "--zero", "1"]
        plans = tilecast.plan("gpt2_med", gpus=["H100", "A100"], batch=16, seq=1024, tp=1, pp=1, zero=1)
        self.check(words, plans)

    def test_plan_of_serving(self):
        self.check(["plan", "llama-3-8b", "--gpus", "H100", "--num-gpus", "2", "--prompt", "256", "--output", "32",
                    "--concurrency", "1,8", "--ttft-s", "0.5", "--tpot-s", "0.03"],
                   tilecast.plan("llama-3-8b", gpus="H100", num_gpus=2, prompt=256, output=32, concurrency=[1, 8], ttft_s=0.5,
                                 tpot_s=0.03))

    def test_shard(self):
        self.check(["shard", "dlrm_mlperf", "--cluster", "dgx-a100"], tilecast.shard("dlrm_mlperf", cluster="dgx-a100"))

    def test_share(self):
        jobs = ["resnet-50 mode=training batch=16", "gpt2 batch=2 loader_s=0.01"]
        self.check(["share", "--gpu", "V100", "--how", "mps", "--job", jobs[0], "--job", jobs[1]],
                   tilecast.share("V100", how="mps", job=jobs))

    def test_trace(self):
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 30, "args": {"External id": 1, "stream": 7}}
        operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9,
                    "args": {"External id": 1, "Input Dims": [[512, 512], [512, 512]], "Input type": ["float", "float"]}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            path.write_text(json.dumps({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": [operator, kernel]}))
            report = tilecast.trace(path, gpu="A100")
            self.assertEqual(report.operators[0].name, "aten::mm")
            self.assertGreater(report.carried.span_s, 0)
            self.check(["trace", str(path), "--gpu", "A100"], report)
            self.check(["forecast", str(path), "--gpu", "A100", "--batch", "2x"], tilecast.trace(path, "A100", batch="2x"))
            processes = {event["pid"] for event in tilecast.trace_timeline(path, "A100")["traceEvents"]}
            self.assertEqual(processes, {1, 2})
            with self.assertRaisesRegex(tilecast.InputError, "is a trace of a profiler: use tilecast.trace"):
                tilecast.forecast(path, "A100")

            class Profile:
                """As torch.profiler.profile."""
                def export_chrome_trace(self, to):
                    with gzip.open(to, "wb") as file:
                        file.write(path.read_bytes())

            direct = tilecast.trace(Profile())
            self.assertEqual([op.measured_s for op in direct.operators], [op.measured_s for op in report.operators])

    def test_allocate(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "jobs.json"
            path.write_text(json.dumps({"jobs": [{"model": "gpt2", "mode": "training", "batch": 2, "steps": 1000},
                                                 {"model": "bert-base", "batch": 4, "steps": 5000, "name": "bert"}]}))
            words = ["allocate", str(path), "--pool", "1xV100,1xT4", "--objective", "throughput"]
            try:
                self.run_command(*words)
            except subprocess.CalledProcessError as error:
                self.skipTest(error.stderr)  # without Cbc
            self.check(words, tilecast.allocate(path, pool="1xV100,1xT4", objective="throughput"))

    def test_tune(self):
        self.check(["tune", CONVOLUTION, "--gpu", "MI100", "--top", "2"], tilecast.tune(CONVOLUTION, "MI100", top=2))
        self.check(["tune", PRODUCT, "--gpu", "MI100"], tilecast.tune(PRODUCT, "MI100"))

    def test_evaluate(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            path.write_text(ROWS)
            self.check(["evaluate", str(path)], tilecast.evaluate(path))

    def test_catalogues(self):
        for name in ("gpus", "clusters", "models", "ops", "doctor"):
            with self.subTest(name):
                self.check([name], getattr(tilecast, name)())

    def run_command(self, *words: str) -> str:
        if not PROGRAM:
            self.skipTest("TILECAST_PROGRAM is not set: there is nothing to compare with")
        return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True).stdout

    def test_calibrate(self):
        with tempfile.TemporaryDirectory() as folder:
            rows, ours, theirs = (pathlib.Path(folder) / name for name in ("few.csv", "ours.json", "theirs.json"))
            rows.write_text(FEW)
            self.run_command("calibrate", "--gpu", "L4", "--measurements", str(rows), "-o", str(theirs))
            result = tilecast.calibrate("L4", measurements=rows, output_file=ours)
            self.assertEqual(json.loads(self.run_command("calibrate", "--gpu", "L4", "--measurements", str(rows), "-o", str(theirs), "--format", "json")),
                             result.to_dict())
            self.assertEqual(result.gpu, "nvidia-l4")
            self.assertEqual(json.loads(ours.read_text()), json.loads(theirs.read_text()))
        self.assertEqual(plain(tilecast.suggest_kernels("L40S", suggest=3)),
                         self.run_command("calibrate", "--gpu", "L40S", "--suggest", "3"))

    def test_sweep(self):
        with tempfile.TemporaryDirectory() as folder:
            spec, ours, theirs = (pathlib.Path(folder) / name for name in ("spec.json", "ours.csv", "theirs.csv"))
            spec.write_text(json.dumps(SWEEP))
            self.run_command("sweep", str(spec), "-o", str(theirs), "--threads", "1")
            result = tilecast.sweep(spec, output_file=ours, threads=1)
            self.assertEqual((result.combinations, result.failed, result.output), (len(ours.read_text().splitlines()) - 1, 0, str(ours)))
            self.assertEqual(sorted(ours.read_text().split("\n")), sorted(theirs.read_text().split("\n")))

    def test_explore(self):
        """The program starts Python's command."""
        spec = {"device": "gemmini", "parameters": {"DIM": [8, 16]}, "forecasts": [{"model": "resnet-50"}], "objectives": ["time"]}
        if not PROGRAM:
            self.skipTest("TILECAST_PROGRAM is not set: there is nothing to compare with")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "spec.json"
            path.write_text(json.dumps(spec))
            words = ["explore", str(path), "--designs", "4", "--batch", "2", "--objective", "DIM", "--format", "json", "--quiet"]
            ours = subprocess.run([sys.executable, "-m", "tilecast", *words], capture_output=True, text=True)
            theirs = subprocess.run([PROGRAM, *words], capture_output=True, text=True, env={**os.environ, "TILECAST_PYTHON": sys.executable})
            self.assertEqual(theirs.stdout, ours.stdout)
            self.assertEqual((theirs.returncode, theirs.stderr.splitlines()[-1:]), (ours.returncode, ours.stderr.splitlines()[-1:]))
            theirs = subprocess.run([PROGRAM, *words], capture_output=True, text=True, env={**os.environ, "TILECAST_PYTHON": "/bin/false"})
            self.assertEqual(theirs.returncode, 1)
            self.assertIn("pip install 'tilecast[explore]'", theirs.stderr)

    def test_train(self):
        with tempfile.TemporaryDirectory() as folder:
            rows, ours, theirs = (pathlib.Path(folder) / name for name in ("few.csv", "ours", "theirs"))
            rows.write_text(FEW)
            try:
                self.run_command("train", "--data", str(rows), "-o", str(theirs), "--trees", "2", "--intervals", "held-out")
            except subprocess.CalledProcessError as error:
                self.skipTest(error.stderr)  # without XGBoost
            result = tilecast.train(data=[rows], output_file=ours, trees=2, intervals="held-out")
            self.assertIsInstance(result.held_out, list)
            for name in ("kernels.weights", "errors.json"):
                self.assertEqual((ours / name).read_bytes(), (theirs / name).read_bytes(), name)

    def test_every_command_is_asked(self):
        listed = re.findall(r"^  ([a-z]+) ", self.run_command("--help").split("Commands:")[1].split("Options:")[0], re.MULTILINE)
        source = pathlib.Path(__file__).read_text()
        for command in listed:
            if command not in ("completion", "help", "mcp", "serve"):
                self.assertIn(f'"{command}"', source)

    def test_every_keyword_is_an_option(self):
        """Help of the command line names each keyword of Python's functions."""
        asked = {"compare_gpus": "forecast", "memory_timeline": "forecast", "step_operations": "forecast", "occupancy": "forecast",
                 "suggest_kernels": "calibrate", "calibrate_pairs": "calibrate", "trace_timeline": "trace"}
        for function in ("forecast", "compare", "compare_gpus", "memory_timeline", "kernel", "collective", "plan", "shard", "evaluate", "train",
                         "calibrate", "suggest_kernels", "calibrate_pairs", "tune", "sweep", "share", "trace", "trace_timeline", "allocate"):
            text = self.run_command(asked.get(function, function), "--help-all").lower()
            for option in tilecast.options(function):
                name = option.name.replace("_", "-")
                self.assertTrue(f"--{name} " in text or f"--{name}\n" in text or f"  {name}" in text, (function, name))


class Errors(unittest.TestCase):
    def test_what_is_missing(self):
        for call, message in ((lambda: tilecast.plan("gpt2_med", batch=8), "`cluster`, `gpu` or `gpus` is missing"),
                              (lambda: tilecast.collective("all_reduce", ranks=8, bytes=8), "`cluster` is missing"),
                              (lambda: tilecast.tune(gpu="MI100"), "a problem, a model or `from_log` is missing")):
            with self.assertRaisesRegex(tilecast.InputError, re.escape(message)):
                call()

    def test_messages_name_keywords(self):
        with self.assertRaisesRegex(tilecast.InputError, "`micro_batch_size`: expected a whole number"):
            tilecast.plan("gpt2_med", cluster="dgx-a100", micro_batch_size="x")
        with self.assertRaisesRegex(tilecast.InputError, "`tpot_s` applies to serving; it needs `prompt`"):
            tilecast.plan("gpt2_med", cluster="dgx-a100", tpot_s=0.1)
        with self.assertRaisesRegex(TypeError, r"plan\(\) got an unexpected keyword argument 'batc'; did you mean 'batch'"):
            tilecast.plan("gpt2_med", batc=8)
        with self.assertRaisesRegex(TypeError, r"shard\(\) got multiple values for argument 'tables'"):
            tilecast.shard("dlrm_mlperf", tables="x", cluster="dgx-a100")


if __name__ == "__main__":
    unittest.main()
