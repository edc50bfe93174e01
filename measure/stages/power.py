"""Stage `power`: loads held for seconds, with the energy counter, power, clocks; each also as a burst on a cool GPU.

power.csv: two rows a load. `burst`: the first milliseconds; `sustained`: the second half of `hold_s`, with the sensors of that time.
`flops`, `dram_bytes` are of one launch, by the sizes (`dram_bytes` 0: the operands stay in the L2). power_samples.csv: all samples.
"""

import time

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from . import llama
from .common import Marks, Replay, precision, quartiles, rows_of, side_stream, side_stream_again, text
from .sensors import Nvml, Sampler, summary

COLUMNS = ["gpu", "stage", "name", "op", "dtype", "batch", "m", "n", "k", "rows", "columns", "heads", "kv_heads", "queries", "keys",
           "head_dim", "causal", "channels", "height", "width", "filters", "kernel_height", "kernel_width", "flops", "dram_bytes", "load",
           "l2", "protocol", "latency_s", "p25_s", "p75_s", "runs", "launches", "first_s", "hold_s", "energy_j", "energy_window_s",
           "energy_power_w", "energy_steps", "power_w", "average_power_w", "sm_clock_hz", "lowest_sm_clock_hz", "highest_sm_clock_hz",
           "memory_clock_hz", "temperature_c", "memory_temperature_c", "throttle_reasons", "power_capped_share", "samples", "status",
           "detail", "wall_s"]
SAMPLE_COLUMNS = ["name", "t_s", "energy_j", "power_w", "average_power_w", "sm_clock_hz", "memory_clock_hz", "temperature_c",
                  "memory_temperature_c", "throttle"]
REPLAY_S = 0.004      # of launches captured together
SETTLE_SHARE = 0.4    # of the hold, before the sensors count
COOL_S = 0.35
AHEAD = 4             # replays in flight


class Load:
    """`call` launches once; None: nothing runs."""

    def __init__(self, call, flops=0.0, dram_bytes=0.0, captured=True, **fields):
        self.call, self.captured = call, captured
        self.fields = {"flops": float(flops), "dram_bytes": float(dram_bytes), **fields}


def side(bench, size):
    return 64 if bench.small else size


def gemm(dtype, m, n, k, batch=1):
    def make(bench):
        precision(dtype)
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype, torch.float32)
        sm, sn, sk = (min(size, side(bench, size)) for size in (m, n, k))
        a, b = bench.uniform((batch, sm, sk), kind), bench.uniform((batch, sk, sn), kind)
        if batch == 1:
            a, b = a[0], b[0]
        out = torch.empty((*a.shape[:-1], sn), dtype=kind, device=bench.device)
        return Load(lambda: torch.matmul(a, b, out=out), 2.0 * batch * m * n * k,
                    batch * (m * k + k * n + m * n) * a.element_size(), op="gemm" if batch == 1 else "matmul", dtype=dtype,
                    batch=batch, m=m, n=n, k=k, l2="warm")
    return make


def gemm_fp8(m, n, k):
    def make(bench):
        sm, sn, sk = (side(bench, size) for size in (m, n, k))
        a = bench.uniform((sm, sk), torch.float32).to(torch.float8_e4m3fn)
        b = bench.uniform((sn, sk), torch.float32).to(torch.float8_e4m3fn)
        one = torch.ones((), device=bench.device)
        return Load(lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16), 2.0 * m * n * k,
                    m * k + k * n + 2 * m * n, op="gemm", dtype="fp8", m=m, n=n, k=k, l2="warm")
    return make


def stream(op, dtype, elements, function, inputs, passes, flops_each=1, l2="cold", out=True):
    """`passes`: reads and writes of the elements."""
    def make(bench):
        kind = torch.bfloat16 if dtype == "bf16" else torch.float32
        count = 4096 if bench.small else elements
        operands = [bench.uniform((count,), kind) for _ in range(inputs)]
        target = torch.empty_like(operands[0]) if out else None
        return Load(lambda: function(*operands, target), flops_each * elements,
                    passes * elements * operands[0].element_size() if l2 == "cold" else 0, op=op, dtype=dtype, rows=1, columns=elements,
                    l2=l2)
    return make


