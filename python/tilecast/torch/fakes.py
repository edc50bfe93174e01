"""What a module is changed to while it is traced, and back: fake tensors, replaced modules, transformers' branches."""
import contextlib
import logging
import sys

import torch


class TraceError(RuntimeError):
    """The module could not be traced; the message says where and what to do."""


def fake_like(tensor, **options):
    """A fake tensor of the same shape and layout, on the CPU."""
    size, stride = tuple(tensor.shape), tuple(tensor.stride()) if tensor.layout == torch.strided else None
    if stride is None:
        raise TraceError(f"a tensor of layout {tensor.layout} is not supported; convert it to a dense tensor first")
    return torch.empty_strided(size, stride, dtype=tensor.dtype, device="cpu", **options)


@contextlib.contextmanager
def fake_module(module, copies):
    """Replaces parameters, buffers and other tensors of a module by fake ones; `copies` keeps them by the id of the original."""
    saved = []

    def copy(tensor):
        if id(tensor) not in copies:
            made = fake_like(tensor.detach())
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            copies[id(tensor)] = made
        return copies[id(tensor)]

    def swap(holder):
        for key, value in list(holder.items()):
            if isinstance(value, torch.Tensor):
                saved.append((holder, key, value))
                dict.__setitem__(holder, key, copy(value))

    try:
        for part in module.modules():
            for holder in (part._parameters, part._buffers, part.__dict__):
                swap(holder)
        yield
    finally:
        for holder, key, value in reversed(saved):
            dict.__setitem__(holder, key, value)


@contextlib.contextmanager
def quiet():
    """What fails is said in a TraceError, not in PyTorch's log too."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _batched_nms(boxes, scores, classes, threshold):
    """All classes in one call, as torchvision runs up to 100,000 numbers on CUDA (torchvision/ops/boxes.py, batched_nms). Its other branch
    has a call for each class that it finds, which a trace cannot know."""
    return sys.modules["torchvision.ops.boxes"]._batched_nms_coordinate_trick(boxes, scores, classes, threshold)


@contextlib.contextmanager
def eager_branches():
    """transformers and torchvision take other branches for fake tensors of the CPU than a GPU would see."""
    changed = []
    for name, attribute, value in (("transformers.utils.import_utils", "is_fake_tensor", lambda tensor: False),
                                   ("torchvision.ops.boxes", "_batched_nms_vanilla", _batched_nms)):
        module = sys.modules.get(name)
        before = getattr(module, attribute, None)
        if before is not None:
            changed.append((module, attribute, before))
            setattr(module, attribute, value)
    try:
        yield
    finally:
        for module, attribute, before in changed:
            setattr(module, attribute, before)


@contextlib.contextmanager
def replaced(module, replace):
    """Runs functions instead of the forward of modules, given by class or by name."""
    saved = []
    for name, part in module.named_modules():
        function = replace.get(name) or next((f for kind, f in replace.items() if isinstance(kind, type) and isinstance(part, kind)),
                                             None)
        if function is not None:
            saved.append((part, part.__dict__.get("forward")))
            part.forward = lambda *args, _f=function, _m=part, **kwargs: _f(_m, *args, **kwargs)
    try:
        yield
    finally:
        for part, before in saved:
            if before is None:
                del part.forward
            else:
                part.forward = before
