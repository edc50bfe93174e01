"""Records the operators that eager PyTorch launches in one pass of a module, under fake tensors.

A dispatch mode sees every operator below autograd, forward and backward, in the order of their launches, with the shapes, layouts and
storages of their tensors. It also sees when each storage dies, so what autograd saves needs no rule. Nothing is computed, and no memory
is allocated for the tensors.
"""
import contextlib
import dataclasses
import os
import traceback
import weakref

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from .cuda_forms import cuda_forms
from .fakes import TraceError, eager_branches, fake_like, fake_module, quiet, replaced


@dataclasses.dataclass(frozen=True)
class View:
    """A tensor as an operator saw it: a part of a storage in some layout."""
    storage: int
    shape: tuple
    stride: tuple
    offset: int
    dtype: torch.dtype

    @property
    def elements(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self):
        return self.elements * self.dtype.itemsize

    @property
    def dense(self):
        """Whether the elements follow each other in memory in the order of the dimensions."""
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride)):
            if size != 1 and stride != step:
                return False
            step *= size
        return True


@dataclasses.dataclass
class Operator:
    """One call of an ATen operator; tensors in args and kwargs are Views."""
    name: str  # "aten.add"
    overload: str
    args: tuple
    kwargs: dict
    outputs: list  # View, or None for an output that is no tensor
    written: list  # Views of the arguments that it writes in place
    module: str
    phase: str
    position: int


@dataclasses.dataclass
class Freed:
    storage: int


@dataclasses.dataclass
class Gradient:
    """A parameter's gradient is complete."""
    parameter: str
    view: View


@dataclasses.dataclass
class Stored:
    """A parameter, buffer or input."""
    name: str
    kind: str  # "weight", "buffer", "input"
    view: View
    trained: bool


@dataclasses.dataclass
class Trace:
    events: list
    stored: list
    outputs: list  # Views of the tensors that the module returned
    assumptions: dict  # sentence: how often