def rowwise(op, rows, columns):
    def make(bench):
        x = bench.uniform((16, 64) if bench.small else (rows, columns), torch.bfloat16)
        weight = bench.uniform((x.shape[1],), torch.bfloat16)
        call = {"softmax": lambda: torch.softmax(x, -1),
                "layer_norm": lambda: functional.layer_norm(x, [x.shape[1]], weight, weight)}[op]
        return Load(call, 5.0 * rows * columns, 4.0 * rows * columns, op=op, dtype="bf16", rows=rows, columns=columns, l2="cold")
    return make


def attention(direction, batch, heads, length, size):
    def make(bench):
        long = 32 if bench.small else length
        q, k, v = (bench.uniform((batch, heads, long, size), torch.bfloat16, direction == "backward") for _ in range(3))

        def forward():
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                return functional.scaled_dot_product_attention(q, k, v)
        fields = dict(batch=batch, heads=heads, kv_heads=heads, queries=length, keys=length, head_dim=size, causal=0, dtype="bf16", l2="warm")
        flops, moved = 4.0 * batch * heads * length * length * size, 8.0 * batch * heads * length * size
        if direction == "forward":
            return Load(forward, flops, moved, op="attention", **fields)
        out = forward()
        dy = torch.empty_like(out).uniform_(-1, 1)
        return Load(lambda: torch.autograd.grad(out, (q, k, v), dy, retain_graph=True), 2.5 * flops, 2 * moved, op="attention_backward",
                    **fields)
    return make


def cached_attention(batch, heads, kv_heads, keys, size):
    def make(bench):
        long = 32 if bench.small else keys
        q = bench.uniform((batch, heads, 1, size), torch.bfloat16)
        k, v = (bench.uniform((batch, kv_heads, long, size), torch.bfloat16) for _ in range(2))
        return Load(lambda: functional.scaled_dot_product_attention(q, k, v, enable_gqa=True), 4.0 * batch * heads * keys * size,
                    4.0 * batch * kv_heads * keys * size, op="cached_attention", dtype="bf16", batch=batch, heads=heads, kv_heads=kv_heads,
                    queries=1, keys=keys, head_dim=size, l2="cold")
    return make


def convolution(batch, channels, side_length, filters):
    def make(bench):
        shape = (2, 8, 8, 8) if bench.small else (batch, channels, side_length, side_length)
        x = bench.uniform(shape, torch.bfloat16).to(memory_format=torch.channels_last)
        w = bench.uniform((filters, shape[1], 3, 3), torch.bfloat16).to(memory_format=torch.channels_last)
        points = batch * side_length ** 2
        return Load(lambda: functional.conv2d(x, w, padding=1), 2.0 * points * filters * channels * 9,
                    2.0 * points * (channels + filters) + 18.0 * filters * channels, op="conv_forward", dtype="bf16", batch=batch,
                    channels=channels, height=side_length, width=side_length, filters=filters, kernel_height=3, kernel_width=3, l2="cold")
    return make


def gather(rows, columns):
    def make(bench):
        table = bench.uniform((64, 64) if bench.small else (rows, columns), torch.bfloat16)
        ids = torch.randperm(table.shape[0], device=bench.device)
        return Load(lambda: functional.embedding(ids, table), 0, 4.0 * rows * columns + 8.0 * rows, op="embedding", dtype="bf16", rows=rows,
                    columns=columns, l2="cold")
    return make


def training(bench):
    model, step, tokens = llama.training_step(bench)
    state = sum(p.numel() for p in model.parameters())
    return Load(step, 6.0 * model.products() * tokens, 22.0 * state, op="training_step", dtype="bf16", rows=tokens, l2="cold",
                detail="Llama: 12 layers, hidden 2048, inner 8192, 32 and 8 heads, vocabulary 32000, 4 x 2048 tokens; dram_bytes: "
                       "of the optimizer and one pass over the weights alone")


def decode(bench):
    model, step, batch, cache = llama.decode_step(bench, hidden=4096, layers=16, heads=32, kv_heads=8, inner=14336, vocabulary=128256)
    return Load(step, 2.0 * model.products() * batch, 2.0 * model.products() + cache, op="decode_step", dtype="bf16", batch=batch, keys=4096,
                l2="cold", detail="Llama 3 8B with 16 of its 32 layers, batch 16, 4096 keys")


def sleep(cycles):
    def make(bench):
        call = (lambda: time.sleep(0.001)) if bench.dry else (lambda: torch.cuda._sleep(cycles))
        return Load(call, op="spin", dtype="", l2="warm", detail="one thread that waits")
    return make


