"""tilecast.forecast_many: tables in and out."""
import math
import unittest

import tilecast
from support import needs

ROWS = {"model": ["gpt2_large", "bert_large", "gpt2_large", "llama-3-8b"], "gpu": ["H100", "T4", "H100", "A100"],
        "batch": [4, None, 4, 2], "optimizer_impl": [None] * 4, "prompt": [None, None, None, 512]}


class Tables(unittest.TestCase):
    def test_equals_single_forecasts(self):
        result = tilecast.forecast_many(ROWS)
        self.assertEqual(len(result), 4)
        self.assertEqual(repr(result), "ForecastTable(4 rows, 3 distinct)")
        single = tilecast.forecast("gpt2_large", gpu="H100", batch=4)
        self.assertEqual(result["latency_s"][2], single.latency_s)
        self.assertEqual(result["peak_bytes"][0], single.memory.peak_bytes)
        self.assertEqual(result["ttft_s"][:3], [None] * 3)
        tokens = tilecast.forecast("llama-3-8b", gpu="A100", batch=2, prompt=512)
        self.assertEqual((result["ttft_s"][3], result["tpot_s"][3]), (tokens.ttft.seconds, tokens.tpot.seconds))
        self.assertEqual(result["error"], [None] * 4)
        self.assertEqual(list(result.to_dict()), result.column_names)

    def test_one_value_for_all_rows(self):
        result = tilecast.forecast_many({"model": "gpt2_large", "batch": [1, 2, 4]}, gpu="H100", mode="training")
        expected = [tilecast.forecast("gpt2_large", gpu="H100", mode="training", batch=batch).latency_s for batch in (1, 2, 4)]
        self.assertEqual(result["latency_s"], expected)
        self.assertEqual(len(tilecast.forecast_many({"model": "gpt2_large", "gpu": "H100"})), 1)
        self.assertEqual(len(tilecast.forecast_many({"model": [], "gpu": []})), 0)

    def test_any_number_of_threads_gives_the_same(self):
        rows = {"model": ["gpt2_large", "bert_large", "opt_13"] * 20, "gpu": "V100", "batch": list(range(1, 61))}
        self.assertEqual(tilecast.forecast_many(rows, threads=1).to_dict(), tilecast.forecast_many(rows, threads=7).to_dict())

    def test_a_wrong_row_does_not_affect_others(self):
        result = tilecast.forecast_many({"model": ["gpt2_large", "gpt2_larg", "gpt2_large", None], "gpu": "H100",
                                         "batch": [1, 1, "many", 1]})
        self.assertIsNone(result["error"][0])
        self.assertIn("did you mean 'gpt2_large'", result["error"][1])
        self.assertIn("column `batch`: expected a whole number", result["error"][2])
        self.assertEqual(result["error"][3], "column `model` is missing")
        self.assertEqual([value is None for value in result["latency_s"]], [False, True, True, True])

    def test_what_is_missing_is_the_default(self):
        result = tilecast.forecast_many({"model": "gpt2_large", "gpu": "H100", "batch": [None, math.nan, 1.0], "dtype": None})
        self.assertEqual(len(set(result["latency_s"])), 1)

    def test_a_config_is_a_model(self):
        config = {"model_type": "gpt2", "vocab_size": 100, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}
        result = tilecast.forecast_many({"model": [config, config], "gpu": "H100"})
        self.assertEqual(result["latency_s"], [tilecast.forecast(config, gpu="H100").latency_s] * 2)

    def test_wrong_tables(self):
        with self.assertRaisesRegex(tilecast.InputError, "column 'bacth' is no option; did you mean 'batch'"):
            tilecast.forecast_many({"model": ["gpt2_large"], "gpu": ["H100"], "bacth": [1]})
        with self.assertRaisesRegex(tilecast.InputError, "column 'gpu' has 1 rows; expected 2"):
            tilecast.forecast_many({"model": ["gpt2_large"] * 2, "gpu": ["H100"]})
        with self.assertRaisesRegex(tilecast.InputError, "column 'gpu' is there twice"):
            tilecast.forecast_many({"model": ["gpt2_large"], "gpu": ["H100"]}, gpu="T4")
        with self.assertRaisesRegex(TypeError, "expected a table"):
            tilecast.forecast_many(3)
        with self.assertRaises(KeyError):
            tilecast.forecast_many({"model": "gpt2_large", "gpu": "H100"})["latency"]


