"""What all stages share: the device or its stand-in for a dry run, timing by replays, tables, failures as rows."""

import contextlib
import gc
import os
import statistics
import time

import torch

from kit.card import device_id
from kit.table import Table

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MOST_BYTES = 16e9        # of the operands of one run
MOST_COPIES = 48
REPLAYS = (5, 25)        # at least, at most
REPLAY_SECONDS = 0.015


class Bench:
    """One run of a stage: device, output folder, deadline. `dry`: on a CPU, to test the program; `small`: tiny sizes."""

    def __init__(self, stage, folder, seconds, dry=False, hold_s=2.0, skip=0):
        """`skip`: cases that an earlier process of this stage began."""
        self.stage, self.folder, self.dry, self.small, self.hold_s, self.skip = stage, folder, dry, dry, 0.2 if dry else hold_s, skip
        self.end = time.monotonic() + seconds
        self.device = "cpu" if dry else "cuda"
        self.tables = []

    def late(self, reserve_s=0.0):
        return time.monotonic() + reserve_s > self.end

    def gpu(self):
        return "cpu" if self.dry else device_id(torch.cuda.get_device_properties(0).name)[0]

    def l2_bytes(self):
        return 1024 if self.dry else torch.cuda.get_device_properties(0).L2_cache_size

    def table(self, file, columns):
        table = Table(os.path.join(self.folder, file), columns, facts(self))
        self.tables.append(table)
        return table

    def close(self):
        for table in self.tables:
            table.close()

    def uniform(self, shape, dtype, grad=False):
        """Random numbers in [-1, 1]: zeros draw less power and run faster."""
        return torch.empty(shape, dtype=dtype, device=self.device).uniform_(-1, 1).requires_grad_(grad)

    def sync(self):
        if not self.dry:
            torch.cuda.synchronize()

    def free(self):
        gc.collect()
        if not self.dry:
            torch.cuda.empty_cache()


def facts(bench):
    head = {"measured_by": "measure/torch_stages.py", "torch": torch.__version__, "date": time.strftime("%Y-%m-%d")}
    if bench.dry:
        return {"simulated": "dry run on a CPU", **head}
    card = torch.cuda.get_device_properties(0)
    head.update(gpu_name=card.name, compute_capability=f"{card.major}.{card.minor}", sm_count=card.multi_processor_count,
                memory_bytes=card.total_memory, torch_cuda=torch.version.cuda, torch_cudnn=torch.backends.cudnn.version())
    with contextlib.suppress(Exception):
        import pynvml
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        head.update(driver=pynvml.nvmlSystemGetDriverVersion(),
                    power_limit_w=pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
                    highest_sm_clock_mhz=pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM))
    for package in ("transformers", "timm", "triton"):
        with contextlib.suppress(Exception):
            from importlib.metadata import version
            head[package] = version(package)
    return head


def precision(dtype):
    """TF32 only where the row says so."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    torch.backends.cudnn.allow_tf32 = dtype == "tf32"


def failure(error):
    """Status and detail of a row that has no time."""
    text = " ".join(str(error).split())[:240]
    if isinstance(error, torch.OutOfMemoryError):
        return {"status": "out_of_memory", "detail": text}
    if isinstance(error, NotImplementedError):
        return {"status": "unsupported", "detail": text}
    return {"status": "failed", "detail": f"{type(error).__name__}: {text}"}


def lost(error):
    """The CUDA context is of no more use: a new process has to go on."""
    text = str(error)
    return ("CUDA error" in text or "INTERNAL ASSERT" in text) and "out of memory" not in text and "captur" not in text.lower()


class ContextLost(Exception):
    """Raised out of a stage after its row is written."""


def rows_of(bench, table, cases, measure, reserve_s=1.0):
    """Measures the cases in order until the deadline; each is a row whatever happens. Returns the number of rows.

    A line `case N` on stdout tells the parent how far it is, so that a new process skips what ended this one.
    """
    done = 0
    for index, case in list(enumerate(cases))[bench.skip:]:
        if bench.late(reserve_s):
            break
        print(f"case {index + 1}", flush=True)
        start = time.monotonic()
        row, broken = {"gpu": bench.gpu(), "stage": bench.stage, **case, "status": "ok"}, False
        try:
            row.update(measure(case))
        except Exception as error:  # of the library: recorded, the next case goes on
            row.update(failure(error))
            broken = lost(error)
        row["wall_s"] = f"{time.monotonic() - start:.3f}"
        table.write({key: text(value) for key, value in row.items()})
        done += 1
        if broken:
            raise ContextLost(row["detail"])
        try:
            bench.free()
        except RuntimeError as error:  # the allocator after a failed capture
            raise ContextLost(" ".join(str(error).split())[:200]) from error
    return done


def text(value):
    if isinstance(value, bool):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float) else value


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


class Replay:
    """Calls captured in a CUDA graph; the calls themselves where they cannot be captured, and in a dry run."""

    def __init__(self, bench, calls, stream=None):
        self.calls, self.graph, self.why = calls, None, ""
        if bench.dry:
            return
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                for call in calls:
                    call()
            self.graph = graph
        except Exception as error:
            if lost(error):
                raise
            self.why = " ".join(str(error).split())[:120]
            torch.cuda.synchronize()

    def __call__(self):
        if self.graph is not None:
            self.graph.replay()
        else:
            for call in self.calls:
                call()


class Marks:
    """Times between marks: events on the GPU's stream, the clock in a dry run."""

    def __init__(self, bench):
        self.dry = bench.dry

    def mark(self):
        if self.dry:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, start, end):
        return end - start if self.dry else start.elapsed_time(end) * 1e-3

    def wait(self, mark):
        if not self.dry:
            mark.synchronize()