def half_busy(bench):
    """A product, then as long a pause: does the power average?"""
    product = gemm("bf16", 8192, 8192, 8192)(bench)
    pause = sleep(3_000_000)(bench).call

    def call():
        product.call()
        pause()
    return Load(call, **{**product.fields, "op": "gemm_and_pause", "detail": "a product, then one thread waits 3e6 cycles"})


def spin_all(bench):
    """All SMs busy with integer instructions, a few warps each."""
    if bench.dry:
        return Load(lambda: time.sleep(0.001), op="spin_all", dtype="", l2="warm")
    code = ('extern "C" __global__ void spin_all(int cycles, int* out) { long long start = clock64(); int x = threadIdx.x; '
            'while (clock64() - start < cycles) { x = x * 3 + 1; } if (x == 12345678) { *out = x; } }')
    kernel = torch.cuda._compile_kernel(code, "spin_all")
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    return Load(lambda: kernel(grid=(132, 1, 1), block=(128, 1, 1), args=[2_000_000, out]), op="spin_all", dtype="", rows=132, columns=128,
                l2="warm", detail="132 blocks of 128 threads read the clock and multiply integers", captured=False)


MI = 2 ** 20
# By value: the deadline cuts the end.
LOADS = [
    ("idle_context", lambda bench: Load(None, op="idle", dtype="", l2="warm")),
    ("bf16_8192", gemm("bf16", 8192, 8192, 8192)), ("copy_2gib", stream("copy", "fp32", 512 * MI, lambda x, out: out.copy_(x), 1, 2, 0)),
    ("fp32_8192", gemm("fp32", 8192, 8192, 8192)), ("fp8_8192", gemm_fp8(8192, 8192, 8192)), ("tf32_8192", gemm("tf32", 8192, 8192, 8192)),
    ("bf16_4096", gemm("bf16", 4096, 4096, 4096)), ("training_step", training), ("decode_step", decode),
    ("attention_16k", attention("forward", 1, 16, 16384, 128)), ("attention_backward_16k", attention("backward", 1, 16, 16384, 128)),
    ("add_fp32", stream("add", "fp32", 256 * MI, lambda a, b, out: torch.add(a, b, out=out), 2, 3)),
    ("sum_fp32", stream("reduce_sum", "fp32", 512 * MI, lambda x, out: x.sum(), 1, 1, out=False)),
    ("l2_add_fp32", stream("add", "fp32", 2 * MI, lambda a, b, out: torch.add(a, b, out=out), 2, 3, l2="warm")),
    ("conv3x3_bf16", convolution(128, 256, 56, 256)), ("decode_attention", cached_attention(64, 32, 8, 8192, 128)),
    ("skinny_16", gemm("bf16", 16, 8192, 8192)), ("fp16_8192", gemm("fp16", 8192, 8192, 8192)),
    ("skinny_256", gemm("bf16", 256, 8192, 8192)), ("layer_norm", rowwise("layer_norm", 65536, 4096)),
    ("bf16_2048", gemm("bf16", 2048, 2048, 2048)), ("half_busy", half_busy), ("spin_one", sleep(2_000_000)), ("spin_all", spin_all),
    ("gelu_l2", stream("gelu", "bf16", 4 * MI, lambda x, out: functional.gelu(x), 1, 2, 10, l2="warm", out=False)),
    ("softmax", rowwise("softmax", 65536, 4096)), ("gather", gather(262144, 2048)), ("skinny_64", gemm("bf16", 64, 8192, 8192)),
    ("bf16_16384x4096x4096", gemm("bf16", 16384, 4096, 4096)), ("bf16_batched", gemm("bf16", 2048, 2048, 128, 128)),
    ("fp32_4096", gemm("fp32", 4096, 4096, 4096)), ("fp16_4096", gemm("fp16", 4096, 4096, 4096)), ("fp8_4096", gemm_fp8(4096, 4096, 4096)),
    ("tf32_4096", gemm("tf32", 4096, 4096, 4096)), ("copy_bf16_64mib", stream("copy", "bf16", 32 * MI, lambda x, out: out.copy_(x), 1, 2, 0)),
    ("idle_after", lambda bench: Load(None, op="idle", dtype="", l2="warm")),
]


def launches_for(bench, load, stream):
    """Launches of about REPLAY_S, from the time of one after a warm-up."""
    marks = Marks(bench)
    with side_stream_again(stream):
        load.call()
        bench.sync()
        start = marks.mark()
        load.call()
        end = marks.mark()
        bench.sync()
    return max(1, min(200, round(REPLAY_S / max(marks.seconds(start, end), 1e-6))))


