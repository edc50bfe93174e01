"""Stage `transposed`: products with each operand transposed in memory against not. FP8 with one scale for a tensor.

kernels.csv: `trans_a` 1: a lies as [k, m]; `trans_b` 1: b lies as [n, k].
"""

import torch

from . import kernels
from .common import DTYPES, kernel_time, precision, rows_of

SHAPES = [(4096, 4096, 4096), (8192, 4096, 4096), (4096, 14336, 4096), (4096, 4096, 14336), (2048, 2048, 2048), (1024, 1024, 1024),
          (512, 8192, 2048), (128, 8192, 8192), (16, 8192, 8192), (8192, 1024, 8192), (768, 3072, 8192), (16384, 2048, 768)]


def lying(bench, rows, columns, transposed, kind):
    """[rows, columns] whose memory is by rows, or by columns where it is transposed."""
    shape = (columns, rows) if transposed else (rows, columns)
    made = bench.uniform(shape, torch.float32).to(kind) if kind == torch.float8_e4m3fn else bench.uniform(shape, kind)
    return made.t() if transposed else made


def made(bench, case):
    m, n, k = (min(case[key], 64) if bench.small else case[key] for key in ("m", "n", "k"))
    kind = torch.float8_e4m3fn if case["dtype"] == "fp8" else DTYPES[case["dtype"]]
    a, b = lying(bench, m, k, case["trans_a"], kind), lying(bench, k, n, case["trans_b"], kind)
    if case["dtype"] != "fp8":
        return [a, b], torch.mm
    one = torch.ones((), device=bench.device)
    return [a, b], lambda a, b: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def run(bench):
    cases = [{"op": "gemm", "dtype": dtype, "m": m, "n": n, "k": k, "trans_a": a, "trans_b": b}
             for m, n, k in SHAPES for dtype in ("bf16", "fp16") for a in (0, 1) for b in (0, 1)]
    cases += [{"op": "gemm", "dtype": "fp8", "m": m, "n": n, "k": k, "trans_a": 0, "trans_b": 1} for m, n, k in SHAPES]
    cases += [{"op": "gemm", "dtype": "fp8", "m": 4096, "n": 4096, "k": 4096, "trans_a": a, "trans_b": b} for a, b in ((0, 0), (1, 0), (1, 1))]
    cases += [{"op": "gemm", "dtype": dtype, "m": m, "n": n, "k": k, "trans_a": a, "trans_b": b}
              for m, n, k in SHAPES[:6] for dtype in ("fp32", "tf32") for a in (0, 1) for b in (0, 1)]

    def measure(case):
        precision(case["dtype"])
        return kernel_time(bench, lambda: made(bench, case))
    return rows_of(bench, kernels.table(bench), cases[::7] if bench.small else cases, measure)
