#!/usr/bin/env python3
"""The memory plan of imported vision models in training against exact counts of PyTorch's memory on fake tensors.

    research/models/memory_imported.py build/release/tilecast

Counts as tests/pytorch/memory_reference.py does: two steps with AdamW, every storage from its making to its last reference. The model runs on
fake CPU tensors with CUDA's forms of composite operators (python/tilecast/torch/cuda_forms.py), so any build of PyTorch will do. Weights,
gradients (but for tensors that gradients share) and optimizer states must be exact. Exit status 1 if they are not, or if the mean error of the peaks is above 3 %. Needs torch
and timm.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/pytorch"))
import comparison  # noqa: E402

MOST_MEAN_PERCENT = 3.0
SHARED_GRADIENTS = 1e-3
BATCH = 16
MODELS = """resnet18 resnet50 resnext50_32x4d densenet121 vgg16 inception_v3 mobilenetv2_100 mobilenetv3_large_100 efficientnet_b0
tf_efficientnetv2_s regnetx_008 regnety_008 nfnet_f0 convnext_tiny convnextv2_tiny vit_tiny_patch16_224 vit_base_patch16_224
deit3_small_patch16_224 beit_base_patch16_224 swin_tiny_patch4_window7_224 pvt_v2_b0 poolformer_s12 mixer_s16_224 coatnet_0_rw_224
ghostnet_100""".split()


def count(name):
    """The ledger of two steps, as memory_reference.run writes it."""
    import memory_reference
    import timm
    import torch
    from tilecast_torch import package
    from torch._subclasses.fake_tensor import FakeTensorMode
    ledger = memory_reference.Ledger("cpu")
    with torch.device("meta"):
        model = timm.create_model(name).train()
    with (FakeTensorMode(allow_non_fake_inputs=True), package.fakes.fake_module(model, {}), package.cuda_forms.cuda_forms()):
        images = torch.empty(BATCH, *model.pretrained_cfg["input_size"])
        for kind, tensors in (("parameter", model.parameters()), ("buffer", model.buffers()), ("input", [images])):
            for tensor in tensors:
                ledger.own(tensor, kind, kind)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True)
        ledger.mark("start")
        with memory_reference.follow(ledger):
            output = model(images)
            ledger.mark("forward")
            torch.autograd.backward([output], [output.detach()])
            del output
            memory_reference.own_gradients(ledger, model)
            ledger.mark("backward")
            optimizer.step()
            memory_reference.own_states(ledger, optimizer)
            ledger.mark("states")
            optimizer.step()
            ledger.mark("optimizer")
            model.zero_grad(set_to_none=True)
            ledger.mark("end")
    return ledger


def reference(name):
    """(peak, bytes by kind) of the second step."""
    import memory_reference
    events, bounds = memory_reference.two_steps(count(name))
    peaks, _ = memory_reference.replay(events, bounds)
    living = memory_reference.living(events, bounds["backward"][1])
    kinds = {kind: sum(record.bytes for record in living if record.kind == kind) for kind in ("parameter", "buffer", "gradient",
                                                                                             "optimizer")}
    return {phase: peak for phase, (peak, _) in peaks.items()}, kinds


def plan(tilecast, name):
    import timm
    import torch
    from tilecast_torch import package
    with torch.device("meta"):
        model = timm.create_model(name)
        images = torch.zeros(BATCH, *model.pretrained_cfg["input_size"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tcg"
        path.write_text(package.export_graph(model, (images,), mode="training"))
        return comparison.forecast(tilecast, path, "--mode", "training", "--optimizer", "adamw", "--optimizer-impl", "foreach", gpu="H200")["memory"]


def main():
    args = comparison.parser(__doc__).parse_args()
    if not comparison.has_packages("torch", "timm"):
        return 0
    errors, failed = [], 0
    print(f"{'model':34} {'exact MiB':>10} {'plan MiB':>10} {'peak %':>8}")
    for name in MODELS:
        if not comparison.is_chosen(name, args.only):
            continue
        peaks, kinds = reference(name)
        memory = plan(args.tilecast, name)
        exact, ours = max(peaks.values()), memory["peak_bytes"] - memory["framework_bytes"] - memory["workspace_bytes"]
        wrong = [what for what, same in (
            ("weights", memory["weights_bytes"] == kinds["parameter"] + kinds["buffer"]),
            # Where gradients of parameters are parts of one tensor, PyTorch keeps the whole.
            ("gradients", abs(memory["gradients_bytes"] / kinds["gradient"] - 1) < SHARED_GRADIENTS),
            ("optimizer", memory["optimizer_bytes"] == kinds["optimizer"])) if not same]
        failed += bool(wrong)
        errors.append(comparison.percent(ours, exact))
        print(f"{name:34} {exact / 2**20:10.1f} {ours / 2**20:10.1f} {errors[-1]:+8.2f}"
              + (f"  not exact: {', '.join(wrong)}" if wrong else ""), flush=True)
    mean = sum(map(abs, errors)) / max(1, len(errors))
    print(f"{len(errors)} models: mean {mean:.2f} %, worst {max(map(abs, errors), default=0):.2f} %")
    return 1 if failed or mean > MOST_MEAN_PERCENT or not errors else 0


if __name__ == "__main__":
    sys.exit(main())
