#!/usr/bin/env python3
"""Measures the GPU memory and the step times of PyTorch and Transformers, random weights from a config.

    research/memory/measure_memory.py -o memory.csv --seconds 330          the cases of research/memory/memory_gpu_cases.csv, in that order
    research/memory/measure_memory.py -o memory.csv --device cpu --shrink  a dry run: tiny models, no GPU

Needs torch and transformers; nvidia-ml-py where it is there. One CSV row per case, written at once; a case that does not fit or
fails is a row with its status. `environment` of the JSON file beside it holds the device's memory in use before and after the
CUDA context, the first cuBLAS call and so on. Cases whose `fresh` is 1 come first, each in a process of its own while no other
uses the device, so that outside_bytes (in use on the device, less what the allocator has reserved) is that of a user's job.

Columns, bytes: *_peak of the caching allocator within a phase of the second step (the first makes the optimizer's state);
after_* what is allocated at the end of a phase; peak_* over all steps, the model's making left out; model_bytes allocated by
model and inputs; left_bytes allocated after all is freed (cuBLAS workspaces); latency_s and its parts: medians of RUNS steps.
"""
import argparse
import contextlib
import csv
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/pytorch"))
import memory_models  # noqa: E402

RUNS = 5
OUTPUTS = ["status", "detail", "parameters", "model_bytes", "after_forward_bytes", "after_backward_bytes",
           "after_optimizer_bytes", "steady_bytes", "forward_peak_bytes", "backward_peak_bytes", "optimizer_peak_bytes",
           "first_step_peak_bytes", "peak_allocated_bytes", "peak_reserved_bytes", "peak_requested_bytes", "peak_active_bytes",
           "inactive_split_bytes", "alloc_retries", "left_bytes", "device_used_bytes", "outside_bytes", "process_bytes",
           "latency_s", "forward_s", "backward_s", "optimizer_s", "first_step_s", "wall_s", "fresh", "torch", "transformers", "gpu"]


class Card:
    """Memory in use on the device, by NVML and by the CUDA runtime; zeros on a CPU."""

    def __init__(self, device):
        self.cuda, self.nvml = device == "cuda", None
        if self.cuda:
            with contextlib.suppress(Exception):
                import pynvml
                pynvml.nvmlInit()
                self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)

    def used(self):
        """By NVML, which needs no CUDA context; 0 without it."""
        return self.nvml.nvmlDeviceGetMemoryInfo(self.handle).used if self.nvml else 0

    def process(self):
        """Of this process, by NVML; empty where the driver does not tell (containers)."""
        with contextlib.suppress(Exception):
            for process in self.nvml.nvmlDeviceGetComputeRunningProcesses(self.handle):
                if process.pid == os.getpid():
                    return process.usedGpuMemory or ""
        return ""

    def runtime_used(self):
        import torch
        free, total = torch.cuda.mem_get_info()
        return total - free


