"""Stage `grouped`: the products of experts in PyTorch, with what brings tokens to them and back.

kernels.csv: `grouped_gemm` is torch._grouped_mm, `mm_loop` one torch.mm an expert; m is the sum of the experts' rows, `groups` the
experts, `counts` the rows of each (`n*c`: n experts of c rows), n and k as in the forward product, `direction` forward,
input_gradient (m x n by n x k) or weight_gradient (an expert's k x rows by rows x n). `routing`: softmax in fp32 and top-k of `rows`
tokens; `permute`: index_select of `m` rows of tokens; `unpermute`: index_add of them; `sort_ids`: argsort and counts of the chosen experts.
"""

import random

import torch

from . import kernels
from .common import DTYPES, kernel_time, precision, rows_of

# hidden size, inner size, experts here, top-k
MODELS = {"mixtral-8x7b": (4096, 14336, 8, 2), "qwen3-30b-a3b": (2048, 768, 128, 8), "deepseek-v3": (7168, 2048, 32, 8),
          "olmoe-1b-7b": (2048, 1024, 64, 8)}
ROWS = (16384, 4096, 65536, 2048)


def counts_of(rows, groups, division):
    """Rows of each expert. uneven: shares of a random router, some experts get few or none."""
    if division == "even":
        return [rows // groups] * groups
    rng = random.Random(f"{rows} {groups}")
    shares = [rng.gammavariate(0.7, 1.0) for _ in range(groups)]
    counts = [int(rows * share / sum(shares)) for share in shares]
    counts[counts.index(max(counts))] += rows - sum(counts)
    return counts


def short(counts):
    return f"{len(counts)}*{counts[0]}" if len(set(counts)) == 1 else " ".join(map(str, counts))


def product_cases():
    cases = []
    for rows in ROWS:
        for model, (hidden, inner, groups, _) in MODELS.items():
            for division in ("even", "uneven"):
                for n, k in ((2 * inner, hidden), (hidden, inner)):
                    for direction in ("forward", "input_gradient", "weight_gradient"):
                        case = {"op": "grouped_gemm", "dtype": "bf16", "model": model, "direction": direction, "m": rows, "n": n, "k": k,
                                "groups": groups, "division": division}
                        cases.append(case)
                        if rows == 16384 and division == "uneven":
                            cases.append({**case, "op": "mm_loop"})
    return cases


def routing_cases():
    cases = []
    for tokens in (2048, 16384):
        for model, (hidden, _, groups, top) in MODELS.items():
            groups = 256 if model == "deepseek-v3" else groups
            shared = {"dtype": "bf16", "model": model, "rows": tokens, "columns": hidden, "groups": groups, "top_k": top}
            cases += [{"op": op, **shared, "m": tokens * top} for op in ("permute", "unpermute")]
            cases += [{"op": op, **shared, "dtype": "fp32"} for op in ("routing", "sort_ids")]
    return cases


def small(case):
    """Sizes for a dry run."""
    limits = {"m": 64, "n": 32, "k": 16, "rows": 32, "columns": 16, "groups": 8}
    return {key: min(value, limits[key]) if key in limits else value for key, value in case.items()}


def made_product(bench, case, counts):
    m, n, k, groups = (case[key] for key in ("m", "n", "k", "groups"))
    kind = DTYPES[case["dtype"]]
    ends = torch.tensor(counts, device=bench.device).cumsum(0).to(torch.int32)
    starts = [sum(counts[:index]) for index in range(groups)]
    x, weight, dy = (bench.uniform(shape, kind) for shape in ((m, k), (groups, k, n), (m, n)))
    if case["op"] == "grouped_gemm":
        if case["direction"] == "forward":
            return [x, weight, ends], lambda x, w, ends: torch._grouped_mm(x, w, offs=ends)
        if case["direction"] == "input_gradient":
            return [dy, weight, ends], lambda dy, w, ends: torch._grouped_mm(dy, w.transpose(-2, -1), offs=ends)
        return [x, dy, ends], lambda x, dy, ends: torch._grouped_mm(x.t(), dy, offs=ends)
    used = [(start, start + count, index) for index, (start, count) in enumerate(zip(starts, counts)) if count]
    if case["direction"] == "forward":
        return [x, weight], lambda x, w: [x[a:b] @ w[i] for a, b, i in used]
    if case["direction"] == "input_gradient":
        return [dy, weight], lambda dy, w: [dy[a:b] @ w[i].t() for a, b, i in used]
    return [x, dy], lambda x, dy: [x[a:b].t() @ dy[a:b] for a, b, i in used]


def made_routing(bench, case):
    tokens, hidden, groups, top = (case[key] for key in ("rows", "columns", "groups", "top_k"))
    chosen = torch.rand(tokens, groups, device=bench.device).topk(min(top, groups), -1).indices
    if case["op"] == "routing":
        def route(logits):
            weights, ids = torch.softmax(logits, -1).topk(min(top, groups), -1)
            return weights / weights.sum(-1, keepdim=True), ids
        return [bench.uniform((tokens, groups), torch.float32)], route
    if case["op"] == "sort_ids":
        def sort(ids):
            order = ids.flatten().argsort()
            return order, torch.zeros(groups, dtype=torch.int32, device=ids.device).scatter_add_(
                0, ids.flatten(), torch.ones_like(ids.flatten(), dtype=torch.int32)).cumsum(0)
        return [chosen], sort
    rows = chosen.flatten().argsort() // chosen.shape[1]
    if case["op"] == "permute":
        return [bench.uniform((tokens, hidden), torch.bfloat16), rows], lambda x, rows: x.index_select(0, rows)
    out = torch.zeros((tokens, hidden), dtype=torch.bfloat16, device=bench.device)
    return [bench.uniform((rows.numel(), hidden), torch.bfloat16), rows, out], lambda y, rows, out: out.index_add_(0, rows, y)


def run(bench):
    precision("bf16")
    products, routing = product_cases(), routing_cases()
    cases = products[:len(products) // 4] + routing + products[len(products) // 4:]
    if bench.small:
        cases = [small(case) for case in (products[:12] + products[24:36] + products[-3:] + routing[:8])]

    def measure(case):
        if case["op"] in ("grouped_gemm", "mm_loop"):
            counts = counts_of(case["m"], case["groups"], case["division"])
            return {**kernel_time(bench, lambda: made_product(bench, case, counts)), "counts": short(counts)}
        return kernel_time(bench, lambda: made_routing(bench, case))
    return rows_of(bench, kernels.table(bench), cases, measure)