@needs("pyarrow")
class Arrow(unittest.TestCase):
    """The C data interface, against pyarrow."""

    def expected(self, batches):
        return [tilecast.forecast("gpt2_large", gpu="H100", batch=batch).latency_s for batch in batches]

    def test_types_of_columns(self):
        import pyarrow
        texts = [pyarrow.string(), pyarrow.large_string(), pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
                 pyarrow.dictionary(pyarrow.int64(), pyarrow.large_string())]
        if hasattr(pyarrow, "string_view"):
            texts.append(pyarrow.string_view())
        numbers = [pyarrow.int8(), pyarrow.uint8(), pyarrow.int16(), pyarrow.uint16(), pyarrow.int32(), pyarrow.uint32(),
                   pyarrow.int64(), pyarrow.uint64(), pyarrow.float32(), pyarrow.float64(), pyarrow.string(),
                   pyarrow.dictionary(pyarrow.int32(), pyarrow.int64())]
        names = ["gpt2_large", "a name of more than twelve bytes", "gpt2_large"]
        for text in texts:
            for number in numbers:
                batches = pyarrow.array([2, 3, None], pyarrow.int64())
                batches = batches.dictionary_encode() if pyarrow.types.is_dictionary(number) else batches.cast(number)
                model = pyarrow.array(names).dictionary_encode().cast(text) if pyarrow.types.is_dictionary(text) else \
                    pyarrow.array(names, text)
                table = pyarrow.table({"model": model, "gpu": pyarrow.array(["H100"] * 3), "batch": batches,
                                       "seq": pyarrow.nulls(3)})
                result = tilecast.forecast_many(table)
                self.assertEqual([result["latency_s"][0], result["latency_s"][2]], self.expected([2, None]), (text, number))
                self.assertIn("a name of more than twelve bytes", result["error"][1])

    def test_booleans(self):
        import pyarrow
        table = pyarrow.table({"cuda_graphs": [True, False, None]})
        result = tilecast.forecast_many(table, model="llama-3-8b", gpu="H100", prompt=64, output=8)
        expected = [tilecast.forecast("llama-3-8b", gpu="H100", prompt=64, output=8, cuda_graphs=value).latency_s
                    for value in (True, False, None)]
        self.assertEqual(result["latency_s"], expected)

    def test_chunks_slices_and_batches(self):
        import pyarrow
        table = pyarrow.table({"batch": [9, 1, 2, 3, 4, 5], "model": ["none", *["gpt2_large"] * 5]})
        chunked = pyarrow.concat_tables([table.slice(1, 2), table.slice(3, 3)])
        expected = self.expected([1, 2, 3, 4, 5])
        batch = table.slice(1).to_batches()[0]
        for source in (chunked, table.slice(1), batch, pyarrow.RecordBatchReader.from_batches(batch.schema, [batch, batch])):
            result = tilecast.forecast_many(source, gpu="H100")
            self.assertEqual(result["latency_s"][:5], expected)
        structs = pyarrow.StructArray.from_arrays([table["batch"].chunk(0), table["model"].chunk(0)], ["batch", "model"],
                                                  mask=pyarrow.array([False] * 5 + [True]))
        result = tilecast.forecast_many(structs.slice(1), gpu="H100")
        self.assertEqual(result["latency_s"], [*expected[:4], None])
        self.assertEqual(result["error"][4], "column `model` is missing")

    def test_results(self):
        import pyarrow
        result = tilecast.forecast_many({**ROWS, "model": ["gpt2_large", "wrong", "gpt2_large", "llama-3-8b"]})
        table = pyarrow.table(result)
        table.validate(full=True)
        self.assertEqual(table.to_pydict(), result.to_dict())
        self.assertEqual(table.schema.field("latency_s").type, pyarrow.float64())
        self.assertEqual(table.schema.field("peak_bytes").type, pyarrow.int64())
        self.assertEqual(table.schema.field("fits").type, pyarrow.bool_())
        self.assertEqual(table["error"].null_count, 3)
        self.assertEqual(pyarrow.table(result), table)  # a result can be exported again

    def test_long_results_come_in_batches(self):
        import pyarrow
        rows = 70_001
        result = tilecast.forecast_many({"model": "gpt2_large", "gpu": "H100", "batch": [1 + i % 3 for i in range(rows)]})
        table = pyarrow.table(result)
        table.validate(full=True)
        self.assertEqual((table.num_rows, table["latency_s"].num_chunks), (rows, 2))
        self.assertEqual(table["latency_s"].to_pylist(), result["latency_s"])

    def test_types_that_no_option_has(self):
        import pyarrow
        with self.assertRaisesRegex(tilecast.UnsupportedError, r"column 'batch': expected text, whole numbers, .* found the Arrow type"):
            tilecast.forecast_many(pyarrow.table({"batch": [[1], [2]]}))
        with self.assertRaisesRegex(tilecast.InputError, "expected a table with a column for each option"):
            tilecast.forecast_many(pyarrow.array([1, 2]))

    @needs("pandas")
    def test_pandas(self):
        import pandas
        frame = pandas.DataFrame({"model": pandas.Categorical(["gpt2_large"] * 3), "batch": [1, 2, None]})
        self.assertEqual(tilecast.forecast_many(frame, gpu="H100")["latency_s"], self.expected([1, 2, None]))


