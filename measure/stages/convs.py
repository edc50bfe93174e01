"""Stage `convs`: single convolutions in three directions, and other operators of image models, embeddings and optimizers.

kernels.csv: `conv_forward`, `conv_backward_data`, `conv_backward_weight` (aten::convolution and convolution_backward, cudnn.benchmark
off), stored by pixel where `channels_last` is 1. Others: `direction` forward or backward (autograd's, all gradients that exist).
"""

import random

import torch
from torch.nn import functional

from . import kernels
from .common import DTYPES, gradient, kernel_time, precision, rows_of

# channels, side of the image, filters, kernel, stride, padding, groups
SHAPES = [
    (32, 112, 32, 3, 1, 1, 32), (144, 56, 144, 3, 1, 1, 144), (240, 28, 240, 5, 1, 2, 240), (672, 14, 672, 5, 1, 2, 672),
    (96, 112, 96, 3, 2, 1, 96), (96, 56, 96, 7, 1, 3, 96), (384, 14, 384, 7, 1, 3, 384), (768, 7, 768, 7, 1, 3, 768),
    (1152, 7, 1152, 3, 1, 1, 1152), (256, 56, 256, 3, 1, 1, 32), (512, 28, 512, 3, 1, 1, 32), (1024, 14, 1024, 3, 1, 1, 32),
    (216, 28, 216, 3, 1, 1, 9), (576, 14, 576, 3, 1, 1, 24), (64, 56, 256, 1, 1, 0, 1), (256, 56, 64, 1, 1, 0, 1), (512, 28, 128, 1, 1, 0, 1),
    (1024, 14, 2048, 1, 2, 0, 1), (2048, 7, 512, 1, 1, 0, 1), (144, 56, 24, 1, 1, 0, 1), (24, 56, 144, 1, 1, 0, 1), (960, 7, 160, 1, 1, 0, 1),
    (32, 112, 64, 3, 1, 1, 1), (24, 112, 24, 3, 1, 1, 1), (64, 56, 64, 3, 1, 1, 1), (128, 28, 128, 3, 1, 1, 1), (256, 14, 256, 3, 1, 1, 1),
    (512, 7, 512, 3, 1, 1, 1), (128, 56, 128, 3, 2, 1, 1), (320, 64, 320, 3, 1, 1, 1), (3, 224, 64, 7, 2, 3, 1), (3, 224, 32, 3, 2, 1, 1),
    (3, 224, 768, 16, 16, 0, 1), (3, 224, 96, 4, 4, 0, 1), (96, 56, 192, 2, 2, 0, 1), (32, 56, 192, 3, 1, 1, 1)]
DIRECTIONS = ("conv_forward", "conv_backward_data", "conv_backward_weight")


def conv_cases():
    rng = random.Random("tilecast, convolutions of PyTorch")
    cases = []
    for channels, side, filters, kernel, stride, padding, groups in SHAPES:
        for dtype in ("fp32", "tf32", "fp16", "bf16"):
            for channels_last in (0, 1):
                for op in DIRECTIONS:
                    if channels == 3 and op == "conv_backward_data":
                        continue
                    cases.append({"op": op, "dtype": dtype, "batch": rng.choice((16, 64, 64, 128)), "channels": channels, "height": side,
                                  "width": side, "filters": filters, "kernel_height": kernel, "kernel_width": kernel, "stride": stride,
                                  "padding": padding, "groups": groups, "channels_last": channels_last})
    rng.shuffle(cases)
    return cases


def image(bench, batch, channels, side, dtype, channels_last, grad=False):
    if bench.small:
        batch, side = 2, min(side, 32)
    x = bench.uniform((batch, channels, side, side), DTYPES[dtype])
    x = x.to(memory_format=torch.channels_last) if channels_last else x
    return x.requires_grad_(grad)


