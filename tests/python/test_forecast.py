"""tilecast.forecast: the numbers of the command line, with types."""
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import tilecast
from support import command_line, needs

SMALL = {"model_type": "gpt2", "vocab_size": 1000, "n_positions": 128, "n_embd": 64, "n_layer": 2, "n_head": 4}


class CommandLine(unittest.TestCase):
    """A forecast of Python and one of the command line are the same."""

    def check(self, model, gpu, **options):
        words = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
        expected = command_line("forecast", model, "--gpu", gpu, *words)
        self.assertEqual(tilecast.forecast(model, gpu, **options).to_dict(), expected)

    def test_inference(self):
        self.check("gpt2_large", "H100", batch=4, seq=512)

    def test_training(self):
        self.check("bert_large", "A100", mode="training", optimizer="adamw", optimizer_impl="fused", dtype="amp")

    def test_a_model_that_does_not_fit(self):
        self.check("gpt3_27", "T4", mode="training", batch=16)

    def test_text_generation(self):
        self.check("llama-3-8b", "H100", prompt=1024, output=64, batch=8, cuda_graphs="off")

    def test_server(self):
        self.check("llama-3-8b", "L40S", prompt="200:300", output=32, schedule="continuous", concurrency=8, requests=40)

    def test_accelerator(self):
        self.check("resnet-50", "gemmini-16", batch=2)
        self.check("mobilenet_v2", "gemmini:DIM=8")

    def test_catalogs(self):
        self.assertEqual([gpu.id for gpu in tilecast.gpus()], [gpu["id"] for gpu in command_line("gpus")])
        self.assertEqual([model.name for model in tilecast.models()], [model["name"] for model in command_line("models")])
        self.assertEqual([op.name for op in tilecast.ops()], [op["name"] for op in command_line("ops")])

    def test_kernel(self):
        expected = command_line("kernel", "linear", "--gpu", "A100", "-m", "4096", "-n", "5120", "-k", "1280")["kernels"]
        rows = tilecast.kernel("linear", "A100", m=4096, n=5120, k=1280).kernels
        self.assertEqual([row.latency_s for row in rows], [kernel["latency_s"] for kernel in expected])
        self.assertEqual(rows[0].shape, expected[0]["shape"])

    def test_evaluate(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            path.write_text("gpu,op,dtype,m,n,latency_s\nH100,softmax,fp32,1024,1024,0.000008\n")
            expected = command_line("evaluate", str(path))
            evaluation = tilecast.evaluate(path)
        self.assertEqual([row.mape_percent for row in evaluation.rows], [row["mape_percent"] for row in expected["rows"]])
        self.assertEqual(json.loads(evaluation.to_json()), expected)


class Accelerators(unittest.TestCase):
    def test_layers_and_cycles(self):
        forecast = tilecast.forecast("resnet-50", gpu="gemmini-16")
        self.assertAlmostEqual(sum(layer.cycles * layer.count for layer in forecast.layers), forecast.cycles, delta=1)
        self.assertIsNone(forecast.energy_j)
        self.assertEqual(forecast.latency_s, forecast.cycles / forecast.clock_hz)

    def test_parameters_and_mappings(self):
        wide = tilecast.forecast("resnet-50", gpu="gemmini", parameters={"DIM": 32})
        self.assertEqual(wide.pe_count, 1024)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mappings.json"
            path.write_text(wide.mappings())
            again = tilecast.forecast("resnet-50", gpu="gemmini", parameters={"DIM": 32}, mapping=path)
        self.assertEqual(again.to_dict(), wide.to_dict())

    def test_options_of_gpus_are_refused(self):
        with self.assertRaisesRegex(tilecast.UnsupportedError, "no effect on an accelerator"):
            tilecast.forecast("resnet-50", gpu="gemmini-16", dtype="bf16")


class Results(unittest.TestCase):
    def test_attributes_are_those_of_the_dict(self):
        forecast = tilecast.forecast("gpt2_large", gpu="H100", mode="training", batch=4)
        values = forecast.to_dict()
        for name in ("model", "gpu", "mode", "batch", "seq", "dtype", "dtype_source", "latency_s", "latency_low_s", "latency_high_s",
                     "host_wait_s", "forward_s", "backward_s", "optimizer_s", "flops", "bytes", "parameters", "utilization_ratio",
                     "warnings", "warning_codes"):
            self.assertEqual(getattr(forecast, name), values[name], name)
        for name, value in values["memory"].items():
            if name not in ("at_peak", "remedies"):
                self.assertEqual(getattr(forecast.memory, name), value, name)
        for name, value in values["memory"]["at_peak"].items():
            self.assertEqual(getattr(forecast.memory.at_peak, name), value, name)
        self.assertEqual(float(forecast.latency), forecast.latency_s)
        self.assertLess(forecast.latency.low_s, forecast.latency.high_s)

    def test_kernels_are_those_of_the_dict(self):
        forecast = tilecast.forecast("gpt2_large", gpu="H100", mode="training", batch=4)
        kernels = forecast.to_dict()["kernels"]
        self.assertEqual(len(forecast.kernels), len(kernels))
        for row, kernel in zip(forecast.kernels, kernels):
            for name, value in kernel.items():
                found = getattr(row, name)
                self.assertEqual(list(found) if isinstance(found, tuple) else found, value, name)

    def test_rows_outlive_the_forecast(self):
        rows = tilecast.forecast("gpt2_large", gpu="H100").kernels
        self.assertTrue(all(row.name for row in rows))

    @needs("pandas")
    def test_kernels_are_a_data_frame(self):
        import pandas
        forecast = tilecast.forecast("gpt2_large", gpu="H100")
        frame = forecast.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame["name"]), [row.name for row in forecast.kernels])
        self.assertAlmostEqual((frame["latency_s"] * frame["count"]).sum() / (forecast.latency_s - forecast.host_wait_s), 1, places=6)

    def test_text_generation(self):
        forecast = tilecast.forecast("llama-3-8b", gpu="H100", prompt=1024, output=64, batch=8)
        values = forecast.to_dict()
        self.assertEqual(forecast.ttft.seconds, values["time_to_first_token"]["seconds"])
        self.assertEqual(forecast.tpot.low_s, values["time_per_output_token"]["low_s"])
        self.assertEqual(forecast.memory.cache_bytes, values["memory"]["cache_bytes"])
        self.assertEqual(forecast.decode.latency.seconds, values["decode"]["latency_s"])
        self.assertEqual({row.phase for row in forecast.kernels}, {"prefill", "decode"})
        self.assertIsNone(forecast.serving)

    def test_server(self):
        forecast = tilecast.forecast("llama-3-8b", gpu="L40S", prompt=200, output=32, schedule="continuous", rate=2, requests=40)
        self.assertEqual(forecast.serving.all.requests, 40)
        self.assertGreater(forecast.serving.all.ttft.p99.seconds, forecast.serving.all.ttft.median.seconds)

    def test_views(self):
        for options in ({"mode": "training"}, {"prompt": 64, "output": 8}):
            forecast = tilecast.forecast("llama-3.2-1b", gpu="H100", **options)
            self.assertIn("latency", forecast._repr_html_())
            self.assertIn("</table>", forecast._repr_html_())
            self.assertIn("llama-3.2-1b on NVIDIA H100", str(forecast))
            self.assertNotEqual(str(forecast), forecast.table(width=160, rows=3))

    def test_names_in_html_are_escaped(self):
        forecast = tilecast.forecast({**SMALL, "_name_or_path": "<script>"}, gpu="H100")
        self.assertNotIn("<script>", forecast._repr_html_())

    @needs("matplotlib")
    def test_plot(self):
        import matplotlib
        matplotlib.use("Agg")
        for options in ({}, {"prompt": 64, "output": 8}):
            figure = tilecast.forecast("llama-3.2-1b", gpu="H100", **options).plot()
            self.assertEqual(len(figure.axes), 2)
            self.assertTrue(all(axes.patches for axes in figure.axes))


