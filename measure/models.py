#!/usr/bin/env python3
"""Times whole models with PyTorch and Transformers, random weights from a config.

    measure/models.py --model gpt2 --mode training --dtype amp --batch 8 --seq 512
    measure/models.py --list
    measure/models.py --serve          the campaign's worker: see measure/kit/worker.py

A run is the median of synchronised steps: all kernels of the step and the host's pace are in it, as a
user's stopwatch sees it. A training step is forward, backward and a fused AdamW step, split by events
on the stream.
"""

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from kit import zoo  # noqa: E402

try:
    import torch
    import transformers
except ImportError as missing:
    raise SystemExit(f"{missing.name} is not installed in {sys.executable}: pip install torch transformers, "
                     "or name a Python that has them with --python or $TILECAST_PYTHON") from None

WARMUP = 3
RUNS = (5, 30)       # at least, at most
RUN_SECONDS = 1.5    # of timed steps, once there are enough runs
PAIR_SECONDS = 4.0


class Unsupported(Exception):
    """A combination that the model or the card does not have."""


class Stopwatch:
    """Marks on the GPU's stream; on a CPU (tests) marks of the clock."""

    def __init__(self, device):
        self.cuda = device == "cuda"

    def mark(self):
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, start, end):
        return start.elapsed_time(end) * 1e-3 if self.cuda else end - start

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()


class Sensors:
    """Clocks and power by NVML, where the package nvidia-ml-py is there."""

    def __init__(self, device):
        self.handle = None
        if device != "cuda":
            return
        with contextlib.suppress(Exception):
            import pynvml
            pynvml.nvmlInit()
            bus = torch.cuda.get_device_properties(0)
            index = next(i for i in range(pynvml.nvmlDeviceGetCount())
                         if str(bus.uuid) in str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(i))))
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(index)

    def read(self):
        if self.handle is None:
            return {}
        n, h = self.nvml, self.handle
        readings = {}
        for key, read in (
                ("sm_clock_hz", lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM) * 1e6),
                ("memory_clock_hz", lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM) * 1e6),
                ("power_w", lambda: n.nvmlDeviceGetPowerUsage(h) / 1e3),
                ("temperature_c", lambda: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)),
                ("throttle_reasons", lambda: hex(n.nvmlDeviceGetCurrentClocksThrottleReasons(h)))):
            with contextlib.suppress(n.NVMLError):
                readings[key] = read()
        return readings


def transformers_config(kind, fields):
    """The configuration of Transformers with its defaults, and the class that is built from it."""
    made = transformers.AutoConfig.for_model(fields["model_type"],
                                             **{key: value for key, value in fields.items() if key != "model_type"})
    made.use_cache = False
    maker = getattr(transformers, zoo.AUTO_CLASSES[kind])
    made.architectures = [maker._model_mapping[type(made)].__name__]
    return made, maker


def config_text(model):
    """The model's config.json as Transformers would publish it, so that the row can be forecast."""
    kind, fields = zoo.config_of(model)
    if kind in zoo.AUTO_CLASSES:
        made, _ = transformers_config(kind, fields)
        fields = {key: value for key, value in made.to_dict().items() if key not in ("id2label", "label2id")}
        fields["num_labels"] = made.num_labels
    return json.dumps(fields, sort_keys=True)


def build(case, device):
    """The model, a function that makes its inputs, and one that gives a loss from its output."""
    kind, config = zoo.config_of(case["model"])
    torch.manual_seed(0)
    options = {key: value for key, value in config.items() if key != "model_type"}
    weights = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
    if kind in ("unet", "dlrm"):
        from kit import own_models
        if case["checkpointing"]:
            raise Unsupported("gradient checkpointing: only Transformers' language models have it here")
        with torch.device(device):
            model = own_models.UNet(**options) if kind == "unet" else own_models.Dlrm(**options)
        return model.to(weights), kind
    # Weights are made on the device, in their dtype.
    made, maker = transformers_config(kind, config)
    if case["attention"]:
        made._attn_implementation = case["attention"]
    with torch.device(device):
        extra = {"attn_implementation": case["attention"]} if case["attention"] else {}
        model = maker.from_config(made, dtype=weights, **extra)
    if case["checkpointing"]:
        if not model.supports_gradient_checkpointing:
            raise Unsupported("gradient checkpointing: this model has none")
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model, kind


def inputs_of(model, kind, case, device):
    """Keyword arguments of the model; with labels in training where Transformers computes the loss."""
    batch, seq = int(case["batch"]), int(case["seq"] or 0)
    training = case["mode"] == "training"
    real = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
    generator = torch.Generator(device=device).manual_seed(1)

    def ids(*shape, below):
        return torch.randint(0, below, shape, device=device, generator=generator)

    def numbers(*shape):
        return torch.randn(shape, device=device, generator=generator).to(real)

    if kind == "unet":
        return {"x": numbers(batch, model.in_channels, model.image_size, model.image_size)}
    if kind == "dlrm":
        return {"dense": numbers(batch, model.dense),
                "ids": ids(len(model.bags), batch, model.pooling, below=model.rows)}
    if kind == "image":
        side = getattr(model.config, "image_size", 224)
        inputs = {"pixel_values": numbers(batch, model.config.num_channels, side, side)}
        return {**inputs, "labels": ids(batch, below=model.config.num_labels)} if training else inputs
    tokens = ids(batch, seq, below=model.config.vocab_size)
    inputs = {"input_ids": tokens}
    if kind == "seq2seq":
        inputs["decoder_input_ids"] = tokens
    return {**inputs, "labels": tokens} if training else inputs


