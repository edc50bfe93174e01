"""Pieces of translators: operands, kernels that stream, pointwise operators, memory."""
from .tracing import View
from .writer import dtype_name

_RANKS = {"fp32": 2, "fp16": 1, "bf16": 1}


def _numbers(value):
    """The tensors among arguments, in order."""
    if isinstance(value, View):
        return [value]
    if isinstance(value, (list, tuple)):
        return [view for one in value for view in _numbers(one)]
    return []


def by_pixel(view):
    """Whether images are stored as [b, h, w, c]: None if both layouts are the same bytes."""
    if len(view.shape) != 4 or view.shape[1] == 1 or view.shape[2] * view.shape[3] == 1:
        return None
    return view.stride[1] == 1


def operands(op):
    """The tensors that it reads: without the `out=` of a call."""
    named = [value for key, value in op.kwargs.items() if key != "out"]
    return [view for view in _numbers(list(op.args)) + _numbers(named) if view.elements]


def results(op):
    return [view for view in op.outputs if view is not None and view.elements]


def broadcast(views):
    rank = max(len(view.shape) for view in views)
    shape = [1] * rank
    for view in views:
        for place, size in enumerate(view.shape, rank - len(view.shape)):
            if size != 1:
                shape[place] = size
    return tuple(shape)


def promoted(views):
    """The dtype that the notation's pointwise operators give (src/ops/promotion.cc)."""
    widest = dtype_name(views[0].dtype)
    for view in views[1:]:
        dtype = dtype_name(view.dtype)
        rank, most = _RANKS.get(dtype, 0), _RANKS.get(widest, 0)
        if rank == most == 1 and dtype != widest:
            widest = "fp32"
        elif rank > most:
            widest = dtype
    return widest


def written(op):
    return op.written[0] if op.written else None


def stream(flops=0):
    """One kernel, with so many FLOPs for each element of the largest tensor."""
    def translate(writer, op):
        inputs, outputs, into = operands(op), results(op), written(op)
        if into is not None and not op.name.endswith("_"):  # out= variants
            inputs = [view for view in inputs if view not in op.written]
        most = max((view.elements for view in inputs + outputs), default=0)
        if outputs:
            writer.stream([writer.use(view) for view in inputs], outputs, flops=flops * most, into=into)
    return translate


def pointwise(op_name, inputs_of=None, flops=1):
    """A pointwise operator of the notation where its rules give the trace's result, else one kernel of the same size."""
    def translate(writer, op):
        views = (inputs_of or operands)(op)
        out, into = op.outputs[0], written(op)
        fits = broadcast(views) == out.shape and promoted(views) == dtype_name(out.dtype)
        if not fits:
            return stream(flops)(writer, op)
        return writer.node(op_name, [writer.use(view) for view in views], [out], into)
    return translate


def two(op_name, scalar_name):
    """The operator of two tensors, or of a tensor and a number."""
    def translate(writer, op):
        return pointwise(op_name if len(operands(op)) == 2 else scalar_name)(writer, op)
    return translate


def text(dtype, shape):
    return f"{dtype_name(dtype)}[{', '.join(map(str, shape))}]"


def allocate(writer, op):
    for out in results(op):
        writer.node("allocate", [], [out], outputs=text(out.dtype, out.shape))
