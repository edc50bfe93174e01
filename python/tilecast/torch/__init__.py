"""Imports PyTorch modules as graphs of Tilecast, without weights and without a GPU.

    from tilecast.torch import export_graph
    text = export_graph(model, (images,), mode="training")   # Tilecast's graph notation
    open("model.tcg", "w").write(text)                       # tilecast forecast model.tcg --gpu H100 --mode training

The module runs once under fake tensors. The graph has the operators that eager PyTorch launches on a GPU, in their order: in training
also those of autograd, for the parameters that require a gradient.
"""
import warnings

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("tilecast.torch needs PyTorch, which is not installed: pip install torch") from error

from . import operators
from .tracing import TraceError, trace
from .writer import Writer

__all__ = ["TraceError", "export_graph"]


def export_graph(module, args=(), kwargs=None, *, mode="inference", loss=None, replace=None, autocast=None, name=None):
    """The graph of one forward pass (mode "inference") or of a forward and backward pass (mode "training") as text.

    module    an nn.Module on any device, also on the meta device; its weights are not read
    args      example inputs, a tuple; shapes and dtypes count, values do not. kwargs: by name
    loss      training: a function of the module's output that gives the loss. Without it, the output's own loss (`output.loss`) is
              used; if there is none, the gradients of the outputs are taken as given
    replace   {class or name of a module: function(module, *args, **kwargs)}: runs instead of its forward, where that cannot be traced
    autocast  torch.bfloat16 or torch.float16: the forward pass runs under CUDA's autocast to this dtype
    name      of the graph; default: the module's class

    Raises TraceError with the line of the module's code if it cannot be traced. Warns about operators that Tilecast does not know.
    """
    if mode not in ("inference", "training"):
        raise ValueError(f"mode: expected 'inference' or 'training', found {mode!r}")
    if not isinstance(module, _torch.nn.Module):
        raise TypeError(f"module: expected a torch.nn.Module, found {type(module).__name__}")
    if autocast not in (None, _torch.bfloat16, _torch.float16):
        raise ValueError(f"autocast: expected torch.bfloat16 or torch.float16, found {autocast!r}")
    args = args if isinstance(args, (tuple, list)) else (args,)
    traced = trace(module, args, kwargs or {}, training=mode == "training", loss=loss, replace=replace, autocast=autocast)
    writer = write(traced, name or type(module).__name__)
    for sentence, count in traced.assumptions.items():
        warnings.warn(f"{writer.name}: {sentence} ({count} times)", stacklevel=2)
    if writer.unmapped:
        listed = ", ".join(f"{operator} ({count} times)" for operator, count in sorted(writer.unmapped.items()))
        warnings.warn(f"{writer.name}: unknown operators, taken as one kernel each that reads and writes its tensors once: {listed}; "
                      "the forecast states their share of the time", stacklevel=2)
    return writer.text(traced.outputs)


def write(traced, name):
    """The Writer that has read a whole trace."""
    writer = Writer(name, operators)
    for stored in traced.stored:
        writer.declare(stored)
    writer.run(traced.events)
    return writer
