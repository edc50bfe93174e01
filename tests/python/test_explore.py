"""tilecast.explore: designs under limits."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tilecast
from support import needs

SPEC = {
    "device": "H100",
    "parameters": {"sm_count": {"from": 64, "to": 208, "step": 4}, "stacks": {"from": 3, "to": 8, "step": 1, "sets": False},
                   "l2_mib": {"choices": [32, 64, 128], "sets": False}},
    "numbers": {"memory_bytes_per_s": "stacks * 0.8e12", "memory_bytes": "stacks * 24e9", "l2_bytes": "l2_mib * 1048576"},
    "definitions": {"area_mm2": "sm_count * 3.6 + l2_mib * 1.2 + stacks * 20 + 90"},
    "limits": ["area_mm2 <= 814 and chat_tpot_s < 0.02"],
    "forecasts": [{"name": "chat", "weight": 3, "model": "llama-3-8b", "batch": 4, "prompt": 256, "output": 16},
                  {"model": "gpt2", "mode": "training", "batch": 2}],
    "objectives": ["time", "area_mm2"],
}


def changed(**changes) -> dict:
    return {**copy.deepcopy(SPEC), **changes}


@needs("pyarrow", "optuna")
class Explore(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        cls.found = tilecast.explore(SPEC, designs=40, batch=20, seed=3)

    def test_designs_are_forecasts_of_their_device(self):
        for row in self.found.front.to_pylist()[:3]:
            self.assertEqual(row["device"], f"H100:sm_count={row['sm_count']},memory_bytes_per_s={row['stacks'] * 8 * 10**11},"
                                            f"memory_bytes={row['stacks'] * 24 * 10**9},l2_bytes={row['l2_mib'] * 2**20}")
            chat = tilecast.forecast("llama-3-8b", row["device"], batch=4, prompt=256, output=16)
            train = tilecast.forecast("gpt2", row["device"], mode="training", batch=2)
            self.assertEqual(row["time"], 3 * chat.latency_s + train.latency_s)
            self.assertEqual((row["chat_tpot_s"], row["f2_latency_s"]), (chat.tpot.seconds, train.latency_s))

    def test_the_front_meets_limits_and_nothing_beats_it(self):
        designs = self.found.designs.to_pylist()
        self.assertGreater(sum(not row["feasible"] for row in designs), 0)
        for row in designs:
            met = row["area_mm2"] <= 814 and (row["chat_tpot_s"] is None or row["chat_tpot_s"] <= 0.02)
            self.assertEqual(row["feasible"], met and row["time"] is not None, row)
            self.assertEqual(row["feasible"], row["error"] is None)
        feasible = [(row["time"], row["area_mm2"]) for row in designs if row["feasible"]]
        for row in designs:
            point = (row["time"], row["area_mm2"])
            beaten = any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in feasible) if row["feasible"] else True
            self.assertEqual(row["on_front"], not beaten)
        times = self.found.front["time"].to_pylist()
        self.assertEqual(times, sorted(times))

    def test_designs_over_a_limit_of_parameters_are_not_forecast(self):
        over = [row for row in self.found.designs.to_pylist() if row["area_mm2"] > 814]
        self.assertTrue(over)
        self.assertEqual({(row["time"], row["error"]) for row in over}, {(None, "misses area_mm2 <= 814")})

    def test_a_seed_gives_the_same_designs_and_a_state_continues(self):
        with tempfile.TemporaryDirectory() as folder:
            state = pathlib.Path(folder) / "state"
            with self.assertRaises(KeyboardInterrupt):
                tilecast.explore(SPEC, designs=40, batch=20, seed=3, state=state, show=self.interrupt)
            before = (state / "batch-00000" / "part-00000.parquet").stat().st_mtime_ns
            self.assertEqual(tilecast.explore(SPEC, designs=40, batch=20, seed=3, state=state).designs, self.found.designs)
            self.assertEqual((state / "batch-00000" / "part-00000.parquet").stat().st_mtime_ns, before)
            with self.assertRaisesRegex(tilecast.InputError, "holds another search"):
                tilecast.explore(SPEC, designs=40, batch=20, seed=4, state=state)

    @staticmethod
    def interrupt(asked, designs):
        raise KeyboardInterrupt

    def test_it_finds_the_best(self):
        """Time falls with bandwidth, so the best design has the most that the limit allows."""
        spec = changed(parameters={"memory_bytes_per_s": {"from": 1e12, "to": 8e12}}, numbers={}, definitions={"watts": "memory_bytes_per_s / 1e10"},
                       limits=["watts <= 500"], objectives=["time"])
        found = tilecast.explore(spec, designs=60, batch=10, seed=1)
        self.assertEqual(found.front.num_rows, 1)
        self.assertGreater(found.front["memory_bytes_per_s"][0].as_py(), 4.8e12)
        self.assertLessEqual(found.front["watts"][0].as_py(), 500)
        slow = tilecast.explore(spec, objectives="max:time", designs=40, batch=10, seed=1)
        self.assertLess(slow.front["memory_bytes_per_s"][0].as_py(), 1.3e12)

    def test_an_accelerator(self):
        spec = {"device": "gemmini", "parameters": {"DIM": [4, 8, 16]}, "forecasts": [{"model": "resnet-50"}], "objectives": ["time", "DIM"]}
        found = tilecast.explore(spec, designs=12, batch=6, sampler="random")
        expected = {dim: tilecast.forecast("resnet-50", f"gemmini:DIM={dim}").latency_s for dim in (4, 8, 16)}
        self.assertEqual({row["DIM"]: row["time"] for row in found.designs.to_pylist()}, expected)

    def test_what_does_not_fit_or_fails_is_not_chosen(self):
        spec = changed(forecasts=[{"model": "llama-3-70b", "prompt": 64, "output": 8}], limits=[], objectives=["time"])
        found = tilecast.explore(spec, designs=20, batch=20, sampler="random")
        self.assertIn("does not fit into the memory", found.designs["error"].to_pylist())
        self.assertTrue(all(row["stacks"] * 24e9 > 141e9 for row in found.front.to_pylist()))
        spec = changed(forecasts=[{"model": "nope"}], limits=[])
        self.assertIn("f1: nope: no such file", tilecast.explore(spec, designs=2, batch=2).designs["error"][0].as_py())

    def test_options_that_are_expressions(self):
        spec = changed(forecasts=[{"model": "gpt2", "price_per_gpu_hour": "= area_mm2 / 100"}], limits=[], objectives=["cost"])
        row = tilecast.explore(spec, designs=3, batch=3).designs.to_pylist()[0]
        self.assertAlmostEqual(row["cost"], row["time"] / 3600 * row["area_mm2"] / 100, delta=1e-9 * row["cost"])

    def test_wrong_specs(self):
        for spec, message in (
                (changed(objective="time"), "the spec: unknown key 'objective'; known: device, parameters, numbers, definitions"),
                (changed(device=""), "the spec: 'device' is missing: expected a name"),
                (changed(parameters={"sm count": [1]}), "parameters: 'sm count': expected a name of letters"),
                (changed(parameters={"a": {"from": 2, "to": 1}}), "parameters: 'a': 'from' 2 is more than 'to' 1"),
                (changed(parameters={"a": {"from": 2}}), "parameters: 'a': 'to': expected a number, found null"),
                (changed(parameters={"a": {"from": 0, "to": 1, "log": True}}), "'log' needs a range above 0"),
                (changed(parameters={"a": {"form": 0, "to": 1}}), "parameters: 'a': unknown key 'form'"),
                (changed(limits=["area_mm2"]), "limits: 'area_mm2': expected EXPRESSION <= EXPRESSION"),
                (changed(limits=["area <= 3"]), "limits.*area"),
                (changed(definitions={"area_mm2": "sm_count * "}), "definitions: 'area_mm2'"),
                (changed(objectives=["tim"]), "objectives.*tim"),
                (changed(forecasts=[{"batch": 1}]), r"forecasts\[0\]: expected an object with a 'model'"),
                (changed(forecasts=[{"model": "gpt2", "gpu": "H100"}]), r"forecasts\[0\]: 'gpu' is the device that is sought"),
                (changed(forecasts=[{"model": "gpt2", "weight": -1}]), "'weight': expected a number of 0 or more, found -1"),
                (changed(forecasts=[{"model": "gpt2", "bacth": 1}]), "column 'bacth' is no option")):
            with self.subTest(message), self.assertRaisesRegex(tilecast.InputError, message):
                tilecast.explore(spec, designs=4, batch=4)
        with self.assertRaisesRegex(tilecast.NotFoundError, "nope.json: No such file"):
            tilecast.explore("nope.json")
        with self.assertRaisesRegex(tilecast.InputError, "`state` is missing"):
            tilecast.explore(SPEC, on="ray")
        with self.assertRaisesRegex(tilecast.InputError, "`sampler`: expected one of nsga2, tpe, random"):
            tilecast.explore(SPEC, sampler="grid")

    def test_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            spec, out = pathlib.Path(folder) / "gpu.json", pathlib.Path(folder) / "designs.csv"
            spec.write_text(json.dumps(SPEC))
            command = [sys.executable, "-m", "tilecast", "explore", str(spec), "--designs", "40", "--batch", "20", "--seed", "3", "--quiet"]
            result = subprocess.run([*command, "--format", "json", "-o", str(out)], capture_output=True, text=True)
            self.assertEqual(result.stderr, "")
            self.assertEqual(json.loads(result.stdout), self.found.front.to_pylist())
            self.assertEqual(len(out.read_text().splitlines()), 1 + self.found.designs.num_rows)
            spec.write_text(json.dumps(changed(limits=["sm_count <= 1"])))
            result = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(result.returncode, 1)
            self.assertIn("designs meets all limits; the last one misses sm_count <= 1", result.stderr)


if __name__ == "__main__":
    unittest.main()