class Job:
    """A model ready to step. Attributes after `step`: the marks of its phases."""

    def __init__(self, case, device):
        self.case, self.device, self.watch = case, device, Stopwatch(device)
        torch.backends.cuda.matmul.allow_tf32 = case["dtype"] == "tf32"
        torch.backends.cudnn.allow_tf32 = case["dtype"] == "tf32"
        torch.backends.cudnn.benchmark = False
        if case["dtype"] not in ("fp32", "tf32", "bf16", "amp"):
            raise Unsupported(f"dtype: '{case['dtype']}' is not measured for whole models")
        self.model, kind = build(case, device)
        self.training = case["mode"] == "training"
        self.model.train(self.training)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self.inputs = inputs_of(self.model, kind, case, device)
        self.optimizer = None
        if self.training:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=device == "cuda")
        self.call = torch.compile(self.model) if case["compiled"] else self.model

    def forward(self):
        autocast = torch.autocast(self.device, torch.bfloat16) if self.case["dtype"] == "amp" else contextlib.nullcontext()
        with autocast:
            return self.call(**self.inputs)

    def step(self):
        """One step; returns the marks start, after forward, after backward, end."""
        start = self.watch.mark()
        if not self.training:
            with torch.inference_mode():
                self.forward()
            return start, *[self.watch.mark()] * 3
        output = self.forward()
        loss = getattr(output, "loss", None)
        if loss is None:
            loss = output.float().square().mean()
        forward = self.watch.mark()
        loss.backward()
        backward = self.watch.mark()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return start, forward, backward, self.watch.mark()


def measure(case, device):
    """One row: times of the step and its phases, memory, sensors."""
    cuda = device == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    job = Job(case, device)
    for _ in range(WARMUP):
        job.step()
        job.watch.wait()
    steady = torch.cuda.memory_allocated() if cuda else 0
    steps, total = [], 0.0
    while len(steps) < RUNS[1] and (len(steps) < RUNS[0] or total < RUN_SECONDS):
        marks = job.step()
        job.watch.wait()
        steps.append([job.watch.seconds(a, b) for a, b in zip(marks, marks[1:])])
        total += sum(steps[-1])
    latencies = sorted(sum(step) for step in steps)
    row = {"latency_s": statistics.median(latencies), "runs": len(steps), "parameters": job.parameters,
           **Sensors(device).read()}
    row["p25_s"], _, row["p75_s"] = statistics.quantiles(latencies, n=4, method="inclusive")
    for index, phase in enumerate(("forward_s", "backward_s", "optimizer_s")):
        row[phase] = statistics.median(step[index] for step in steps)
    if cuda:
        free, whole = torch.cuda.mem_get_info()
        row.update(steady_bytes=steady, peak_allocated_bytes=torch.cuda.max_memory_allocated(),
                   peak_reserved_bytes=torch.cuda.max_memory_reserved(),
                   context_bytes=whole - free - torch.cuda.memory_reserved())
    return row


def profile(case, device):
    """Per-kernel times of one step: kernel_name, calls, total_s, the most expensive first."""
    from torch.profiler import ProfilerActivity
    job = Job(case, device)
    for _ in range(WARMUP):
        job.step()
    job.watch.wait()
    activity = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU
    with torch.profiler.profile(activities=[activity]) as profiler:
        job.step()
        job.watch.wait()
    kernels = {}
    wanted = torch.autograd.DeviceType.CUDA if device == "cuda" else torch.autograd.DeviceType.CPU
    for event in profiler.events():
        if event.device_type != wanted:
            continue
        seconds = (event.self_device_time_total if device == "cuda" else event.self_cpu_time_total) * 1e-6
        if seconds > 0:
            calls, total = kernels.get(event.name, (0, 0.0))
            kernels[event.name] = (calls + 1, total + seconds)
    ordered = sorted(kernels.items(), key=lambda item: -item[1][1])
    return [{"kernel_name": name, "calls": calls, "total_s": total} for name, (calls, total) in ordered]


class Neighbour:
    """A job in a process of its own, stepping on command."""

    def __init__(self, case, device):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--job", json.dumps(case),
                                         "--device", device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def expect(self, word):
        line = self.process.stdout.readline().split()
        if not line or line[0] != word:
            raise RuntimeError("a neighbour process ended early: " + " ".join(line))
        return line[1:]

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def step_s(self):
        return float(self.expect("step_s")[0])

    def end(self):
        self.process.kill()
        self.process.wait()