def side_stream(bench):
    if bench.dry:
        return None, contextlib.nullcontext()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    return stream, torch.cuda.stream(stream)


def kernels_of(bench, call):
    """(kernels of one run, name of the longest)."""
    cuda = not bench.dry
    activity = torch.profiler.ProfilerActivity.CUDA if cuda else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[activity]) as profile:
        call()
        bench.sync()
    wanted = torch.autograd.DeviceType.CUDA if cuda else torch.autograd.DeviceType.CPU
    events = [e for e in profile.events() if e.device_type == wanted]
    longest = max(events, key=lambda e: e.device_time if cuda else e.cpu_time, default=None)
    return len(events), longest.name[:240] if longest else ""


def quartiles(times):
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    return {"latency_s": middle, "p25_s": low, "p75_s": high, "runs": len(times)}


def kernel_time(bench, make, alone=False, profiled=True):
    """One kernel as measure/torch_ops.py times it. `make` gives (operands, function); `alone`: no copies of the operands."""
    stream, entered = side_stream(bench)
    with entered:  # backward runs on the stream of its forward
        made = [make()]
        size = bytes_of(made[0][0])
        if size > MOST_BYTES:
            raise NotImplementedError(f"operands of {size / 1e9:.0f} GB")
        copies = 1 if alone else min(MOST_COPIES, int(2 * bench.l2_bytes() / max(size, 1)) + 1)
        copies = min(copies, 2) if bench.small else copies
        made += [make() for _ in range(copies - 1)]
        for operands, function in made[:2]:
            function(*operands)
    bench.sync()
    row = {"load": "burst", "l2": "cold", "launches": copies, "operand_bytes": size}
    if profiled:
        with side_stream_again(stream), contextlib.suppress(AssertionError, IndexError, RuntimeError):  # the time stands without a name
            row["kernel_count"], row["kernel_name"] = kernels_of(bench, lambda: made[0][1](*made[0][0]))
    replay = Replay(bench, [lambda o=operands, f=function: f(*o) for operands, function in made], stream)
    if replay.why:
        row.update(protocol="single_call", detail=f"not captured: {replay.why}")
    marks, times, spent = Marks(bench), [], 0.0
    with side_stream_again(stream):
        replay()
        bench.sync()
        while len(times) < REPLAYS[0] or (spent < REPLAY_SECONDS and len(times) < REPLAYS[1]):
            start = marks.mark()
            replay()
            end = marks.mark()
            bench.sync()
            times.append(marks.seconds(start, end) / copies)
            spent += times[-1] * copies
    return {**row, **quartiles(times)}


def side_stream_again(stream):
    return torch.cuda.stream(stream) if stream else contextlib.nullcontext()


def gradient(function, operands, wanted):
    """(operands, call) of the backward of `function` with regard to the operands of the indices `wanted`."""
    out = function(*operands)
    dy = torch.empty_like(out).uniform_(-1, 1)
    sources = [operands[index] for index in wanted]
    return [*operands, dy], lambda *_: torch.autograd.grad(out, sources, dy, retain_graph=True)
