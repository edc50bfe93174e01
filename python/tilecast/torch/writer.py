"""Writes a trace in Tilecast's graph notation (src/ops/notation.h).

Every storage has an owner: the declaration or the node that made it. An operand that is not laid out like the owner is an `alias` of it,
so views need no translation, whatever operator made them.
"""
import re

import torch

from .tracing import Freed, Gradient, View

# Sizes are exact; a dtype that the notation does not have is written as one of its size (such tensors never meet matrix units).
_DTYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.int64: "int64", torch.int32: "int32",
           torch.int8: "int8", torch.bool: "bool", torch.uint8: "int8", torch.float64: "int64", torch.int16: "fp16",
           torch.complex64: "int64", torch.float8_e4m3fn: "fp8", torch.float8_e5m2: "fp8"}


def dtype_name(dtype):
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    return {1: "int8", 2: "fp16", 4: "int32"}.get(dtype.itemsize, "int64")


def shape_text(shape):
    return "[" + ", ".join(str(size) for size in shape) + "]"


def row_major(shape):
    stride, step = [], 1
    for size in reversed(shape):
        stride.append(step)
        step *= size
    return tuple(reversed(stride))


class Owner:
    __slots__ = ("name", "view", "last_use", "stored")

    def __init__(self, name, view, stored):
        self.name, self.view, self.stored, self.last_use = name, view, stored, 0


