"""timm's models, run as its benchmark.py runs them, and the times of their operators."""

import contextlib
import json
import time

import torch

from models import Sensors

from .common import Marks, failure, quartiles, text

COLUMNS = ["gpu", "stage", "model", "mode", "dtype", "channels_last", "compiled", "optimizer", "batch", "image_size", "cudnn_benchmark",
           "latency_s", "p25_s", "p75_s", "runs", "forward_s", "backward_s", "optimizer_s", "kernels_s", "kernel_count", "host_s", "parameters",
           "peak_allocated_bytes", "peak_reserved_bytes", "warmup_s", "sm_clock_hz", "memory_clock_hz", "power_w", "temperature_c",
           "throttle_reasons", "status", "detail", "wall_s"]
OP_COLUMNS = ["model", "mode", "dtype", "channels_last", "compiled", "batch", "op", "shapes", "concrete", "calls", "total_s", "kernel_name"]
WARMUP = 5
RUNS = (8, 30)
RUN_SECONDS = 0.5


class Job:
    """A model with its inputs; `step` is what timm times: autocast forward, or forward, backward and SGD."""

    def __init__(self, bench, case):
        import timm
        self.bench, self.case, self.training = bench, case, case["mode"] == "training"
        torch.manual_seed(0)
        torch.backends.cudnn.benchmark = bool(case.get("cudnn_benchmark", 1))
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        side, batch = int(case["image_size"]), int(case["batch"])
        if bench.small:
            batch = 2
        with torch.device(bench.device):
            options = {"img_size": side} if case["model"].startswith(("vit", "deit", "swin", "mixer")) and side != 224 else {}
            model = timm.create_model(case["model"], **options)
        layout = {"memory_format": torch.channels_last} if int(case["channels_last"]) else {}
        self.model = model.to(bench.device, **layout).train(self.training)
        self.parameters = sum(p.numel() for p in model.parameters())
        self.inputs = torch.randn(batch, 3, side, side, device=bench.device).contiguous(**layout)
        self.labels = torch.randint(1000, (batch,), device=bench.device)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4) if self.training else None
        if case.get("optimizer") == "adamw":
            self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=not bench.dry)
        self.call = torch.compile(self.model) if int(case.get("compiled", 0)) else self.model
        self.number = {"amp16": torch.float16, "amp": torch.bfloat16}[case["dtype"]]

    def autocast(self):
        return torch.autocast(self.bench.device, torch.bfloat16 if self.bench.dry else self.number)

    def step(self, mark=lambda: None):
        if not self.training:
            with torch.inference_mode(), self.autocast():
                self.call(self.inputs)
            return
        with self.autocast():
            loss = torch.nn.functional.cross_entropy(self.call(self.inputs), self.labels)
        mark()
        loss.backward()
        mark()
        self.optimizer.step()
        mark()
        self.optimizer.zero_grad(set_to_none=True)


def time_steps(bench, job, reserve_s):
    """Median of synchronised steps; the host's time is that until the launches return."""
    begin = time.perf_counter()
    for _ in range(WARMUP):
        job.step()
        bench.sync()
        if bench.late(reserve_s):
            raise NotImplementedError("no time for this row")
    warmup = time.perf_counter() - begin
    clock, steps, host, parts, spent = Marks(bench), [], [], [], 0.0
    while len(steps) < RUNS[0] or (len(steps) < RUNS[1] and spent < RUN_SECONDS):
        start = time.perf_counter()
        job.step()
        host.append(time.perf_counter() - start)
        bench.sync()
        steps.append(time.perf_counter() - start)
        spent += steps[-1]
        if bench.small and len(steps) > 1:
            break
    for _ in range(3 if job.training else 0):  # parts by events, which the whole step does without
        marks = [clock.mark()]
        job.step(lambda: marks.append(clock.mark()))
        bench.sync()
        parts.append([clock.seconds(a, b) for a, b in zip(marks, marks[1:])])
    row = {**quartiles(steps), "host_s": quartiles(host)["latency_s"], "warmup_s": warmup, "parameters": job.parameters}
    for index, name in enumerate(("forward_s", "backward_s", "optimizer_s")):
        if parts:
            row[name] = quartiles([part[index] for part in parts])["latency_s"]
    return row


def operators(bench, job):
    """({(op, shapes, concrete): [calls, seconds, longest kernel]}, seconds of all kernels, their number) of one step."""
    activities = [torch.profiler.ProfilerActivity.CPU] + ([] if bench.dry else [torch.profiler.ProfilerActivity.CUDA])
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        job.step()
        bench.sync()
    table, seconds, count = {}, 0.0, 0
    for event in profile.events():
        kernels = getattr(event, "kernels", [])
        if bench.dry:
            kernels = [event] if event.name.startswith("aten::") else []
        if not kernels:
            continue
        shapes = json.dumps(getattr(event, "input_shapes", "") or "", separators=(",", ":"))
        concrete = json.dumps(getattr(event, "concrete_inputs", "") or "", separators=(",", ":"), default=str)
        entry = table.setdefault((event.name, shapes, concrete[:300]), [0, 0.0, "", 0.0])
        entry[0] += 1
        for kernel in kernels:
            duration = (kernel.self_cpu_time_total if bench.dry else kernel.duration) * 1e-6
            entry[1] += duration
            seconds += duration
            count += 1
            if duration > entry[3]:
                entry[2], entry[3] = kernel.name[:120], duration
    return table, seconds, count


def measure(bench, ops, case, reserve_s=0.0):
    """One row; the step's operators go to the table `ops`."""
    if not bench.dry:
        torch.cuda.reset_peak_memory_stats()
    job = Job(bench, case)
    row = time_steps(bench, job, reserve_s)
    if not bench.dry:
        row.update(peak_allocated_bytes=torch.cuda.max_memory_allocated(), peak_reserved_bytes=torch.cuda.max_memory_reserved())
    row.update(Sensors(bench.device).read())
    with contextlib.suppress(Exception):  # the row stands without them
        table, row["kernels_s"], row["kernel_count"] = operators(bench, job)
        write_operators(ops, case, table)
    return row


def write_operators(ops, case, table):
    shared = {key: case.get(key, "") for key in ("model", "mode", "dtype", "channels_last", "compiled", "batch")}
    for (op, shapes, concrete), (calls, seconds, kernel, _) in sorted(table.items(), key=lambda item: -item[1][1]):
        ops.write({key: text(value) for key, value in {**shared, "op": op, "shapes": shapes, "concrete": concrete, "calls": calls,
                                                       "total_s": seconds, "kernel_name": kernel}.items()})


__all__ = ["COLUMNS", "OP_COLUMNS", "Job", "failure", "measure"]
