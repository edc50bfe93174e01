"""Stage `compiled`: some of timm's models under torch.compile (Inductor's default mode); rows of timm.csv with `compiled` 1."""

from . import images
from .common import rows_of


def run(bench):
    import torch
    table, ops = bench.table("timm.csv", images.COLUMNS), bench.table("timm_ops.csv", images.OP_COLUMNS)
    base = {"dtype": "amp16", "compiled": 1, "optimizer": "none", "cudnn_benchmark": 1, "image_size": 64 if bench.small else 224}
    listed = [{"model": "resnet50", "mode": "inference", "channels_last": 1, "batch": 256, **base},
              {"model": "vit_base_patch16_224", "mode": "inference", "channels_last": 0, "batch": 256, **base},
              {"model": "convnext_tiny", "mode": "inference", "channels_last": 1, "batch": 256, **base},
              {"model": "resnet50", "mode": "training", "channels_last": 1, "batch": 128, **base, "optimizer": "sgd"},
              {"model": "efficientnet_b0", "mode": "inference", "channels_last": 1, "batch": 256, **base},
              {"model": "mobilenetv3_large_100", "mode": "inference", "channels_last": 1, "batch": 256, **base},
              {"model": "vit_base_patch16_224", "mode": "training", "channels_last": 0, "batch": 64, **base, "optimizer": "sgd"}]
    if bench.small:
        listed = [{**listed[0], "model": "resnet10t"}]

    def measure(case):
        torch._dynamo.reset()
        return images.measure(bench, ops, case)
    return rows_of(bench, table, listed, measure, reserve_s=8.0)