class Options(unittest.TestCase):
    def test_every_option_of_a_pass_takes_its_default(self):
        options = {option.name: option.default for option in tilecast.options() if "pass" in option.kinds and option.default}
        self.assertIn("optimizer_impl", options)
        expected = tilecast.forecast("gpt2_large", gpu="H100")
        self.assertEqual(tilecast.forecast("gpt2_large", gpu="H100", **options).latency_s, expected.latency_s)

    def test_none_is_the_default(self):
        expected = tilecast.forecast("gpt2_large", gpu="H100")
        self.assertEqual(tilecast.forecast("gpt2_large", gpu="H100", batch=None, prompt=None).latency_s, expected.latency_s)

    def test_values_of_python(self):
        with_words = tilecast.forecast("llama-3-8b", gpu="H100", prompt="64", output="8", cuda_graphs="off")
        with_values = tilecast.forecast("llama-3-8b", gpu="H100", prompt=64, output=8.0, cuda_graphs=False)
        self.assertEqual(with_words.to_dict(), with_values.to_dict())
        training = {"mode": "training", "lora_rank": 4}
        with_words = tilecast.forecast("llama-3.2-1b", gpu="H100", lora_targets="q_proj,v_proj", **training)
        with_values = tilecast.forecast("llama-3.2-1b", gpu="H100", lora_targets=["q_proj", "v_proj"], **training)
        self.assertEqual(with_words.to_dict(), with_values.to_dict())

    def test_an_unknown_keyword_names_the_nearest(self):
        with self.assertRaisesRegex(TypeError, r"forecast\(\) got an unexpected keyword argument 'bacth'; did you mean 'batch'"):
            tilecast.forecast("gpt2_large", gpu="H100", bacth=4)

    def test_messages_name_keywords(self):
        with self.assertRaisesRegex(tilecast.InputError, "`optimizer_impl` needs `mode` training"):
            tilecast.forecast("gpt2_large", gpu="H100", optimizer_impl="foreach")
        with self.assertRaisesRegex(tilecast.InputError, "`batch`: expected a whole number from 1 to 2147483648, found '-1'"):
            tilecast.forecast("gpt2_large", gpu="H100", batch=-1)

    def test_other_weights(self):
        with self.assertRaises(tilecast.Error):
            tilecast.forecast("gpt2_large", gpu="H100", weights="/nonexistent")
        with self.assertRaises(tilecast.NotFoundError):
            tilecast.Forecaster(calibration="/nonexistent")


