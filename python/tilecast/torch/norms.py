"""Softmax and norms: which dimensions form the rows."""
import torch

from .pieces import by_pixel, stream, text
from .writer import dtype_name, row_major


def _read_by_rows(writer, view):
    """The operand of a kernel over the last dimension. A strided tensor is copied first, within the operator (Tensor::expect_contiguous)."""
    name = writer.use(view)
    return name if view.dense else writer.node("copy", [name], [None])


def _rows(view, dim):
    """Shape and strides with one dimension moved to the end."""
    order = [d for d in range(len(view.shape)) if d != dim % len(view.shape)] + [dim % len(view.shape)]
    return tuple(view.shape[d] for d in order), tuple(view.stride[d] for d in order)


def _over_rows(writer, views, dim):
    """Operands whose rows are along `dim`, and the shape of a result."""
    if dim % len(views[0].shape) == len(views[0].shape) - 1:
        return [_read_by_rows(writer, view) for view in views], views[0].shape
    return [writer.use(view, *_rows(view, dim)) for view in views], _rows(views[0], dim)[0]


def _row_result(out, shape):
    return out if tuple(shape) == out.shape else (out, shape)


def _softmax(op_name):
    def translate(writer, op):
        x, dim = op.args[:2]
        out = op.outputs[0]
        if not x.shape:
            return stream(5)(writer, op)
        inputs, shape = _over_rows(writer, [x], dim)
        changed = dtype_name(out.dtype) != dtype_name(x.dtype)
        if changed and op_name == "log_softmax":
            return stream(5)(writer, op)
        return writer.node(op_name, inputs, [_row_result(out, shape)], **({"dtype": dtype_name(out.dtype)} if changed else {}))
    return translate


def _softmax_backward(writer, op):
    """A kernel multiplies dy by y, another reduces the rows (aten/src/ATen/native/cuda/SoftMax.cu)."""
    dy, y, dim = op.args[:3]
    out = op.outputs[0]
    inputs, shape = _over_rows(writer, [dy, y], dim)
    changed = dtype_name(out.dtype) != dtype_name(y.dtype)
    product = writer.node("mul", inputs, [None])
    writer.node("softmax_backward", [product, inputs[1]], [_row_result(out, shape)],
                **({"dtype": dtype_name(out.dtype)} if changed else {}))


