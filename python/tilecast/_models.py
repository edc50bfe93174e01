"""What a model can be given as."""
from __future__ import annotations

import json
import os
import sys

from . import _core
from ._errors import InputError, UnsupportedError


def _is_module(source) -> bool:
    torch = sys.modules.get("torch")  # whoever has a module has imported torch
    return torch is not None and isinstance(source, torch.nn.Module)


def _arguments(inputs) -> tuple[tuple, dict]:
    """The positional and keyword arguments of a module."""
    if isinstance(inputs, dict) or hasattr(inputs, "keys"):  # also the BatchEncoding of a tokenizer
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}


def _from_module(module, inputs, mode):
    if inputs is None:
        raise InputError(f"{type(module).__name__}: a torch.nn.Module needs example inputs: forecast(module, inputs=(x,), ...); "
                         "for a model of transformers, module.config can be forecast without them")
    from .torch import TraceError, export_graph
    args, kwargs = _arguments(inputs)
    try:
        text = export_graph(module, args, kwargs, mode=mode or "inference")
    except TraceError as error:
        raise UnsupportedError(str(error)) from error
    return _core.model_from_text(text, type(module).__name__ + ".tcg")


def load_model(source, inputs=None, mode=None):
    """A handle of the model."""
    if isinstance(source, _core.Model):
        return source
    if _is_module(source):
        return _from_module(source, inputs, mode)
    if inputs is not None:
        raise InputError(f"`inputs` are the example inputs of a torch.nn.Module; the model is a {type(source).__name__}")
    if isinstance(source, (str, os.PathLike)):
        return _core.load_model(os.fspath(source))
    if isinstance(source, _core.ModelEntry):
        return _core.load_model(source.name)
    if isinstance(source, dict):
        name = source.get("_name_or_path") or source.get("model_type") or "model"
        return _core.model_from_text(json.dumps(source), f"{name}/config.json")  # a model is named like its folder
    if hasattr(source, "to_dict") and hasattr(source, "model_type"):  # a PretrainedConfig
        return load_model(source.to_dict())
    raise TypeError("expected a name, a path, a config (a dict or one of transformers), a torch.nn.Module or a tilecast model, "
                    f"found {type(source).__name__}")
