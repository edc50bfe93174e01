"""Stage `timm`: whole steps of timm's models with random weights, as its benchmark.py times them.

timm.csv: `dtype` amp16 is autocast to fp16 (timm's --amp), TF32 allowed, cudnn.benchmark on, steps synchronised one by one; `host_s` is
the time until the launches return, `kernels_s` the kernels of one step by the profiler. timm_ops.csv: that step's operators with shapes
and further arguments (`concrete`: strides, groups, ...), seconds of all their calls, and the kernel with most time.
"""

from . import images
from .common import rows_of

# One of each family first; the deadline cuts the end.
MODELS = ["resnet50", "efficientnet_b0", "vit_base_patch16_224", "convnext_tiny", "regnety_032", "swin_tiny_patch4_window7_224",
          "mobilenetv3_large_100", "densenet121", "mixer_b16_224", "seresnet50", "resnext50_32x4d", "efficientnetv2_rw_s", "resnet50d",
          "deit_small_patch16_224"]
SMALLER_BATCH = {"efficientnetv2_rw_s": 64, "densenet121": 64, "vit_base_patch16_224": 64, "mixer_b16_224": 64}


def cases():
    base = {"dtype": "amp16", "compiled": 0, "optimizer": "none", "cudnn_benchmark": 1}
    listed = []
    for part in (MODELS[:6], MODELS[6:]):
        for model in part:
            side = 288 if model == "efficientnetv2_rw_s" else 224
            listed.append({"model": model, "mode": "inference", "channels_last": 1, "batch": 256, "image_size": side, **base})
            listed.append({"model": model, "mode": "training", "channels_last": 1, "batch": SMALLER_BATCH.get(model, 128), "image_size": side,
                           **base, "optimizer": "sgd"})
            listed.append({"model": model, "mode": "inference", "channels_last": 0, "batch": 256, "image_size": side, **base})
    # Small steps, bound by the host; and bf16.
    for model in ("resnet50", "vit_base_patch16_224", "efficientnet_b0"):
        listed.append({"model": model, "mode": "inference", "channels_last": 1, "batch": 1, "image_size": 224, **base})
    listed += [{"model": model, "mode": "training", "channels_last": 1, "batch": 128, "image_size": 224, **base, "dtype": "amp",
                "optimizer": "sgd"} for model in ("resnet50", "convnext_tiny")]
    return listed


def run(bench):
    table, ops = bench.table("timm.csv", images.COLUMNS), bench.table("timm_ops.csv", images.OP_COLUMNS)
    listed = cases()
    if bench.small:
        listed = [case for case in listed if case["model"] in ("efficientnet_b0", "resnet50")][:5]
        listed = [{**case, "image_size": 64} for case in listed] + [{**listed[0], "model": "missing"}]
    return rows_of(bench, table, listed, lambda case: images.measure(bench, ops, case, 0.5), reserve_s=2.5)
