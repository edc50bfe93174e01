#!/usr/bin/env python3
"""Execution traces and profiles of PyTorch on a CPU, made here: both show the same operators. Skipped where PyTorch is not installed.

    tests/execution_trace_test.py <tilecast>
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile
except ImportError as error:
    print(f"skipped: {error}; pip install torch")
    sys.exit(0)

TILECAST = ""
BATCH, WIDTH, HIDDEN = 512, 256, 1024


class Step:
    """A training step of two linear layers."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(WIDTH, HIDDEN), torch.nn.GELU(), torch.nn.Linear(HIDDEN, 8))
        self.x, self.y = torch.randn(BATCH, WIDTH), torch.randint(0, 8, (BATCH,))

    def __call__(self) -> None:
        torch.nn.functional.cross_entropy(self.model(self.x), self.y).backward()


def report(path: Path, *options: str) -> dict:
    run = subprocess.run([TILECAST, "trace", str(path), "--traced-gpu", "H100", "--format", "json", *options], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


def products(trace: dict) -> dict:
    """Calls of the products of matrices by their FLOPs."""
    found: dict = {}
    for operator in trace["operators"]:
        if operator["name"] in ("aten::mm", "aten::addmm"):
            found[operator["flops"]] = found.get(operator["flops"], 0) + operator["calls"]
    return found


class ExecutionTraces(unittest.TestCase):
    folder: tempfile.TemporaryDirectory
    nodes: Path
    events: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        cls.nodes, cls.events = folder / "nodes.json", folder / "events.json"
        step = Step()
        step()
        observer = ExecutionTraceObserver().register_callback(str(cls.nodes))
        observer.start()
        step()
        observer.stop()
        observer.unregister_callback()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as profiler:
            step()
        profiler.export_chrome_trace(str(cls.events))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def test_products_are_those_of_the_model(self) -> None:
        first, second = 2 * BATCH * WIDTH * HIDDEN, 2 * BATCH * HIDDEN * 8
        # Forward, the gradient of the weight, and that of the input where it is asked for.
        self.assertEqual(products(report(self.nodes)), {first: 2, second: 3})

    def test_both_formats_show_the_same_operators(self) -> None:
        nodes, events = report(self.nodes), report(self.events)
        self.assertEqual(products(nodes), products(events))
        self.assertAlmostEqual(nodes["should_take"]["seconds"], events["should_take"]["seconds"], delta=0.02 * events["should_take"]["seconds"])

    def test_nothing_was_measured(self) -> None:
        trace = report(self.nodes, "--gpu", "B200")
        self.assertEqual(trace["kernels"], 0)
        self.assertIn("nothing was measured on a GPU", trace["warnings"][0])
        self.assertGreater(trace["carried"]["kernels_s"], 0)

    def test_memory_of_the_host_beside_the_sizes_of_results(self) -> None:
        memory = report(self.events)["memory"]
        self.assertTrue(memory["of_host"])
        self.assertGreater(memory["results_bytes"], 0)
        self.assertLess(abs(memory["model_results_bytes"] / memory["known_results_bytes"] - 1), 0.1)


if __name__ == "__main__":
    TILECAST = sys.argv.pop(1)
    unittest.main()
