"""What the kit writes, Tilecast reads: python3 measure/tests/test_round_trip.py PROGRAM

Every case of the kit's kernel families is written by the kit's own table writer with a known time;
`tilecast evaluate` must list each of them, under its operator, or say why not.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from kit.families import families  # noqa: E402
from kit.table import Table  # noqa: E402

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
KERNELS = ("matmul", "attention", "convolution", "pointwise", "rows", "movement")
CONVOLUTIONS = {"conv_forward": "conv2d", "conv_backward_data": "conv2d_input_backward",
                "conv_backward_weight": "conv2d_weight_backward"}
NOT_FORECAST = ()  # operators of the kit that Tilecast does not know


def operator(case):
    """What a case is to be evaluated as, found without the reader's tables."""
    op = CONVOLUTIONS.get(case["op"], case["op"])
    if op == "attention":
        if case["queries"] == 1 and case["keys"] > 1:
            op = "cached_attention"
        elif not case["causal"]:
            op = "attention (encoder)"
    return op + (" (warm L2)" if case.get("l2") == "warm" else "")


def dtype(case):
    """A cast counts under the type that it writes: the kit's go from fp32 to bf16 and back."""
    if case["op"] == "cast":
        return {"fp32": "bf16", "bf16": "fp32"}[case["dtype"]]
    return case["dtype"]


class RoundTrip(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, names, time_of, status="ok"):
        for family in families():
            if family.name not in names:
                continue
            table = Table(os.path.join(self.folder, "card", family.name + ".csv"), family.columns,
                          {"measured_by": "Tilecast measurement kit, commit of this test", "gpu_name": "H100",
                           "date": "today"})
            for case in family.cases:
                row = {"gpu": "nvidia-h100-sxm5-80gb", **case, "status": status}
                if status == "ok":
                    row["latency_s"] = f"{time_of(case):.9g}"
                table.write(row)
            table.close()

    def evaluate(self):
        found = subprocess.run([PROGRAM, "evaluate", self.folder, "--format", "json"],
                               capture_output=True, text=True, timeout=300)
        self.assertEqual(found.returncode, 0, found.stderr)
        return json.loads(found.stdout)

    def test_every_kernel_is_evaluated_or_listed(self):
        self.write(KERNELS, lambda case: 1e-3)
        result = self.evaluate()
        expected, dropped = collections.Counter(), collections.Counter()
        for family in families():
            for case in family.cases if family.name in KERNELS else ():
                if case["op"] in NOT_FORECAST:
                    dropped[case["op"]] += 1
                else:
                    expected[operator(case), dtype(case)] += 1
        rows = {(row["op"], row["dtype"]): row["count"] for row in result["rows"]}
        self.assertEqual(rows, dict(expected))
        listed = dict(re.search(r"operator '(\w+)' is not forecast \((\d+) rows\)", line).groups()
                      for line in result["unmatched"])
        self.assertEqual({op: int(count) for op, count in listed.items()}, dict(dropped))

    def test_times_are_those_of_the_file(self):
        names = ("attention", "convolution")
        self.write(names, lambda case: 1e-3)
        before = {(row["op"], row["dtype"]): row["bias_ratio"] for row in self.evaluate()["rows"]}
        for name in names:
            os.remove(os.path.join(self.folder, "card", name + ".csv"))
        self.write(names, lambda case: 4e-3)
        for row in self.evaluate()["rows"]:
            self.assertAlmostEqual(row["bias_ratio"] * 4 / before[row["op"], row["dtype"]], 1, places=6)

    def test_rows_without_a_time_are_counted(self):
        self.write(("attention",), None, status="out_of_memory")
        result = self.evaluate()
        self.assertEqual(result["rows"], [])
        count = len(next(f for f in families() if f.name == "attention").cases)
        self.assertEqual(len(result["unmatched"]), 1)
        self.assertIn(f"no time was measured (out_of_memory) ({count} rows)", result["unmatched"][0])

    def test_the_other_families_are_listed_with_the_reason(self):
        self.write(("device", "model_kernels", "pairs"), lambda case: 1e-3)
        result = self.evaluate()
        self.assertEqual(result["rows"], [])
        self.assertEqual(len(result["unmatched"]), 3)
        for line in result["unmatched"]:
            self.assertNotIn("no known layout", line)


if __name__ == "__main__":
    unittest.main()