def environment(card):
    """Memory in use on the device before and after each library's first use."""
    states = []

    def note(what):
        torch.cuda.synchronize()
        states.append({"after": what, "nvml_used_bytes": card.used(), "process_bytes": card.process(),
                       "runtime_used_bytes": card.runtime_used(), "reserved_bytes": torch.cuda.memory_reserved(),
                       "allocated_bytes": torch.cuda.memory_allocated()})

    states.append({"after": "nothing", "nvml_used_bytes": card.used()})
    import torch
    states.append({"after": "import torch", "nvml_used_bytes": card.used()})
    torch.cuda.init()
    torch.cuda.synchronize()
    note("context")
    x = torch.ones(64, 64, device="cuda", requires_grad=True)
    note("first tensor")
    y = x + x
    note("first kernel")
    with torch.no_grad():
        torch.mm(y, y)
    note("first cuBLAS product, fp32")
    half = y.detach().bfloat16()
    torch.mm(half, half)
    note("cuBLAS product, bf16")
    torch.nn.functional.linear(half, half, half[0])
    note("cuBLASLt product with bias, bf16")
    torch.mm(y, x).sum().backward()
    note("product in backward (a thread with a handle of its own)")
    q = torch.randn(1, 4, 64, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    note("fused attention, bf16")
    image = torch.randn(1, 3, 32, 32, device="cuda", requires_grad=True)
    torch.nn.functional.conv2d(image, torch.randn(8, 3, 3, 3, device="cuda", requires_grad=True)).sum().backward()
    note("cuDNN convolution with backward")
    weight = torch.nn.Parameter(torch.zeros(64, 64, device="cuda"))
    weight.grad = torch.zeros_like(weight)
    torch.optim.AdamW([weight], foreach=True).step()
    note("AdamW foreach")
    torch.optim.AdamW([weight], fused=True).step()
    note("AdamW fused")
    del x, y, half, q, image, weight
    gc.collect()
    torch.cuda.empty_cache()
    note("all freed, cache emptied")
    card_facts = torch.cuda.get_device_properties(0)
    return {"states": states, "gpu": card_facts.name, "memory_bytes": card_facts.total_memory, "torch": torch.__version__,
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
            "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""),
            "allocator": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") + os.environ.get("PYTORCH_ALLOC_CONF", "")}


class Meter:
    """The allocator's counters; zeros on a CPU."""

    def __init__(self, device):
        import torch
        self.torch, self.cuda = torch, device == "cuda"

    def now(self):
        return self.torch.cuda.memory_allocated() if self.cuda else 0

    def peak(self):
        return self.torch.cuda.max_memory_allocated() if self.cuda else 0

    def reset(self):
        if self.cuda:
            self.torch.cuda.reset_peak_memory_stats()

    def wait(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def mark(self):
        if not self.cuda:
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, start, end):
        return start.elapsed_time(end) * 1e-3 if self.cuda else end - start


class Job:
    """A model with its inputs and its optimizer."""

    def __init__(self, case, device, shrink):
        import torch
        self.torch, self.case, self.device = torch, case, device
        self.model = memory_models.build(case, device, shrink)
        self.inputs = memory_models.inputs_of(self.model, case, device)
        self.optimizer = memory_models.optimizer_of(self.model, case)
        self.training = case["mode"] == "training"

    def step(self, after):
        """One step; calls after('forward'), after('backward'), after('optimizer')."""
        with memory_models.autocast_of(self.case, self.device), self.torch.set_grad_enabled(self.training):
            output = self.model(**self.inputs)
        after("forward")
        if self.training:
            memory_models.backward(output)
            del output
            after("backward")
            if self.optimizer:
                self.optimizer.step()
        else:
            del output
            after("backward")
        after("optimizer")
        self.model.zero_grad(set_to_none=True)


def run(case, device, shrink, row):
    """Fills `row` as far as the case comes."""
    meter = Meter(device)
    job = Job(case, device, shrink)
    row["parameters"] = sum(p.numel() for p in job.model.parameters())
    row["model_bytes"] = meter.now()
    meter.wait()
    if meter.cuda:
        meter.torch.cuda.empty_cache()  # what making the weights left behind
    meter.reset()
    start = time.perf_counter()
    job.step(lambda phase: None)
    meter.wait()
    row["first_step_s"] = time.perf_counter() - start
    row["first_step_peak_bytes"] = meter.peak()

    def note(phase):
        row[f"{phase}_peak_bytes"], row[f"after_{phase}_bytes"] = meter.peak(), meter.now()
        meter.reset()

    meter.reset()
    job.step(note)
    row["steady_bytes"] = meter.now()
    meter.wait()
    steps = []
    for _ in range(RUNS):
        marks = [meter.mark()]
        job.step(lambda phase: marks.append(meter.mark()))
        meter.wait()
        steps.append([meter.seconds(a, b) for a, b in zip(marks, marks[1:])])
    row["latency_s"] = statistics.median(sum(step) for step in steps)
    for index, phase in enumerate(("forward_s", "backward_s", "optimizer_s")):
        row[phase] = statistics.median(step[index] for step in steps)


def finish(device, row, card):
    """The counters of the whole case, also of one that ran out of memory."""
    if device != "cuda":
        return
    import torch
    stats = torch.cuda.memory_stats()
    phases = [row.get(f"{phase}_peak_bytes", 0) for phase in ("forward", "backward", "optimizer", "first_step")]
    row["peak_allocated_bytes"] = max(torch.cuda.max_memory_allocated(), *phases)
    row["peak_reserved_bytes"] = torch.cuda.memory_reserved()  # the cache is never given back within a case
    for name, key in (("peak_requested_bytes", "requested_bytes"), ("peak_active_bytes", "active_bytes"),
                      ("inactive_split_bytes", "inactive_split_bytes")):
        row[name] = stats.get(f"{key}.all.peak", "")
    row["alloc_retries"] = stats.get("num_alloc_retries", "")
    row["device_used_bytes"], row["process_bytes"] = card.used() or card.runtime_used(), card.process()
    row["outside_bytes"] = card.runtime_used() - torch.cuda.memory_reserved()
    row["gpu"] = torch.cuda.get_device_name()


def measure(case, device, shrink, card):
    """One row, whatever happens; frees all of it."""
    import torch
    import transformers
    start = time.perf_counter()
    row = {**case, "status": "ok", "torch": torch.__version__, "transformers": transformers.__version__}
    try:
        run(case, device, shrink, row)
    except torch.OutOfMemoryError as error:
        row.update(status="out_of_memory", detail=" ".join(str(error).split())[:300])
    except Exception as error:  # of the libraries: recorded, the next case goes on
        row.update(status="failed", detail=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    finish(device, row, card)
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        row["left_bytes"] = torch.cuda.memory_allocated()
        with contextlib.suppress(Exception):
            torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    row["wall_s"] = time.perf_counter() - start
    return row


def measure_fresh(case, args, timeout_s):
    """The row of a process of its own."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as result:
        command = [sys.executable, os.path.abspath(__file__), "--one", json.dumps(case), "-o", result.name,
                   "--device", args.device, *(["--shrink"] if args.shrink else [])]
        start = time.perf_counter()
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
            row = json.load(result)
        except (ValueError, subprocess.TimeoutExpired) as error:
            said = process.stderr[-300:] if isinstance(error, ValueError) else "timeout"
            row = {**case, "status": "failed", "detail": " ".join(said.split())}
        return {**row, "fresh": 1, "wall_s": time.perf_counter() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help="CSV file; FILE.json beside it holds the environment")
    parser.add_argument("--cases", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory_gpu_cases.csv"))
    parser.add_argument("--seconds", type=float, default=330, help="no case starts later than this")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--shrink", action="store_true", help="tiny models and batches, for a dry run")
    parser.add_argument("--only", default="", help="only models whose name has this text")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    begin, card = time.perf_counter(), Card(args.device)
    if args.one:
        row = measure(json.loads(args.one), args.device, args.shrink, card)
        with open(args.output, "w", encoding="utf-8") as stream:
            json.dump(row, stream)
        return
    with open(args.cases, newline="", encoding="utf-8") as stream:
        fresh = [row.get("fresh") == "1" for row in csv.DictReader(stream)]
    cases = [(case, own) for case, own in zip(memory_models.read_cases(args.cases), fresh) if args.only in case["model"]]
    cases.sort(key=lambda case: not case[1])
    before, facts = card.used(), None  # this process has no CUDA context yet
    with open(args.output, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, memory_models.COLUMNS + OUTPUTS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for case, own in cases:
            if args.shrink:
                case = {**case, "batch": min(case["batch"], 2), "seq": min(case["seq"], 16)}
            if facts is None and not own:
                try:
                    facts = environment(card) if args.device == "cuda" else {}
                except Exception as error:  # the cases matter more
                    facts = {"failed": f"{type(error).__name__}: {error}"}
                with open(args.output + ".json", "w", encoding="utf-8") as note:
                    json.dump({"used_before_bytes": before, "environment": facts}, note, indent=1)
            left = args.seconds - (time.perf_counter() - begin)
            if left < 0:
                row = {**case, "status": "no_time"}
            else:
                row = measure_fresh(case, args, max(left, 30)) if own else measure(case, args.device, args.shrink, card)
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
            stream.flush()
            print(f"{time.perf_counter() - begin:6.1f} s", *[case[k] for k in memory_models.COLUMNS], row["status"],
                  row.get("peak_allocated_bytes", 0) >> 20, "MiB", f"{row.get('latency_s', 0):.4f} s", row.get("detail", ""), flush=True)


if __name__ == "__main__":
    main()