def _log_softmax_backward(writer, op):
    dy, y, dim = op.args[:3]
    out = op.outputs[0]
    if dtype_name(out.dtype) != dtype_name(dy.dtype):
        return stream(4)(writer, op)
    inputs, shape = _over_rows(writer, [dy, y], dim)
    return writer.node("log_softmax_backward", inputs, [_row_result(out, shape)])


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def _as_rows(writer, view, columns):
    """A tensor whose last dimensions, `columns` elements, form a row."""
    if view.shape and view.shape[-1] == columns:
        return _read_by_rows(writer, view), view.shape
    shape = (view.elements // columns, columns)
    return writer.use(view, shape, (columns, 1)), shape


def _layer_norm(writer, op):
    x, normalized, weight, bias = op.args[:4]
    if weight is None and bias is not None:
        return stream(8)(writer, op)
    columns = count(normalized)
    name, shape = _as_rows(writer, x, columns)
    inputs = [name] + [writer.use(p, (columns,), (1,)) for p in (weight, bias) if p is not None]
    y, *statistics = op.outputs
    return writer.node("layer_norm", inputs, [_row_result(y, shape)] + [(s, shape[:-1], torch.float32) if s is not None and s.elements
                                                                         else None for s in statistics])


def _layer_norm_backward(writer, op):
    dy, x, normalized, mean, rstd, weight = op.args[:6]
    columns = count(normalized)
    (gradient, shape), (rows, _) = _as_rows(writer, dy, columns), _as_rows(writer, x, columns)
    inputs = [gradient, rows] + [writer.use(s, shape[:-1], row_major(shape[:-1])) for s in (mean, rstd)]
    dx, dw, db = op.outputs
    if dx is not None:
        writer.node("layer_norm_backward", inputs, [_row_result(dx, shape)])
    if dw is not None or db is not None:
        writer.node("layer_norm_weight_backward", inputs, [None if g is None else (g, (columns,)) for g in (dw, db)])


def _rms_norm(writer, op):
    """One kernel; the root mean squares are kept for the backward pass."""
    x, normalized, weight = op.args[:3]
    columns = count(normalized)
    name, shape = _as_rows(writer, x, columns)
    y, rms = op.outputs
    writer.node("rms_norm", [name] + ([writer.use(weight, (columns,), (1,))] if weight is not None else []), [_row_result(y, shape)])
    if rms is not None and rms.elements:
        writer.node("allocate", [], [rms], outputs=text(rms.dtype, rms.shape))


def _group_norm(writer, op):
    x, weight, bias, n, channels, _, groups = op.args[:7]
    y, *statistics = op.outputs
    inputs = [writer.use(x)] + [writer.use(p) for p in (weight, bias) if p is not None]
    writer.node("group_norm", inputs, [y] + [(s, (n, groups), torch.float32) if s is not None and s.elements else None
                                             for s in statistics], groups=groups)


def _group_norm_backward(writer, op):
    dy, x, _, _, _, _, _, _, groups = op.args[:9]
    dx, dw, db = op.outputs
    if dx is not None:
        writer.node("group_norm_backward", [writer.use(dy), writer.use(x)], [dx], groups=groups)
    for gradient in (dw, db):
        if gradient is not None:
            writer.node("reduce_sum", [writer.use(dy)], [gradient], shape=list(gradient.shape))


def _batch_norm(writer, op):
    x, weight, bias, mean, variance = op.args[:5]
    short = op.name.endswith("no_training")  # its arguments have no flag
    training = not short and bool(op.args[5] if not op.overload.startswith("no_stats") else True)
    y, *statistics = op.outputs[:3]
    if op.overload.startswith("no_stats"):
        mean = variance = None
    if weight is None:
        return stream(8 if training else 2)(writer, op)
    if bias is None:
        bias = weight  # the operator of the notation has both; a vector by channels is hardly any traffic
    channels = (x.shape[1],)
    inputs = [writer.use(t) for t in (x, weight, bias, mean, variance) if t is not None]
    outputs = [y] + [(s, channels, torch.float32) if s is not None and s.elements else None for s in statistics]
    layout = {"channels_last": 1} if training and by_pixel(x) else {}
    return writer.node("batch_norm", inputs, outputs, **({"training": 1} if training else {}), **layout)


def _batch_norm_backward(writer, op):
    if op.name.endswith("cudnn_batch_norm_backward"):
        x, dy, weight, _, _, mean, rstd = op.args[:7]
    else:
        dy, x, weight, _, _, mean, rstd = op.args[:7]
    if weight is None or mean is None or not mean.elements:
        return stream(11)(writer, op)
    outputs = [output if output is not None and output.elements else None for output in op.outputs]
    layout = {"channels_last": 1} if by_pixel(x) else {}
    return writer.node("batch_norm_backward", [writer.use(t) for t in (dy, x, weight, mean, rstd)], outputs, **layout)


TABLE = {
    "_softmax": _softmax("softmax"), "_safe_softmax": _softmax("softmax"), "_log_softmax": _softmax("log_softmax"),
    "_softmax_backward_data": _softmax_backward, "_log_softmax_backward_data": _log_softmax_backward,
    "native_layer_norm": _layer_norm, "native_layer_norm_backward": _layer_norm_backward, "_fused_rms_norm": _rms_norm,
    "native_group_norm": _group_norm, "native_group_norm_backward": _group_norm_backward,
    **{name: _batch_norm for name in ("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
                                      "_native_batch_norm_legit_no_training", "batch_norm_with_update")},
    **{name: _batch_norm_backward for name in ("native_batch_norm_backward", "cudnn_batch_norm_backward")},
}