def made_conv(bench, case):
    x = image(bench, case["batch"], case["channels"], case["height"], case["dtype"], case["channels_last"])
    w = bench.uniform((case["filters"], case["channels"] // case["groups"], case["kernel_height"], case["kernel_width"]), x.dtype)
    w = w.to(memory_format=torch.channels_last) if case["channels_last"] else w
    stride, padding, groups = [case["stride"]] * 2, [case["padding"]] * 2, case["groups"]
    if case["op"] == "conv_forward":
        return [x, w], lambda x, w: torch.ops.aten.convolution(x, w, None, stride, padding, [1, 1], False, [0, 0], groups)
    dy = torch.empty_like(functional.conv2d(x, w, None, stride, padding, 1, groups)).uniform_(-1, 1)
    mask = [case["op"] == "conv_backward_data", case["op"] == "conv_backward_weight", False]
    return [x, w, dy], lambda x, w, dy: torch.ops.aten.convolution_backward(dy, x, w, None, stride, padding, [1, 1], False, [0, 0], groups, mask)


def norm_or_pool(bench, case):
    """(operands, function, operands with a gradient)"""
    backward = case["direction"] == "backward"
    x = image(bench, case["batch"], case["channels"], case["height"], case["dtype"], case["channels_last"], backward)
    channels = case["channels"]
    if case["op"] == "batch_norm":
        weight, bias = (bench.uniform((channels,), torch.float32, backward) for _ in range(2))
        mean, variance = torch.zeros(channels, device=bench.device), torch.ones(channels, device=bench.device)
        training = case["mode"] == "training"
        return [x, weight, bias], lambda x, w, b: functional.batch_norm(x, mean, variance, w, b, training, 0.1, 1e-5), [0, 1, 2]
    if case["op"] == "group_norm":
        weight, bias = (bench.uniform((channels,), x.dtype, backward) for _ in range(2))
        return [x, weight, bias], lambda x, w, b: functional.group_norm(x, 32, w, b, 1e-5), [0, 1, 2]
    function = {"max_pool": lambda x: functional.max_pool2d(x, 3, 2, 1), "avg_pool": lambda x: functional.avg_pool2d(x, 2, 2),
                "global_avg_pool": lambda x: functional.adaptive_avg_pool2d(x, 1),
                "interpolate_nearest": lambda x: functional.interpolate(x, scale_factor=2.0, mode="nearest"),
                "interpolate_bilinear": lambda x: functional.interpolate(x, scale_factor=2.0, mode="bilinear")}[case["op"]]
    return [x], function, [0]


def image_cases():
    cases = []
    for op, shapes in {"batch_norm": ((64, 112, 64), (256, 56, 64), (512, 14, 128), (2048, 7, 128), (96, 112, 128)),
                       "group_norm": ((320, 64, 8), (128, 128, 16)), "max_pool": ((64, 112, 128),), "avg_pool": ((256, 56, 64),),
                       "global_avg_pool": ((2048, 7, 256), (1280, 7, 128)), "interpolate_nearest": ((256, 32, 16),),
                       "interpolate_bilinear": ((64, 64, 16),)}.items():
        for channels, side, batch in shapes:
            for dtype in ("fp32", "fp16", "bf16"):
                for channels_last in (1, 0):
                    for direction in ("forward", "backward"):
                        if dtype == "bf16" and op != "batch_norm":
                            continue
                        case = {"op": op, "dtype": dtype, "direction": direction, "batch": batch, "channels": channels, "height": side,
                                "width": side, "channels_last": channels_last, "mode": "training" if op == "batch_norm" else ""}
                        cases.append(case)
                        if op == "batch_norm" and direction == "forward" and channels_last:
                            cases.append({**case, "mode": "inference"})
    return cases


def row_cases():
    cases = []
    for rows, columns, top in ((128, 128256, 1), (128, 128256, 50), (4096, 128, 8), (16384, 64, 8), (1024, 32000, 10), (16, 1048576, 100)):
        cases.append({"op": "top_k", "dtype": "fp32", "rows": rows, "columns": columns, "top_k": top})
    for rows, columns in ((1, 2 ** 20), (1, 2 ** 24), (128, 128256), (16384, 256), (1, 65536)):
        cases += [{"op": "sort", "dtype": dtype, "rows": rows, "columns": columns} for dtype in ("fp32", "int64")]
    for rows, columns, table in ((2048, 128, 10 ** 6), (16384, 64, 10 ** 6), (65536, 128, 4 * 10 ** 6), (2048, 128, 10 ** 4)):
        for bag in (1, 20):
            cases += [{"op": "embedding_bag", "dtype": "fp32", "direction": direction, "rows": rows, "columns": columns, "table_rows": table,
                       "k": bag} for direction in ("forward", "backward")]
    for rows, columns in ((8192, 32000), (4096, 128256), (16384, 50257), (128, 1000)):
        for dtype in ("fp32", "bf16"):
            cases += [{"op": "cross_entropy", "dtype": dtype, "direction": direction, "rows": rows, "columns": columns}
                      for direction in ("forward", "backward")]
    for tensors, elements in ((160, 160_000), (200, 550_000), (500, 60_000), (146, 7_500_000), (1000, 5_000)):
        cases += [{"op": op, "dtype": "fp32", "tensors": tensors, "elements": elements}
                  for op in ("adamw_fused", "adamw_foreach", "adamw_forloop", "sgd_fused", "sgd_foreach", "sgd_forloop")]
    return cases


def small(case):
    limits = {"rows": 32, "columns": 64, "table_rows": 100, "tensors": 3, "elements": 100, "top_k": 8}
    return {key: min(value, limits[key]) if key in limits else value for key, value in case.items()}


def made_rows(bench, case):
    """(operands, function, operands with a gradient)"""
    backward = case.get("direction") == "backward"
    if case["op"] == "top_k":
        return [bench.uniform((case["rows"], case["columns"]), torch.float32)], lambda x: torch.topk(x, case["top_k"]), []
    if case["op"] == "sort":
        shape = (case["rows"], case["columns"])
        x = bench.uniform(shape, torch.float32) if case["dtype"] == "fp32" else torch.randint(2 ** 40, shape, device=bench.device)
        return [x], lambda x: torch.sort(x, -1), []
    if case["op"] == "embedding_bag":
        table = bench.uniform((case["table_rows"], case["columns"]), torch.float32, backward)
        ids = torch.randint(case["table_rows"], (case["rows"], case["k"]), device=bench.device)
        return [table, ids], lambda table, ids: functional.embedding_bag(ids, table, mode="sum"), [0]
    x = bench.uniform((case["rows"], case["columns"]), DTYPES[case["dtype"]], backward)
    labels = torch.randint(case["columns"], (case["rows"],), device=bench.device)
    return [x, labels], lambda x, labels: functional.cross_entropy(x, labels), [0]


def made_optimizer(bench, case):
    name, _, how = case["op"].partition("_")
    weights = [torch.nn.Parameter(bench.uniform((case["elements"],), torch.float32)) for _ in range(case["tensors"])]
    for weight in weights:
        weight.grad = bench.uniform(weight.shape, torch.float32)
    way = {"fused": {"fused": True}, "foreach": {"foreach": True}, "forloop": {"foreach": False}}[how]
    if name == "adamw":
        optimizer = torch.optim.AdamW(weights, lr=1e-4, capturable=not bench.dry, **way)
    else:
        optimizer = torch.optim.SGD(weights, lr=1e-4, momentum=0.9, **way)
    optimizer.step()  # makes its states
    return [weight.detach() for weight in weights], lambda *_: optimizer.step()


def measured(bench, case):
    precision(case["dtype"])
    torch.backends.cudnn.benchmark = False
    if case["op"].startswith("conv_"):
        return kernel_time(bench, lambda: made_conv(bench, case))
    if "tensors" in case:
        return kernel_time(bench, lambda: made_optimizer(bench, case), alone=True)

    def make():
        operands, function, wanted = (made_rows if "rows" in case else norm_or_pool)(bench, case)
        return gradient(function, operands, wanted) if case.get("direction") == "backward" else (operands, function)
    return kernel_time(bench, make)


def run(bench):
    convolutions, others = conv_cases(), image_cases() + row_cases()
    random.Random("tilecast, others").shuffle(others)
    # One other operator after three convolutions: the deadline leaves some of each.
    cases = []
    while convolutions or others:
        cases += convolutions[:3] + others[:1]
        convolutions, others = convolutions[3:], others[1:]
    if bench.small:
        seen, few = set(), []
        for case in cases:
            kind = (case["op"], case.get("direction"), case.get("channels_last") if len(seen) < 30 else "", case.get("mode"))
            if kind not in seen:
                seen.add(kind)
                few.append(small(case))
        cases = few
    return rows_of(bench, kernels.table(bench), cases, lambda case: measured(bench, case), reserve_s=0.5)