class Errors(unittest.TestCase):
    def test_kinds(self):
        with self.assertRaisesRegex(tilecast.NotFoundError, "did you mean"):
            tilecast.forecast("gpt2_larg", gpu="H100")
        with self.assertRaisesRegex(LookupError, "unknown GPU"):
            tilecast.forecast("gpt2_large", gpu="H1000")
        with self.assertRaises(tilecast.UnsupportedError):
            tilecast.forecast({"model_type": "unknown"}, gpu="H100")
        with self.assertRaises(ValueError):
            tilecast.forecast({"model_type": "gpt2", "n_embd": "many"}, gpu="H100")
        for error in (tilecast.InputError, tilecast.NotFoundError, tilecast.UnsupportedError, tilecast.IoError, tilecast.InternalError):
            self.assertTrue(issubclass(error, tilecast.Error))

    def test_broken_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            for content in (b"", b"{", b'{"model_type": 3}', bytes(range(256)), b"[" * 100000):
                path.write_bytes(content)
                with self.assertRaises(tilecast.Error):
                    tilecast.forecast(path, gpu="H100")

    def test_what_is_no_model(self):
        with self.assertRaisesRegex(TypeError, "found int"):
            tilecast.forecast(3, gpu="H100")
        with self.assertRaisesRegex(tilecast.InputError, "`inputs` are the example inputs of a torch.nn.Module"):
            tilecast.forecast("gpt2_large", gpu="H100", inputs=(1,))
        with self.assertRaisesRegex(tilecast.InputError, "`gpu` is missing"):
            tilecast.forecast("gpt2_large")


