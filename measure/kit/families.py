"""The families of measurements: their columns, their cases, their share of the time."""

import dataclasses

from kit import design, zoo

SENSORS = ["sm_clock_hz", "memory_clock_hz", "power_w", "temperature_c", "throttle_reasons"]
LAUNCH = ["kernel_count", "kernel_name", "grid", "block", "shared_bytes", "registers", "blocks_per_sm"]
TIMES = ["latency_s", "p25_s", "p75_s", "runs", "launches"]
END = ["status", "detail", "wall_s"]


@dataclasses.dataclass(frozen=True)
class Family:
    """`inputs` are the columns that say what is measured, `outputs` what the worker answers."""

    name: str
    worker: str      # "kernels" or "models"
    share: float     # of the time while every family has cases left
    first_cost_s: float  # guess of a case's time before the first is measured
    inputs: list
    outputs: list
    cases: list

    @property
    def columns(self):
        return ["gpu", *self.inputs, *self.outputs, *END]


def _matmul():
    rng = design.generator("matmul")
    cases = []

    def add(op, dtype, batch, m, n, k, trans_a=0, trans_b=0, load="burst", l2="cold"):
        if dtype in ("fp8", "int8"):  # what cuBLASLt takes
            trans_a, trans_b, n, k, m = 0, 1, -(-n // 16) * 16, -(-k // 16) * 16, -(-m // 16) * 16
        if op == "linear":
            trans_a, trans_b = 0, 1
        # Long enough to see, short enough for a designed set: 4e13 is a second at 40 TFLOP/s.
        limit = 4e12 if dtype == "fp32" else 4e13
        if 2.0 * batch * m * n * k <= limit and batch * (m * n + m * k + n * k) < 2 ** 32:
            cases.append(dict(op=op, dtype=dtype, batch=batch, m=m, n=n, k=k, trans_a=trans_a,
                              trans_b=trans_b, load=load, l2=l2))

    dtypes = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8")
    weights = (6, 2, 2, 8, 5, 2)
    for _ in range(1500):
        dtype = rng.choices(dtypes, weights)[0]
        trans_a, trans_b = rng.choice(((0, 0), (0, 1), (0, 1), (1, 0), (1, 1)))
        add("gemm", dtype, 1, *(design.matrix_size(rng, 1 if i == 0 else 16, 16384) for i in range(3)),
            trans_a, trans_b, l2="warm" if rng.random() < 0.1 else "cold")
    for _ in range(500):
        size = lambda: design.matrix_size(rng, 16, 2048)  # noqa: E731
        trans_a, trans_b = rng.choice(((0, 0), (0, 1), (1, 0)))
        add("matmul", rng.choices(dtypes, weights)[0], design.log_uniform(rng, 2, 512), size(), size(),
            size(), trans_a, trans_b)
    for hidden, feed, heads, kv_heads, vocabulary in design.TRANSFORMERS:
        head = hidden // heads
        for tokens in (1, 8, 64, 512, 2048, 8192):
            for n, k in ((hidden + 2 * kv_heads * head, hidden), (hidden, hidden), (feed, hidden),
                         (hidden, feed), (vocabulary, hidden)):
                add("linear", rng.choices(dtypes, weights)[0], 1, tokens, n, k)
                # The gradients of a training step: of the input, of the weight.
                add("gemm", rng.choice(("fp32", "bf16")), 1, tokens, k, n)
                if tokens >= 512:
                    add("gemm", rng.choice(("fp32", "bf16")), 1, n, k, tokens, 1, 0)
        for positions in (128, 512, 1024, 2048):
            for dtype in ("fp32", "bf16"):
                add("matmul", dtype, heads * 4, positions, positions, head, 0, 1)
                add("matmul", dtype, heads * 4, positions, head, positions)
    # The peak: large square products, also under lasting load, where the power cap shows.
    for dtype in dtypes:
        for size in (2048, 4096, 8192, 16384):
            add("gemm", dtype, 1, size, size, size, 0, 1)
            if size <= 8192:
                add("gemm", dtype, 1, size, size, size, 0, 1, load="sustained")
    for _ in range(60):
        add("gemm", rng.choices(dtypes, weights)[0], 1,
            *(design.matrix_size(rng, 512, 8192) for _ in range(3)), 0, 1, load="sustained")
    return Family("matmul", "kernels", 0.26, 0.4,
                  ["op", "dtype", "batch", "m", "n", "k", "trans_a", "trans_b", "load", "l2"],
                  TIMES + ["tile", "tile_id", "stages_id", "split_k", "algorithm_id",
                           "workspace_bytes"] + LAUNCH + SENSORS,
                  design.in_random_order("matmul", cases))


def _convolution():
    rng = design.generator("convolution")
    cases = []
    directions = ("conv_forward", "conv_backward_data", "conv_backward_weight")
    layers = [(*layer, batch) for layer in design.CONVOLUTIONS for batch in (1, 8, 32, 128)]
    for _ in range(400):
        channels = design.matrix_size(rng, 8, 1024, 8)
        filters = design.matrix_size(rng, 8, 1024, 8)
        side = rng.choice((7, 14, 28, 56, 64, 112))
        layers.append((channels, filters, side, rng.choice((1, 3, 3, 5)), rng.choice((1, 1, 2)), 1,
                       design.log_uniform(rng, 1, 128)))
    for channels, filters, side, window, stride, groups, batch in layers:
        if batch * max(channels, filters) * side * side > 2 ** 29:
            continue
        for op in directions if rng.random() < 0.5 else directions[:1]:
            cases.append(dict(op=op, dtype=rng.choice(("fp32", "tf32", "bf16", "bf16", "fp16")),
                              batch=batch, channels=channels, height=side, width=side, filters=filters,
                              kernel_height=window, kernel_width=window, stride=stride,
                              padding=window // 2 if stride < window else 0, groups=groups,
                              load="burst", l2="cold"))
    return Family("convolution", "kernels", 0.09, 0.6,
                  ["op", "dtype", "batch", "channels", "height", "width", "filters", "kernel_height",
                   "kernel_width", "stride", "padding", "groups", "load", "l2"],
                  TIMES + ["algorithm_id", "workspace_bytes"] + LAUNCH + SENSORS,
                  design.in_random_order("convolution", cases))


def _attention():
    rng = design.generator("attention")
    cases = []
    heads_of = [(heads, kv_heads) for _, _, heads, kv_heads, _ in design.TRANSFORMERS] + [(8, 1), (32, 4)]
    for _ in range(700):
        heads, kv_heads = rng.choice(heads_of)
        stage = rng.choice(("prefill", "prefill", "decode", "encoder", "backward"))
        keys = design.matrix_size(rng, 16, 32768 if stage == "decode" else 8192)
        queries = 1 if stage == "decode" else keys
        batch = design.log_uniform(rng, 1, 128 if stage == "decode" else 32)
        if batch * heads * queries * keys > 2 ** 34 or batch * kv_heads * keys * 128 > 2 ** 32:
            continue
        cases.append(dict(op="attention_backward" if stage == "backward" else "attention",
                          dtype=rng.choice(("bf16", "bf16", "fp16")), batch=batch, heads=heads,
                          kv_heads=kv_heads, queries=queries, keys=keys,
                          head_size=rng.choice((64, 128, 128)),
                          causal=int(stage in ("prefill", "backward")), load="burst",
                          l2="warm" if rng.random() < 0.1 else "cold"))
    return Family("attention", "kernels", 0.11, 0.5,
                  ["op", "dtype", "batch", "heads", "kv_heads", "queries", "keys", "head_size", "causal",
                   "load", "l2"],
                  TIMES + ["algorithm_id", "workspace_bytes"] + LAUNCH + SENSORS,
                  design.in_random_order("attention", cases))


def _simple(name, ops, share, make):
    """A family of the kit's own kernels: m rows of n, in three dtypes, a tenth with a warm L2."""
    rng = design.generator(name)
    cases = []
    for op in ops:
        for _ in range(90):
            case = dict(op=op, dtype=rng.choice(("fp32", "fp32", "bf16", "fp16")), k="")
            case.update(make(rng, op), load="burst", l2="warm" if rng.random() < 0.1 else "cold")
            cases.append(case)
    inputs = ["op", "dtype", "m", "n", "k", "load", "l2"]
    if name == "movement":
        inputs = ["op", "dtype", "m", "n", "k", "pooling", "reuse", "load", "l2"]
    return Family(name, "kernels", share, 0.15, inputs, TIMES + LAUNCH + SENSORS,
                  design.in_random_order(name, cases))


def _pointwise_shape(rng, op):
    elements = design.log_uniform(rng, 1 << 10, 1 << 28)
    rows = min(elements, design.log_uniform(rng, 1, 1 << 14))
    shape = dict(m=rows, n=max(1, elements // rows))
    if op == "cast":
        shape["dtype"] = rng.choice(("fp32", "bf16"))
    return shape


def _rows_shape(rng, op):
    columns = design.matrix_size(rng, 16, 152064)
    rows = design.log_uniform(rng, 1, min(1 << 18, max(2, (1 << 28) // columns)))
    shape = dict(m=rows, n=columns)
    if op == "top_k":
        shape["k"] = min(columns, rng.choice((1, 8, 50)))
    return shape


def _movement_shape(rng, op):
    if op == "transpose":
        side = lambda: design.matrix_size(rng, 16, 16384)  # noqa: E731
        return dict(m=side(), n=side(), pooling="", reuse="")
    columns = design.log_uniform(rng, 16, 8192 if op == "embedding" else 512)
    table = design.log_uniform(rng, 1000, min(10_000_000, (1 << 30) // columns))
    shape = dict(m=design.log_uniform(rng, 64, 65536), n=columns, k=table, pooling="", reuse="")
    if op == "embedding_bag":
        shape["pooling"] = design.log_uniform(rng, 1, 128)
    # How often rows repeat: never, or with a Zipf-like histogram of 2^i-fold rows.
    if rng.random() < 0.5:
        looked_up = shape["m"] * (shape["pooling"] or 1)
        classes = max(1, min(15, looked_up.bit_length() - 4))
        shape["reuse"] = ":".join(str(max(1, looked_up // (classes * 4 ** i))) for i in range(classes))
    return shape


def _device():
    sizes = [1 << s for s in range(16, 32)] + [3 << s for s in range(16, 29)]
    cases = [dict(op=op, n=n, l2=l2) for op in ("read_bandwidth", "write_bandwidth", "copy_bandwidth")
             for n in sizes for l2 in ("warm", "cold")]
    cases += [dict(op=op, n=0, l2="warm") for op in ("empty_kernel", "launch_async", "launch_and_wait")]
    return Family("device", "kernels", 0.05, 0.1, ["op", "n", "l2"], TIMES + SENSORS,
                  design.in_random_order("device", cases))


def _models():
    return Family("models", "models", 0.24, 6,
                  ["model", "mode", "dtype", "attention", "compiled", "checkpointing", "optimizer",
                   "batch", "seq"],
                  ["latency_s", "p25_s", "p75_s", "runs", "forward_s", "backward_s", "optimizer_s",
                   "parameters", "steady_bytes", "peak_allocated_bytes", "peak_reserved_bytes",
                   "context_bytes", "config"] + SENSORS, zoo.cases())


def _model_kernels():
    return Family("model_kernels", "models", 0.03, 8,
                  ["model", "mode", "dtype", "attention", "compiled", "checkpointing", "optimizer",
                   "batch", "seq"],
                  ["kernel_name", "calls", "total_s"], zoo.profiled_cases())


def _pairs():
    return Family("pairs", "models", 0.03, 45,
                  ["model", "mode", "dtype", "batch", "seq", "other_model", "other_mode", "other_dtype",
                   "other_batch", "other_seq"],
                  ["alone_s", "other_alone_s", "together_s", "other_together_s"],
                  zoo.pair_cases())


def families():
    """All, in the order in which a tie for the next turn is broken."""
    return [
        _device(), _models(), _matmul(), _attention(), _convolution(),
        _simple("pointwise", ("copy", "cast", "add_scalar", "mul_scalar", "relu", "gelu", "silu", "tanh",
                              "add", "mul", "div", "addcmul"), 0.06, _pointwise_shape),
        _simple("rows", ("softmax", "layer_norm", "rms_norm", "reduce_sum", "top_k"), 0.07, _rows_shape),
        _simple("movement", ("transpose", "embedding", "embedding_bag"), 0.06, _movement_shape),
        _model_kernels(), _pairs(),
    ]
