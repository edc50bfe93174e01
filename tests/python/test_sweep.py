"""tilecast._core.SweepSpec: the points of a sweep for engines."""
import pickle
import tempfile
import unittest

import tilecast
from support import needs
from tilecast._core import SweepSpec

SPEC = {"model": ["gpt2_large"], "gpu": ["H100", "A100"], "batch": [1, 2, 4], "kv_dtype": ["bf16"],
        "draw": {"count": 5, "seed": 3, "columns": {"parameters": {"memory_bytes_per_s": {"from": 1e12, "to": 4e12}}}},
        "where": "batch < 4"}


class Points(unittest.TestCase):
    def test_columns_say_type_and_unit(self):
        spec = SweepSpec(SPEC)
        self.assertEqual((spec.size, len(spec)), (30, 30))
        self.assertEqual([(c.name, c.type, c.unit) for c in spec.columns],
                         [("model", "text", ""), ("gpu", "text", ""), ("batch", "integer", "sequences"), ("kv_dtype", "text", ""),
                          ("parameters.memory_bytes_per_s", "number", "bytes/s")])

    def test_parts_are_those_of_the_whole(self):
        spec = SweepSpec(SPEC)
        whole = spec.rows()
        self.assertEqual((len(whole), whole.rejected), (20, 10))
        parts = [spec.rows(first, 7) for first in range(0, 40, 7)]
        self.assertEqual(sum((part.indices for part in parts), []), whole.indices)
        self.assertEqual(whole.indices, [i for i in range(30) if i // 5 % 3 < 2])

    def test_a_copy_and_a_text_have_the_same_points(self):
        spec = SweepSpec(SPEC)
        self.assertEqual(pickle.loads(pickle.dumps(spec)).rows().indices, spec.rows().indices)
        self.assertEqual(SweepSpec(spec.text).size, 30)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(spec.text)
            file.flush()
            self.assertEqual(SweepSpec(file.name).size, 30)

    @needs("pyarrow")
    def test_rows_are_a_table_of_forecast_many(self):
        import pyarrow
        table = pyarrow.table(SweepSpec(SPEC).rows(2, 6))
        self.assertEqual([str(field.type) for field in table.schema], ["string", "string", "int64", "string", "double"])
        self.assertEqual(table["batch"].to_pylist(), [1, 1, 1, 2, 2, 2])
        bandwidth = table["parameters.memory_bytes_per_s"].to_pylist()
        self.assertTrue(all(1e12 <= value <= 4e12 for value in bandwidth))
        table = table.drop_columns(["kv_dtype"])
        result = tilecast.forecast_many(table)
        self.assertEqual(result["error"], [None] * 6)
        gpu = f"{table['gpu'][0].as_py()}:memory_bytes_per_s={bandwidth[0]!r}"
        self.assertEqual(result["latency_s"][0], tilecast.forecast("gpt2_large", gpu=gpu, batch=1).latency_s)

    def test_a_wrong_spec_says_where(self):
        with self.assertRaisesRegex(tilecast.Error, r"spec:1:\d+: 'batch'.*expected a whole number"):
            SweepSpec({**SPEC, "batch": ["x"]})


if __name__ == "__main__":
    unittest.main()