class Writer:
    """Collects declarations and statements. Translators of operators call use, node and stream."""

    def __init__(self, name, translators):
        self.name = re.sub(r"[^A-Za-z0-9_.]", "_", name) or "model"
        self.translators = translators
        self.declarations, self.statements = [], []
        self.owners, self.aliases, self.names = {}, {}, set()
        self.nodes = 0  # kernels and steps so far; places in time
        self.pending = []  # storages that died since the last node
        self.phase = "forward"
        self.operator = None
        self.unmapped = {}  # operator: how often
        self.unmeasured = None  # the operator whose nodes are written, if no kernel of it was measured
        self.parameters = {}  # name: its storage

    # What translators use.

    def use(self, view, shape=None, stride=None):
        """The name of a tensor with this layout; an alias of the storage's owner if it is laid out in another way."""
        self._release()
        shape = view.shape if shape is None else tuple(shape)
        stride = view.stride if stride is None else tuple(stride)
        owner = self.owners.get(view.storage)
        if owner is None:
            owner = self._unknown(view)
        owner.last_use = self.nodes + 1
        have = owner.view
        if _same(have, shape, stride, view.offset, view.dtype):
            return owner.name
        key = (owner.name, shape, stride, view.offset, view.dtype)
        if key not in self.aliases:
            name = f"v{len(self.aliases)}"
            attributes = f"shape={shape_text(shape)}"
            if not View(view.storage, shape, stride, view.offset, view.dtype).dense:
                attributes += ", dense=0"
            if dtype_name(view.dtype) != dtype_name(have.dtype):
                attributes += f", dtype={dtype_name(view.dtype)}"
            self.statements.append(f"  {name} = alias({owner.name}) {{{attributes}}}")
            self.aliases[key] = name
        return self.aliases[key]

    def node(self, op, inputs, outputs, into=None, /, **attributes):
        """A node. `outputs`: a View each, or (View, shape, dtype) where the notation's operator gives it another one, or None for a
        result that the trace does not have. `into`: the View that the first output is written to."""
        self._release()
        target = None if into is None else self.use(into)
        self.nodes += 1
        names = []
        for place, output in enumerate(outputs):
            view, shape, dtype = (*output, None)[:3] if isinstance(output, tuple) else (output, None, None)
            name = f"t{self.nodes}" if place == 0 else f"t{self.nodes}.{place}"
            names.append(name)
            if view is not None:
                self._own(view, shape, dtype, name, into if place == 0 else None)
        text = f"  {', '.join(names)} = {op}({', '.join(inputs)})"
        if attributes:
            text += " {" + ", ".join(f"{key}={_value(value)}" for key, value in attributes.items()) + "}"
        if target is not None:
            text += f" into {target}"
        self.statements.append(f'{text} "{self._label()}"')
        return names[0]

    def stream(self, inputs, outputs, flops=0, read_bytes=None, into=None, unmapped=None):
        """One kernel that reads and writes its tensors once."""
        attributes = {"outputs": " ".join(f"{dtype_name(o.dtype)}{shape_text(o.shape)}" for o in outputs)}
        if flops:
            attributes["flops"] = flops
        if read_bytes is not None:
            attributes["read_bytes"] = read_bytes
        if self.unmeasured:
            attributes["unmeasured"] = self.unmeasured
        if unmapped:
            attributes["unmapped"] = unmapped
            self.unmapped[unmapped] = self.unmapped.get(unmapped, 0) + 1
        self.node("stream", inputs, outputs, into, **attributes)

    def is_weight(self, view):
        owner = self.owners.get(view.storage)
        return owner is not None and owner.stored

    # The course of a trace.

    def declare(self, stored):
        name = self._unique(re.sub(r"[^A-Za-z0-9_.]", "_", stored.name))
        if not stored.view.elements:
            return
        frozen = " frozen" if stored.kind == "weight" and not stored.trained else ""
        shape = stored.view.shape
        # Mixture-of-experts models call the linear layer that chooses experts `gate`; LoRA leaves it as it is.
        router = " role=router" if stored.kind == "weight" and stored.name.split(".")[-2:] == ["gate", "weight"] else ""
        self.declarations.append(f"{stored.kind} {name}: {dtype_name(stored.view.dtype)}{shape_text(shape)}{frozen}{router}")
        self.owners[stored.view.storage] = Owner(name, stored.view, True)
        self.parameters[stored.name] = stored.view.storage

    def run(self, events):
        for event in events:
            if isinstance(event, Freed):
                owner = self.owners.get(event.storage)
                if owner is not None and not owner.stored and owner.last_use < self.nodes:
                    self.pending.append(owner.name)
            elif isinstance(event, Gradient):
                self._gradient(event)
            else:
                self._enter(event.phase)
                self.operator = event
                self.translators.translate(self, event)
        self._release()

    def _enter(self, phase):
        if phase != self.phase:
            self.statements += [f"segment {phase} x1", f"  phase {phase}"]
            self.phase = phase

    def _gradient(self, event):
        """autograd keeps the first gradient of a parameter; `add_` is how the notation says so."""
        self.operator = None
        stored = self.owners[self.parameters[event.parameter]]
        name = self._unique(stored.name + ".grad")
        self.declarations.append(f"gradient {name}: {dtype_name(stored.view.dtype)}{shape_text(stored.view.shape)}")
        added = self.use(event.view)
        self.nodes += 1
        self.statements.append(f'  t{self.nodes} = add_({name}, {added}) "{_clean(event.parameter)}"')

    def text(self, outputs):
        lines = [f"graph {self.name}", *self.declarations, "segment forward x1", *self.statements]
        written = set()
        for view in outputs:
            owner = self.owners.get(view.storage)
            if owner is not None and not owner.stored and owner.name not in written:
                written.add(owner.name)
                lines.append(f"output {owner.name}")
        return "\n".join(lines) + "\n"

    def _own(self, view, shape, dtype, name, into):
        if into is not None:
            # A write to a part leaves the owner as it is.
            owner = self.owners.get(into.storage)
            whole = owner is not None and _same(owner.view, into.shape, into.stride, into.offset, into.dtype)
            if owner is not None:
                owner.last_use = self.nodes
            if not whole or owner.stored or view.shape != into.shape:
                return
            owner.name = name
            return
        if view.storage in self.owners:  # a result that is a view of an operand
            return
        shape = None if shape is None else tuple(shape)
        natural = View(view.storage, shape or view.shape, view.stride if shape is None else row_major(shape), view.offset,
                       dtype or view.dtype)
        owner = Owner(name, natural, False)
        owner.last_use = self.nodes
        self.owners[view.storage] = owner

    def _unknown(self, view):
        """A tensor that no traced operator made: a constant of the module's code."""
        name = self._unique(f"constant{len(self.owners)}")
        self.declarations.append(f"buffer {name}: {dtype_name(view.dtype)}{shape_text(view.shape)}")
        owner = self.owners[view.storage] = Owner(name, view, True)
        return owner

    def _release(self):
        """Tensors that lived longer than their last reader, because a variable or autograd kept them."""
        if self.pending:
            names, self.pending = self.pending, []
            self.nodes += 1
            self.statements.append(f"  t{self.nodes} = hold({', '.join(names)})")

    def _label(self):
        module = self.operator.module if self.operator else ""
        kind = self.operator.name.split(".")[-1] if self.operator else ""
        if not module:
            return _clean(kind)
        return _clean(f"{module}{kind}" if module.endswith(".") else module)

    def _unique(self, name):
        candidate, number = name, 1
        while candidate in self.names or re.fullmatch(r"[tv]\d+(\.\d+)?", candidate):
            number += 1
            candidate = f"{name}_{number}"
        self.names.add(candidate)
        return candidate


def _same(have, shape, stride, offset, dtype):
    if have.shape != shape or have.offset != offset or dtype_name(have.dtype) != dtype_name(dtype):
        return False
    return all(size == 1 or a == b for size, a, b in zip(shape, have.stride, stride))


def _value(value):
    if isinstance(value, str):
        return value if value in _DTYPES.values() else f'"{value}"'
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return shape_text(value)
    return str(value)


def _clean(text):
    return re.sub(r'[#"\s]', "_", text)