def _given(func, args, name):
    """An argument of a call that was made without keywords; its default if it is left out."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return args[place] if place < len(args) else argument.default_value
    return None


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.events, self.assumptions, self.open = [], {}, True
        self.phase, self.modules, self.position = "forward", [], 0
        self._known, self._count, self._module_of_sequence = {}, 0, {}
        self.numbers = {}  # storage: the number that all its elements are, where the trace knows it

    def view(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._known:
            self._count += 1
            number = self._count
            self._known[key] = (number, weakref.ref(storage, lambda _: self._die(key, number)))
        return View(self._known[key][0], tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), tensor.dtype)

    def _die(self, key, number):
        self._known.pop(key, None)
        if self.open:
            self.events.append(Freed(number))

    def views(self, values):
        return tree_map_only(torch.Tensor, self.view, values)

    def _module(self):
        """The module whose code runs, or whose backward runs."""
        if self.phase == "forward":
            name = self.modules[-1] if self.modules else ""
            # autograd has just made the node of this operator; later operators without a node must not claim it.
            self._module_of_sequence.setdefault(torch.autograd._get_sequence_nr() - 1, name)
            return name
        node = torch._C._current_autograd_node()
        return self._module_of_sequence.get(node._sequence_nr(), "") if node is not None else ""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        schema = func._schema
        written = [] if torch.Tag.inplace_view in func.tags else self._written(schema, args, kwargs)
        given_args, given_kwargs = self.views(tuple(args)), self.views(dict(kwargs))
        module = self._module()
        try:
            result = func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            result = self._assume(func, args)
        outputs = []
        for value in result if isinstance(result, (tuple, list)) else (result,):
            for one in value if isinstance(value, (tuple, list)) else (value,):
                outputs.append(self.view(one) if isinstance(one, torch.Tensor) else None)
        self.position += 1
        self.events.append(Operator(f"{func.namespace}.{schema.name.split('::')[-1]}", func._overloadname, given_args, given_kwargs,
                                    outputs, written, module, self.phase, self.position))
        return result

    def _written(self, schema, args, kwargs):
        views = []
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            value = kwargs.get(argument.name) if argument.kwarg_only or place >= len(args) else args[place]
            for one in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(one, torch.Tensor):
                    views.append(self.view(one))
        return views

    def _assume(self, func, args):
        """Results that depend on the values of tensors, which fake tensors do not have."""
        name = func._schema.name
        if name == "aten::_local_scalar_dense" and args[0].dtype == torch.bool:
            self.note("a condition on values of tensors was taken to hold")
            return True
        if name == "aten::nonzero":
            self.note("all elements were taken to be nonzero where positions of nonzero elements are asked for")
            return torch.empty_strided((args[0].numel(), args[0].dim()), (1, args[0].numel()), dtype=torch.int64)
        if name == "aten::masked_select":
            self.note("all elements were taken to be selected by a mask")
            return torch.empty(torch.broadcast_shapes(args[0].shape, args[1].shape), dtype=args[0].dtype).flatten()
        if name == "aten::index" and any(index is not None and index.dtype == torch.bool for index in args[1]):
            self.note("all elements were taken to be selected by a mask")
            positions = []
            for index in args[1]:
                masks = index is not None and index.dtype == torch.bool
                positions += [torch.empty(index.numel(), dtype=torch.int64) for _ in index.shape] if masks else [index]
            return func(args[0], positions)
        if name == "aten::bincount" and _given(func, args, "minlength"):
            self.note("all numbers that `bincount` counts were taken to be below its `minlength`")
            weights = _given(func, args, "weights")
            return torch.empty(_given(func, args, "minlength"), dtype=torch.int64 if weights is None else weights.dtype)
        if name == "aten::_local_scalar_dense" and args[0].untyped_storage()._cdata in self.numbers:
            return self.numbers[args[0].untyped_storage()._cdata]
        if name == "aten::_unique2":
            self.note("all elements were taken to be distinct")
            flat = torch.empty(args[0].numel(), dtype=args[0].dtype)
            return flat, torch.empty(args[0].shape, dtype=torch.int64), torch.empty(args[0].numel(), dtype=torch.int64)
        if name == "torchvision::nms":
            self.note("all boxes were taken to be kept by non-maximum suppression")
            return torch.empty(args[0].shape[0], dtype=torch.int64)
        raise

    def note(self, sentence):
        self.assumptions[sentence] = self.assumptions.get(sentence, 0) + 1


@contextlib.contextmanager
def _named_modules(module, recorder):
    """Keeps the name of the module that runs in recorder.modules; that of a module with children ends in a dot."""
    handles = []

    def enter(name):
        return lambda *_: recorder.modules.append(name)

    def leave(*_):
        recorder.modules.pop()

    for name, part in module.named_modules():
        inner = next(part.children(), None) is not None
        handles.append(part.register_forward_pre_hook(enter(f"{name}." if inner and name else name)))
        handles.append(part.register_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _tensors_of(value):
    """All tensors of a module's result: of a tuple, a list, a dict or a data class."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for part in value for tensor in _tensors_of(part)]


def _backward(output, loss):
    """From the loss: that of the caller, or of the model's output. Without one, the gradients of the outputs are given; they share
    the outputs' memory, so they cost nothing."""
    if loss is None:
        loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if loss is not None:
        loss.backward()
        return
    heads = [tensor for tensor in _tensors_of(output) if tensor.requires_grad]
    if not heads:
        raise TraceError("no output of the module depends on a parameter that requires a gradient, so there is nothing to train; use "
                         "mode=\"inference\", or set requires_grad")
    torch.autograd.backward(heads, [head.detach() for head in heads])