@needs("polars")
class Polars(unittest.TestCase):
    def test_both_ways(self):
        import polars
        frame = polars.DataFrame({"model": ["gpt2_large", "gpt2_large"], "batch": [1, 2]})
        result = tilecast.forecast_many(frame, gpu="H100")
        self.assertEqual(polars.DataFrame(result)["latency_s"].to_list(), result["latency_s"])


@needs("duckdb", "pyarrow")
class DuckDb(unittest.TestCase):
    def test_both_ways(self):
        import duckdb
        relation = duckdb.sql("select 'gpt2_large' as model, range + 1 as batch from range(3)")
        result = tilecast.forecast_many(relation, gpu="H100")
        fastest = duckdb.sql("select min(latency_s) from result").fetchall()[0][0]
        self.assertEqual(fastest, min(result["latency_s"]))


@needs("ray", "pyarrow")
class Ray(unittest.TestCase):
    def test_two_worker_processes(self):
        import os

        import pyarrow
        import ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
                 runtime_env={"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}})
        try:
            @ray.remote(num_cpus=1)
            class Worker:
                def run(self, table):
                    return os.getpid(), pyarrow.table(tilecast.forecast_many(table, threads=1))

            parts = [pyarrow.table({"model": ["gpt2_large"] * 50, "gpu": ["H100"] * 50, "batch": list(range(first, first + 50))})
                     for first in (1, 51)]
            workers = [Worker.remote() for _ in parts]
            results = ray.get([worker.run.remote(part) for worker, part in zip(workers, parts)])
        finally:
            ray.shutdown()
        self.assertEqual(len({pid for pid, _ in results} | {os.getpid()}), 3)
        expected = tilecast.forecast_many({"model": "gpt2_large", "gpu": "H100", "batch": list(range(1, 101))})
        self.assertEqual(pyarrow.concat_tables([table for _, table in results]).to_pydict(), expected.to_dict())


if __name__ == "__main__":
    unittest.main()