def run_job(case, device):
    """The other side of Neighbour: seconds per step over PAIR_SECONDS, each time `go` is read."""
    job = Job(case, device)
    for _ in range(WARMUP):
        job.step()
    job.watch.wait()
    print("ready", flush=True)
    for _ in sys.stdin:
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < PAIR_SECONDS:
            job.step()
            job.watch.wait()
            steps += 1
        print("step_s", (time.perf_counter() - start) / steps, flush=True)


def complete(case):
    defaults = {"attention": "", "compiled": 0, "checkpointing": 0, "optimizer": "none", "seq": ""}
    case = {**defaults, **{key: value for key, value in case.items() if value != ""}}
    return {**case, "compiled": int(case["compiled"]), "checkpointing": int(case["checkpointing"])}


def pair(case, device):
    """Two jobs alone and at once: mean seconds per step of each."""
    own = {key: case[key] for key in ("model", "mode", "dtype", "batch", "seq") if key in case}
    other = {key[6:]: value for key, value in case.items() if key.startswith("other_")}
    jobs = []
    try:
        for job in (own, other):
            jobs.append(Neighbour(complete(job), device))
            jobs[-1].expect("ready")
        alone = []
        for job in jobs:
            job.go()
            alone.append(job.step_s())
        for job in jobs:
            job.go()
        together = [job.step_s() for job in jobs]
    finally:
        for job in jobs:
            job.end()
    return {"alone_s": alone[0], "other_alone_s": alone[1], "together_s": together[0], "other_together_s": together[1]}


def release(device):
    torch._dynamo.reset()
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def facts(device):
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    if device == "cpu":
        return {"gpu_name": "CPU", **versions}
    card = torch.cuda.get_device_properties(0)
    return {"gpu_name": card.name, "compute_capability": f"{card.major}.{card.minor}",
            "sm_count": card.multi_processor_count, "memory_bytes": card.total_memory,
            "torch_cuda": torch.version.cuda, "torch_cudnn": torch.backends.cudnn.version(), **versions}


def answer(request, device):
    """Fields of one request's answer; see worker/main.cc for the words."""
    what = request.pop("do")
    if what == "facts":
        return facts(device)
    if what == "release":
        release(device)
        return {}
    if what != "time":
        raise Unsupported("do: expected facts, time or release")
    family = request.pop("family")
    try:
        if family == "pairs":
            return pair(request, device)
        case = complete(request)
        config = config_text(case["model"])
        if family == "model_kernels":
            rows = profile(case, device)
            return {"rows": len(rows), **{f"{index}.{key}": value for index, row in enumerate(rows)
                                          for key, value in row.items()}}
        return {**measure(case, device), "config": config}
    finally:
        release(device)


def guarded(request, device):
    """The answer, or how it failed: a shape that does not fit costs its row, not the campaign."""
    try:
        return {"status": "ok", **answer(request, device)}
    except torch.OutOfMemoryError as error:
        result = {"status": "out_of_memory", "detail": str(error)}
    except (Unsupported, NotImplementedError) as error:
        result = {"status": "unsupported", "detail": str(error)}
    except Exception as error:  # a library's own errors: recorded, the process starts anew
        result = {"status": "failed", "detail": f"{type(error).__name__}: {error}", "lost": "1"}
    release_quietly(device)
    return result


def release_quietly(device):
    with contextlib.suppress(Exception):
        release(device)


def text(value):
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return " ".join(shown.split())


def serve(device):
    # Libraries print to stdout now and then; the answers have it to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = dict(field.partition("=")[::2] for field in line.rstrip("\n").split("\t"))
        fields = guarded(request, device)
        print("\t".join(f"{key}={text(value)}" for key, value in fields.items()), file=answers, flush=True)
        if fields.get("lost"):
            raise SystemExit(3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="of --list")
    parser.add_argument("--mode", choices=("inference", "training"), default="inference")
    parser.add_argument("--dtype", choices=("fp32", "tf32", "bf16", "amp"), default="fp32",
                        help="amp: fp32 weights, bf16 autocast")
    parser.add_argument("--attention", choices=("eager", "sdpa"), default="")
    parser.add_argument("--compiled", action="store_const", const=1, default=0)
    parser.add_argument("--checkpointing", action="store_const", const=1, default=0)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=512)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--profile", action="store_true", help="per-kernel times of one step")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.list:
        print("\n".join(zoo.MODELS))
        return
    if args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(f"models.py: PyTorch {torch.__version__} sees no NVIDIA GPU (a build without CUDA, or no "
                         "driver)")
    if args.serve:
        serve(args.device)
    elif args.job:
        run_job(json.loads(args.job), args.device)
    elif args.model not in {**zoo.MODELS, **zoo.TINY}:
        raise SystemExit(f"models.py: unknown model '{args.model}'; --list names them")
    else:
        case = complete({key: getattr(args, key) for key in ("model", "mode", "dtype", "attention", "compiled",
                                                             "checkpointing", "batch", "seq")})
        rows = profile(case, args.device) if args.profile else [measure(case, args.device)]
        for row in rows:
            print(json.dumps(row))


if __name__ == "__main__":
    main()