def _explain(error, module):
    """Where the module's code failed, why, and what to do."""
    own = os.path.dirname(os.path.abspath(__file__)) + os.sep
    library = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep  # not torchvision, which begins alike
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if not frame.filename.startswith((own, library)) and not frame.filename.startswith("<")]
    where = f"{frames[-1].filename}:{frames[-1].lineno} ({frames[-1].line})" if frames else type(module).__name__
    why = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
    if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)) or "meta tensor" in why:
        why = f"the code needs the value of a tensor here, which a trace does not have ({why})"
        help_ = ("compute the value outside of the module and pass it as a Python number, or give `replace={SomeModule: function}` to "
                 "stand in for the part of the model")
    elif ".numpy() is not supported" in why:
        why = f"the code leaves PyTorch here: a trace has no values ({why})"
        help_ = "compute with tensors, or outside of the module, or give `replace={SomeModule: function}` to stand in for the part of the model"
    elif why.startswith("the derivative for") and why.endswith("is not implemented"):
        why = f"the module needs a gradient through an operator that has none in PyTorch ({why})"
        help_ = "call .detach() on its input where no gradient should flow, or trace with mode=\"inference\""
    elif "Couldn't load custom C++ ops" in why:
        why = f"torchvision's own operators are not there ({why.partition('.')[0]})"
        help_ = "install the torchvision that belongs to this PyTorch"
    else:
        help_ = "check that the example inputs fit the module: it must run in eager PyTorch with them"
    return TraceError(f"{where}: {why}; {help_}")


def trace(module, args, kwargs, *, training, loss=None, replace=None, autocast=None, modes=()):
    """Runs the module once, with its backward pass in training. `modes`: further dispatch modes that see the same operators."""
    recorder, copies, stored = Recorder(), {}, []
    was_training = {part: part.training for part in module.modules()}
    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(fake_module(module, copies))
        stack.enter_context(replaced(module, replace or {}))
        stack.enter_context(eager_branches())
        stack.enter_context(quiet())
        stack.enter_context(cuda_forms(recorder))
        stack.callback(lambda: [part.train(mode) for part, mode in was_training.items() if part.training != mode])
        module.train(training)
        handles = _store(module, args, kwargs, recorder, stored, training)
        args, kwargs = handles.args, handles.kwargs
        stack.callback(lambda: [hook.remove() for hook in handles.hooks])
        stack.enter_context(_named_modules(module, recorder))
        stack.enter_context(torch.set_grad_enabled(training))
        try:
            with recorder, contextlib.ExitStack() as watching:
                for mode in modes:
                    watching.enter_context(mode)
                with torch.autocast("cpu", autocast, enabled=autocast is not None):
                    output = module(*args, **kwargs)
                    target = loss(output) if training and loss is not None else None
                outputs = [recorder.view(tensor) for tensor in _tensors_of(output)]
                recorder.phase = "backward"
                if training:
                    _backward(output, target)
                recorder.open = False
        except TraceError:
            raise
        except Exception as error:
            raise _explain(error, module) from error
    return Trace(recorder.events, stored, outputs, recorder.assumptions)


@dataclasses.dataclass
class _Handles:
    args: tuple
    kwargs: dict
    hooks: list


def _store(module, args, kwargs, recorder, stored, training):
    """Enters parameters, buffers and inputs into `stored`; makes the inputs fake."""
    hooks, seen = [], set()

    def done(name):
        def hook(parameter):
            recorder.events.append(Gradient(name, recorder.view(parameter.grad)))
        return hook

    for name, parameter in module.named_parameters():
        view = recorder.view(parameter)
        if view.storage in seen:
            continue
        seen.add(view.storage)
        stored.append(Stored(name, "weight", view, parameter.requires_grad))
        if training and parameter.requires_grad:
            hooks.append(parameter.register_post_accumulate_grad_hook(done(name)))
    for name, buffer in module.named_buffers():
        view = recorder.view(buffer)
        if view.storage not in seen:
            seen.add(view.storage)
            stored.append(Stored(name, "buffer", view, False))
    count = 0

    def example(tensor):
        nonlocal count
        made = fake_like(tensor.detach(), requires_grad=tensor.requires_grad and tensor.is_floating_point())
        stored.append(Stored(f"input{count}", "input", recorder.view(made), False))
        count += 1
        return made

    return _Handles(tree_map_only(torch.Tensor, example, tuple(args)), tree_map_only(torch.Tensor, example, dict(kwargs)), hooks)