class Models(unittest.TestCase):
    def test_ways_to_give_one(self):
        expected = tilecast.forecast(SMALL, gpu="H100").latency_s
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(SMALL))
            handle = tilecast.load_model(path)
            self.assertEqual(handle.name, pathlib.Path(folder).name)
            for model in (path, str(path), folder, handle):
                self.assertEqual(tilecast.forecast(model, gpu="H100").latency_s, expected)
            self.assertEqual(tilecast.load_model(tilecast.models()[0]).name, tilecast.models()[0].name)

    def test_a_config_is_named_by_its_origin(self):
        self.assertEqual(tilecast.load_model({**SMALL, "_name_or_path": "someone/gpt-2.5-small"}).name, "gpt-2.5-small")
        self.assertEqual(tilecast.load_model(SMALL).name, "gpt2")

    def test_a_changed_file_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            flops = []
            for layers in (2, 4):
                path.write_text(json.dumps({**SMALL, "n_layer": layers}))
                flops.append(tilecast.forecast(path, gpu="H100").flops)
        self.assertGreater(flops[1], flops[0])

    def test_a_file_hides_the_bundled_model_of_its_name(self):
        expected = tilecast.forecast(SMALL, gpu="H100").flops
        bundled = tilecast.forecast("gpt2_large", gpu="H100").flops
        program = ("import tilecast; first = tilecast.forecast('gpt2_large', gpu='H100').flops\n"
                   f"open('gpt2_large', 'w').write('''{json.dumps(SMALL)}''')\n"
                   "print(first, tilecast.forecast('gpt2_large', gpu='H100').flops)")
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True, text=True)
        self.assertEqual(result.stdout.split(), [str(bundled), str(expected)])

    def test_ways_to_give_a_gpu(self):
        expected = tilecast.forecast(SMALL, gpu="H100").latency_s
        entry = next(gpu for gpu in tilecast.gpus() if "h100-sxm5" in gpu.id)
        file = pathlib.Path(__file__).resolve().parents[2] / "data/devices" / (entry.id + ".json")
        for gpu in (entry, entry.id, tilecast.load_gpu("H100"), file, json.loads(file.read_text())):
            self.assertEqual(tilecast.forecast(SMALL, gpu=gpu).latency_s, expected)

    @needs("transformers")
    def test_a_config_of_transformers(self):
        from transformers import GPT2Config
        config = GPT2Config(**{key: value for key, value in SMALL.items() if key != "model_type"})
        self.assertEqual(tilecast.forecast(config, gpu="H100").flops, tilecast.forecast(SMALL, gpu="H100").flops)

    @needs("torch")
    def test_a_module_needs_inputs(self):
        import torch
        with self.assertRaisesRegex(tilecast.InputError, "a torch.nn.Module needs example inputs"):
            tilecast.forecast(torch.nn.Linear(8, 8), gpu="H100")

    @needs("torch", "tilecast.torch")
    def test_a_module(self):
        import torch
        module = torch.nn.Linear(256, 512)
        forecast = tilecast.forecast(module, gpu="H100", inputs=torch.zeros(64, 256))
        self.assertEqual((forecast.model, forecast.parameters), ("Linear", 256 * 512 + 512))
        product = [row for row in forecast.kernels if row.flops >= 2 * 64 * 256 * 512]
        self.assertEqual(len(product), 1)
        training = tilecast.forecast(module, gpu="H100", inputs=(torch.zeros(64, 256),), mode="training")
        self.assertGreater(training.flops, forecast.flops)


class Process(unittest.TestCase):
    def test_the_import_is_light(self):
        program = ("import sys, time; before = time.process_time(); import tilecast; after = time.process_time()\n"
                   "heavy = {'numpy', 'pandas', 'torch', 'pyarrow', 'matplotlib', 'transformers'} & set(sys.modules)\n"
                   "print(after - before, *heavy)")
        times = []
        for _ in range(5):
            words = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
            self.assertEqual(words[1:], [])
            times.append(float(words[0]))
        self.assertLessEqual(min(times), 0.050)  # seconds of CPU time: the acceptance of the package

    def test_other_threads_run_during_forecasts(self):
        rows = {"model": "gpt2_large", "gpu": "H100", "batch": list(range(1, 2001))}
        thread = threading.Thread(target=tilecast.forecast_many, args=(rows,))
        thread.start()
        steps = 0
        while thread.is_alive():
            steps += 1
            thread.join(0.001)
        self.assertGreater(steps, 5)

    def test_threads_get_the_same_numbers(self):
        expected = tilecast.forecast("bert_large", gpu="T4", batch=2).latency_s
        found = []
        threads = [threading.Thread(target=lambda: found.append(tilecast.forecast("bert_large", gpu="T4", batch=2).latency_s))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 8)


if __name__ == "__main__":
    unittest.main()