class Held:
    """Replays back to back for the time asked for, with a time for each."""

    def __init__(self, bench, replay, stream):
        self.bench, self.replay, self.stream, self.marks = bench, replay, stream, Marks(bench)

    def run(self, seconds):
        """[(host's time at launch, seconds of the replay)]"""
        open_marks, times, begin = [], [], time.perf_counter()

        def collect():
            at, start, end = open_marks.pop(0)
            self.marks.wait(end)
            times.append((at, self.marks.seconds(start, end)))
        with side_stream_again(self.stream):
            while time.perf_counter() - begin < seconds:
                start = self.marks.mark()
                self.replay()
                open_marks.append((time.perf_counter(), start, self.marks.mark()))
                if len(open_marks) >= AHEAD:
                    collect()
            while open_marks:
                collect()
        return times


def hold(bench, nvml, name, samples_table):
    """The burst's fields and the sustained fields."""
    seconds = bench.hold_s
    stream, entered = side_stream(bench)
    with entered:  # a backward runs on the stream of its forward
        load = dict(LOADS)[name](bench)
    if load.call is None:
        with Sampler(nvml) as sampler:
            begin = time.perf_counter()
            time.sleep(seconds)
        write_samples(samples_table, name, sampler.samples, begin)
        return None, {**load.fields, "load": "sustained", "hold_s": seconds, **summary(sampler.samples, begin, time.perf_counter())}
    count = launches_for(bench, load, stream)
    replay = Replay(bench, [load.call] * count, stream) if load.captured else Uncaptured(load.call, count)
    with side_stream_again(stream):
        replay()
        bench.sync()
    time.sleep(0.0 if bench.dry else COOL_S)
    held = Held(bench, replay, stream)
    protocol = {} if not replay.why else {"protocol": "single_call", "detail": f"{load.fields.get('detail', '')}; not captured: {replay.why}"}
    with Sampler(nvml) as sampler:
        begin = time.perf_counter()
        times = held.run(seconds)
        end = time.perf_counter()
    write_samples(samples_table, name, sampler.samples, begin)
    each = [taken / count for _, taken in times]
    first = {**load.fields, **protocol, "load": "burst", "launches": count, **quartiles(each[:3]), "first_s": each[0],
             **summary(sampler.samples, begin, begin + 0.05)}
    settled = begin + SETTLE_SHARE * seconds
    late = [taken / count for at, taken in times if at > settled] or each
    return first, {**load.fields, **protocol, "load": "sustained", "launches": count, **quartiles(late), "first_s": each[0],
                   "hold_s": seconds, **summary(sampler.samples, settled, end)}


class Uncaptured:
    """`count` launches by the host."""

    def __init__(self, call, count):
        self.call, self.count, self.why = call, count, ""

    def __call__(self):
        for _ in range(self.count):
            self.call()


def write_samples(table, name, samples, begin):
    for sample in samples:
        row = {key: f"{value:.7g}" if isinstance(value, float) else value for key, value in sample.items()}
        table.write({**row, "name": name, "t_s": f"{sample['t_s'] - begin:.4f}", "energy_j": f"{sample.get('energy_j', 0):.3f}"})


def idle_without_context(bench, seconds=1.5):
    """Before this process has a CUDA context: the card as nobody uses it."""
    nvml = Nvml(bench.dry)
    with Sampler(nvml) as sampler:
        begin = time.perf_counter()
        time.sleep(0.1 if bench.dry else seconds)
    return {"name": "idle_nothing", "op": "idle", "load": "sustained", "hold_s": seconds,
            **summary(sampler.samples, begin, time.perf_counter())}


def run(bench, idle=None):
    table, samples = bench.table("power.csv", COLUMNS), bench.table("power_samples.csv", SAMPLE_COLUMNS)
    nvml = Nvml(bench.dry)
    if idle:
        table.write({**{key: text(value) for key, value in idle.items()}, "gpu": bench.gpu(), "stage": bench.stage, "status": "ok"})

    def measure(case):
        first, held = hold(bench, nvml, case["name"], samples)
        if first:
            written = {"gpu": bench.gpu(), "stage": bench.stage, **case, **first, "status": "ok"}
            table.write({key: text(value) for key, value in written.items()})
        return held
    if not bench.dry:
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
    return rows_of(bench, table, [{"name": name} for name, _ in LOADS], measure, reserve_s=bench.hold_s + 1.0)
