#!/usr/bin/env python3
"""Times PyTorch's own kernels, one operator of Tilecast a row, in the layout of docs/reference/measurements.md.

    measure/torch_ops.py --gpu nvidia-h100-sxm5-80gb -o torch_ops.csv --seconds 200

A case is captured in a CUDA graph that runs the operator on copies of its operands in turn, together above twice the L2 cache,
so that operands come from DRAM (`l2` cold). `latency_s` is the median replay divided by the runs in it; `p25_s`, `p75_s` the
quartiles. `kernel_name`: the kernel with most time, by the profiler; `kernel_count`: the kernels of one run. Operands are
random. A case that fails is a row with its status. The file is written anew, a row at a time.
"""

import argparse
import csv
import random
import statistics
import subprocess
import time

import torch
from torch.nn import functional

COLUMNS = ["gpu", "op", "dtype", "batch", "m", "n", "k", "trans_a", "rows", "columns", "table_rows", "queries", "keys", "heads", "kv_heads",
           "head_dim", "causal", "load", "l2", "latency_s", "p25_s", "p75_s", "runs", "launches", "kernel_count", "kernel_name",
           "status", "detail", "wall_s"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
MOST_BYTES = 12e9        # of the operands of one run
REPLAYS = (5, 25)        # at least, at most
REPLAY_SECONDS = 0.02
MOST_COPIES = 48


def normal(shape, dtype, grad=False):
    return torch.empty(shape, dtype=dtype, device="cuda").uniform_(-1, 1).requires_grad_(grad)


def pointwise(function, inputs=1):
    def make(case, dtype):
        shape = (case["rows"], case["columns"])
        return [normal(shape, dtype) for _ in range(inputs)], function
    return make


def of_rows(function):
    def make(case, dtype):
        return [normal((case["rows"], case["columns"]), dtype)], lambda x: function(x, case["columns"])
    return make


def with_saved(forward, backward):
    """`backward` gets x, what `forward` made of it, and a gradient."""
    def make(case, dtype):
        x = normal((case["rows"], case["columns"]), dtype)
        return [x, *forward(x), torch.ones_like(x)], backward
    return make


def layer_norm_parts(x):
    weight = normal((x.shape[1],), x.dtype)
    _, mean, rstd = torch.native_layer_norm(x, [x.shape[1]], weight, weight, 1e-5)
    return weight, mean, rstd


def layer_norm_gradient(mask):
    def backward(x, weight, mean, rstd, dy):
        return torch.ops.aten.native_layer_norm_backward(dy, x, [x.shape[1]], mean, rstd, weight, weight, mask)
    return backward


def embedding(case, dtype):
    ids = torch.randint(case["table_rows"], (case["rows"],), device="cuda")
    return [normal((case["table_rows"], case["columns"]), dtype), ids], lambda table, ids: functional.embedding(ids, table)


def embedding_backward(case, dtype):
    ids = torch.randint(case["table_rows"], (case["rows"],), device="cuda")
    return ([normal((case["rows"], case["columns"]), dtype), ids],
            lambda dy, ids: torch.ops.aten.embedding_dense_backward(dy, ids, case["table_rows"], -1, False))


def product(case, dtype):
    if case["op"] == "linear":
        return ([normal((case["batch"] * case["m"], case["k"]), dtype), normal((case["n"], case["k"]), dtype),
                 normal((case["n"],), dtype)], functional.linear)
    if case["op"] == "gemm":  # the gradient of a weight: dy transposed times x
        return [normal((case["k"], case["m"]), dtype), normal((case["k"], case["n"]), dtype)], lambda a, b: a.t() @ b
    return [normal((case["batch"], case["m"], case["k"]), dtype), normal((case["batch"], case["k"], case["n"]), dtype)], torch.bmm


def attention(case, dtype):
    def heads(count, length):
        return normal((case["batch"], count, length, case["head_dim"]), dtype, case["op"] == "attention_backward")
    q, k = heads(case["heads"], case["queries"]), heads(case["kv_heads"], case["keys"])
    v = heads(case["kv_heads"], case["keys"])

    def forward(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=bool(case["causal"]),
                                                       enable_gqa=case["heads"] != case["kv_heads"])
    if case["op"] != "attention_backward":
        return [q, k, v], forward
    out = forward(q, k, v)
    dy = torch.ones_like(out)
    return [q, k, v], lambda q, k, v: torch.autograd.grad(out, (q, k, v), dy, retain_graph=True)


def optimizer(case, dtype):
    """AdamW of as many equal weights as `rows`, of `columns` elements each."""
    weights = [torch.nn.Parameter(normal((case["columns"],), dtype)) for _ in range(case["rows"])]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    steps = torch.optim.AdamW(weights, capturable=True, **{case["op"].removeprefix("adamw_"): True})
    return [weights[0].detach()], lambda _: steps.step()


MAKERS = {
    "softmax": of_rows(lambda x, n: torch.softmax(x, -1)),
    "softmax_backward": with_saved(lambda x: [torch.softmax(x, -1)],
                                   lambda x, y, dy: torch._softmax_backward_data(dy, y, -1, x.dtype)),
    "layer_norm": with_saved(layer_norm_parts, lambda x, w, mean, rstd, dy: functional.layer_norm(x, [x.shape[1]], w, w)),
    "layer_norm_backward": with_saved(layer_norm_parts, layer_norm_gradient([True, False, False])),
    "layer_norm_weight_backward": with_saved(layer_norm_parts, layer_norm_gradient([False, True, True])),
    "rms_norm": with_saved(layer_norm_parts, lambda x, w, mean, rstd, dy: functional.rms_norm(x, [x.shape[1]], w)),
    "reduce_sum": of_rows(lambda x, n: x.sum(-1)),
    "reduce_mean": of_rows(lambda x, n: x.mean(-1)),
    "gelu": pointwise(functional.gelu), "silu": pointwise(functional.silu), "relu": pointwise(functional.relu),
    "tanh": pointwise(torch.tanh), "mul_scalar": pointwise(lambda x: x * 0.5), "add": pointwise(torch.add, 2),
    "mul": pointwise(torch.mul, 2), "div": pointwise(torch.div, 2),
    "copy": pointwise(lambda x: x.clone()), "dropout": pointwise(lambda x: torch.native_dropout(x, 0.1, True)),
    "integer_pow": pointwise(lambda x: x.pow(2)), "cast": pointwise(lambda x: x.to(torch.float32)),
    "activation_backward": pointwise(lambda dy, x: torch.ops.aten.gelu_backward(dy, x), 2),
    "embedding": embedding, "embedding_backward": embedding_backward,
    "linear": product, "gemm": product, "matmul": product, "attention": attention, "attention_backward": attention,
    "adamw_fused": optimizer, "adamw_foreach": optimizer,
}

# Hidden sizes, feed-forward sizes, vocabularies and lengths of published models, and odd ones between.
WIDTHS = (64, 128, 197, 512, 768, 1024, 1280, 2048, 4096, 8192, 14336, 32000, 50257, 128256)
HEIGHTS = (1, 16, 96, 512, 1024, 2048, 4096, 8192, 32768, 131072, 1048576)
PRODUCT_DIMENSIONS = (16, 64, 77, 128, 197, 256, 512, 768, 1000, 1024, 1280, 2048, 3072, 4096, 5120, 8192, 11008, 50257)


def draw_cases():
    """All cases in a seeded random order."""
    rng = random.Random("tilecast, kernels of PyTorch")
    cases = []

    def add(op, dtype, most=2 ** 31, **sizes):
        if sizes.get("rows", 1) * sizes.get("columns", 1) <= most:
            cases.append(dict(op=op, dtype=dtype, **sizes))

    for dtype in DTYPES:
        for op in list(MAKERS)[:21]:
            for _ in range(11 if op in list(MAKERS)[:8] else 6):
                if (op, dtype) != ("cast", "fp32"):
                    add(op, dtype, 2 ** 29, rows=rng.choice(HEIGHTS), columns=rng.choice(WIDTHS))
        for op in ("embedding", "embedding_backward"):
            for _ in range(8):
                add(op, dtype, 2 ** 28, rows=rng.choice((128, 1024, 4096, 16384)), columns=rng.choice((768, 2048, 4096)),
                    table_rows=rng.choice((30522, 50257, 128256)))
        for op, count in (("linear", 60), ("gemm", 40), ("matmul", 40)):
            for _ in range(count):
                m, n, k = (rng.choice(PRODUCT_DIMENSIONS) for _ in range(3))
                batch = rng.choice((8, 12, 48, 96, 128, 320)) if op == "matmul" else 1
                if op == "matmul":
                    m, n, k = min(m, 2048), min(n, 2048), min(k, 2048)
                if 2.0 * batch * m * n * k < 4e12:
                    add(op, dtype, batch=batch, m=m, n=n, k=k, trans_a=int(op == "gemm"))
        for op in ("attention", "attention_backward"):
            for _ in range(40 if dtype == "bf16" else 12):
                heads = rng.choice((12, 16, 32))
                length = rng.choice((64, 128, 197, 256, 512, 1024, 2048, 4096, 8192))
                add(op, dtype, batch=rng.choice((1, 2, 4, 8, 16)), heads=heads, queries=length, keys=length,
                    kv_heads=rng.choice((heads, heads, heads // 4)), head_dim=rng.choice((64, 64, 128, 96)), causal=rng.choice((0, 1)))
        for op in ("adamw_fused", "adamw_foreach"):
            for columns in (768, 2 ** 16, 2 ** 20, 2 ** 23):
                for rows in (1, 16, 148, 400):
                    add(op, dtype, 2 ** 30, rows=rows, columns=columns)
    unique = list({tuple(sorted(case.items())): case for case in cases}.values())
    rng.shuffle(unique)
    return unique


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def kernels_of(call):
    """(number of kernels of one run, name of the longest)."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    events = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    longest = max(events, key=lambda e: e.device_time, default=None)
    return len(events), longest.name[:200] if longest else ""


def measure(case, l2_bytes, profiled):
    dtype = DTYPES[case["dtype"]]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # backward runs on the stream of its forward
        made = [MAKERS[case["op"]](case, dtype)]
        size = bytes_of(made[0][0])
        if size > MOST_BYTES:
            raise ValueError("too large")
        # An optimizer's states are not among the operands: it runs alone, and is cold where it is larger than the cache.
        copies = 1 if case["op"].startswith("adamw") else min(MOST_COPIES, int(2 * l2_bytes / size) + 1)
        made += [MAKERS[case["op"]](case, dtype) for _ in range(copies - 1)]
        for operands, function in made[:2]:
            function(*operands)
    torch.cuda.synchronize()
    row = {}
    if profiled:
        with torch.cuda.stream(stream):
            row["kernel_count"], row["kernel_name"] = kernels_of(lambda: made[0][1](*made[0][0]))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for operands, function in made:
            function(*operands)
    graph.replay()
    torch.cuda.synchronize()
    times, spent = [], 0.0
    while len(times) < REPLAYS[0] or (spent < REPLAY_SECONDS and len(times) < REPLAYS[1]):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / copies)
        spent += times[-1] * copies
    quartiles = statistics.quantiles(times, n=4)
    return {**row, "latency_s": f"{quartiles[1]:.6g}", "p25_s": f"{quartiles[0]:.6g}", "p75_s": f"{quartiles[2]:.6g}",
            "runs": len(times), "launches": copies}


def driver():
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", required=True, help="the device's id in data/devices")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--seconds", type=float, default=200)
    args = parser.parse_args()
    begin = time.perf_counter()
    card = torch.cuda.get_device_properties(0)
    with open(args.output, "w", newline="", encoding="utf-8") as stream:
        facts = {"measured_by": "measure/torch_ops.py", "gpu_name": card.name, "driver": driver(), "torch": torch.__version__,
                 "torch_cuda": torch.version.cuda, "torch_cudnn": torch.backends.cudnn.version(),
                 "date": time.strftime("%Y-%m-%d"), "family": "torch_ops"}
        stream.writelines(f"# {key}: {value}\n" for key, value in facts.items())
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        done = 0
        for case in draw_cases():
            start = time.perf_counter()
            if start - begin > args.seconds:
                break
            row = {"gpu": args.gpu, **case, "load": "burst", "l2": "cold", "status": "ok"}
            try:
                row.update(measure(case, card.L2_cache_size, "attention" in case["op"] or done % 4 == 0))
            except torch.OutOfMemoryError:
                row["status"] = "out_of_memory"
            except Exception as error:  # of the library: recorded, the next case goes on
                row.update(status="failed", detail=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
            torch.cuda.empty_cache()
            row["wall_s"] = f"{time.perf_counter() - start:.3f}"
            writer.writerow(row)
            stream.flush()
            done += 1
    print(f"{done} of {len(draw_cases())} cases in {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
