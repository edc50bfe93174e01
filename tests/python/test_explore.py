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
            met = row["area_mm2"] <= 814 and (row["chat_tpot_s"] is None or row["chat_tpot_s"] < 0.02)
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

    def test_less_is_not_less_or_equal(self):
        for limit, met in (("sm_count < 100", False), ("100 > sm_count", False), ("sm_count <= 100", True), ("100 >= sm_count", True),
                           ("sm_count < 101", True), ("f1_fits > 1", False), ("f1_fits >= 1", True)):
            spec = {"device": "H100", "parameters": {"sm_count": [100]}, "limits": limit, "forecasts": [{"model": "gpt2"}]}
            row = tilecast.explore(spec, designs=1, batch=1).designs.to_pylist()[0]
            self.assertEqual((row["feasible"], row["error"]), (met, None if met else f"misses {limit}"))

    def test_ranges_are_those_of_sweeps(self):
        """Whole numbers are those of the device that are, and ranges of whole numbers."""
        from tilecast._explore import spec as explored
        for name, entry, whole in (("sm_count", {"from": 64, "to": 208}, True), ("memory_bytes", {"from": 40e9, "to": 200e9}, True),
                                   ("memory_bytes_per_s", {"from": 10**12, "to": 8 * 10**12}, False), ("a", {"from": 1, "to": 4}, True),
                                   ("a", {"from": 1, "to": 4, "step": 0.5}, False), ("a", {"from": 1, "to": 4.5}, False),
                                   ("sm_count", {"from": 1, "to": 4.5, "sets": False}, False), ("a", {"from": 1, "to": 4, "type": "number"}, False)):
            self.assertEqual(explored._parameter(name, entry, "x").whole, whole, (name, entry))
        spec = {"device": "H100", "parameters": {"sm_count": {"from": 64, "to": 208}, "memory_bytes": {"from": 40e9, "to": 200e9, "scale": "log2"},
                                                 "a": {"from": 0, "to": 5, "step": 2, "sets": False}}, "forecasts": [{"model": "gpt2"}]}
        designs = tilecast.explore(spec, designs=20, batch=20, sampler="random").designs.to_pylist()
        self.assertEqual([row["error"] for row in designs], [None] * 20)
        self.assertEqual({row["a"] for row in designs}, {0, 2, 4})

    def test_a_design_without_a_value_ends_no_search(self):
        """The quotient has no value for one of three designs, whether it is an objective, a limit or a definition."""
        base = {"device": "H100", "parameters": {"n": {"choices": [0, 1, 2], "sets": False}}, "forecasts": [{"model": "gpt2"}]}
        for change in ({"objectives": ["time / n"]}, {"limits": "time / n < 1e9"}, {"limits": "1 / n < 9"}, {"definitions": {"m": "1 / n"}},
                       {"numbers": {"memory_bytes": "24e9 / n"}}, {"forecasts": [{"model": "gpt2", "batch": "= ceil(1 / n)"}]}):
            designs = tilecast.explore({**base, **change}, designs=20, batch=20, sampler="random").designs.to_pylist()
            self.assertEqual({row["n"]: row["feasible"] for row in designs}, {0: False, 1: True, 2: True}, change)
            self.assertRegex(next(row["error"] for row in designs if row["n"] == 0), "divides by zero")

    def test_a_search_becomes_longer(self):
        """Also one whose designs are no multiple of the batch, and it is then the same as a long one."""
        with tempfile.TemporaryDirectory() as folder:
            few = tilecast.explore(SPEC, designs=30, batch=20, seed=3, state=folder)
            self.assertEqual(few.designs["device"].to_pylist(), self.found.designs["device"].to_pylist()[:few.designs.num_rows])
            self.assertLess(few.designs.num_rows, 31)
            self.assertEqual(tilecast.explore(SPEC, designs=40, batch=20, seed=3, state=folder).designs, self.found.designs)
            self.assertEqual(tilecast.explore(SPEC, designs=30, batch=20, seed=3, state=folder).designs, few.designs)

    def test_defaults_are_the_same_in_the_help(self):
        import inspect
        text = subprocess.run([sys.executable, "-m", "tilecast", "explore", "--help"], capture_output=True, text=True).stdout
        keywords = inspect.signature(tilecast.explore).parameters
        for name in ("designs", "batch", "seed", "on"):
            self.assertRegex(text, rf"--{name} [^\[]*\[{keywords[name].default}\]")

    def test_wrong_specs(self):
        for spec, message in (
                (changed(objective="time"), "the spec: unknown key 'objective'; known: device, parameters, numbers, definitions"),
                (changed(device=""), "the spec: 'device' is missing: expected a name"),
                (changed(parameters={"sm count": [1]}), "parameters: 'sm count': expected a name of letters"),
                (changed(parameters={"a": {"from": 2, "to": 1}}), "parameters: 'a': 'from' 2 is more than 'to' 1"),
                (changed(parameters={"a": {"from": 2}}), "parameters: 'a': 'to': expected a number, found null"),
                (changed(parameters={"a": {"from": 0, "to": 1, "scale": "log2"}}), "'scale' log2 needs a range above 0"),
                (changed(parameters={"a": {"form": 0, "to": 1}}), "parameters: 'a': unknown key 'form'"),
                (changed(limits=["area_mm2"]), "limits: 'area_mm2': expected EXPRESSION <= EXPRESSION"),
                (changed(limits=["area <= 3"]), "limits: 'area <= 3': unknown name 'area'; did you mean 'area_mm2'"),
                (changed(limits=5), "'limits': expected an expression, or a list of them, found 5"),
                (changed(limits=["(area_mm2 <= 3)"]), "limits.*area_mm2"),
                (changed(numbers=["a"]), r"'numbers': expected an object of names with expressions, found \["),
                (changed(numbers={"memory_bytes": None}), "numbers: 'memory_bytes': expected an expression, found null"),
                (changed(numbers={"memory_bytes": "stack * 3"}), "numbers: 'memory_bytes': unknown name 'stack'; did you mean 'stacks'"),
                (changed(definitions={"a": "b", "b": "1"}), "definitions: 'a': unknown name 'b'"),
                (changed(definitions={"stacks": "1"}), "definitions: 'stacks': the name is taken"),
                (changed(definitions={"time": "1"}), "definitions: 'time': the name is taken"),
                (changed(definitions={"chat_tpot_s": "1"}), "definitions: 'chat_tpot_s': the name is taken"),
                (changed(must_fit="no"), "'must_fit': expected true or false, found \"no\""),
                (changed(objectives={"time": 1}), "'objectives': expected an expression, or a list of them"),
                (changed(objectives=["max: chat_tpot"]), "objectives: 'max: chat_tpot': unknown name 'chat_tpot'; did you mean 'chat_tpot_s'"),
                (changed(objectives=["f2_ttft_s"]), "'f2_ttft_s': the forecasts have no such number"),
                (changed(forecasts=[{"name": "chat", "model": "gpt2", "batch": "= n"}]), "forecasts: 'chat': 'batch': unknown name 'n'"),
                (changed(parameters={"a": 3}), "parameters: 'a': expected a list of numbers, or a range with 'from' and 'to', found 3"),
                (changed(parameters={"a": {"from": 0, "to": 9, "step": 2.5, "type": "whole"}}), "'a': 'step': expected a whole number, found 2.5"),
                (changed(parameters={"sm_count": {"from": 64, "to": 208, "step": 2.5}}), "'sm_count': 'step': expected a whole number, found 2.5"),
                (changed(parameters={"a": {"from": 0, "to": 9, "type": "float"}}), "'type': expected whole or number, found \"float\""),
                (changed(parameters={"a": {"from": 1, "to": 9, "scale": "log"}}), "'scale': expected linear or log2, found \"log\""),
                (changed(parameters={"a": {"from": 1, "to": 9, "sets": 0}}), "'sets': expected true or false, found 0"),
                (changed(definitions={"area_mm2": "sm_count * "}), "definitions: 'area_mm2'"),
                (changed(objectives=["tim"]), "objectives.*tim"),
                (changed(forecasts=[{"batch": 1}]), r"forecasts\[0\]: expected an object with a 'model'"),
                (changed(forecasts=[{"model": "gpt2", "gpu": "H100"}]), r"forecasts\[0\]: 'gpu' is the device that is sought"),
                (changed(forecasts=[{"model": "gpt2", "weight": -1}]), "'weight': expected a number of 0 or more, found -1"),
                (changed(forecasts=[{"name": "chat", "model": "gpt2", "bacth": 1}]), "column 'bacth' is no option")):
            with self.subTest(message), self.assertRaisesRegex(tilecast.InputError, message):
                tilecast.explore(spec, designs=4, batch=4)
        with tempfile.TemporaryDirectory() as folder:
            spec = pathlib.Path(folder) / "twice.json"
            spec.write_text('{"device": "H100", "device": "A100"}')
            with self.assertRaisesRegex(tilecast.InputError, "twice.json: key 'device' is there twice"):
                tilecast.explore(spec)
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
            for words in ("{", "[]"):
                result = subprocess.run([*command, "--engine", words], capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stderr), (1, f"tilecast: --engine: expected a JSON object, found '{words}'\n"))


if __name__ == "__main__":
    unittest.main()
