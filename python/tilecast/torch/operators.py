"""The table of ATen operators: what each is in Tilecast's graph notation."""
import torch

from . import products
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


def operands(op):
    return [view for view in _numbers(list(op.args)) + _numbers(list(op.kwargs.values())) if view.elements]


def results(op):
    return [view for view in op.outputs if view is not None and view.elements]


def _broadcast(views):
    rank = max(len(view.shape) for view in views)
    shape = [1] * rank
    for view in views:
        for place, size in enumerate(view.shape, rank - len(view.shape)):
            if size != 1:
                shape[place] = size
    return tuple(shape)


def _promoted(views):
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


def _written(op):
    return op.written[0] if op.written else None


def _stream(flops=0):
    """One kernel, with so many FLOPs for each element of the largest tensor."""
    def translate(writer, op):
        inputs, outputs, into = operands(op), results(op), _written(op)
        if into is not None and not op.name.endswith("_"):  # out= variants
            inputs = [view for view in inputs if view not in op.written]
        most = max((view.elements for view in inputs + outputs), default=0)
        if outputs:
            writer.stream([writer.use(view) for view in inputs], outputs, flops=flops * most, into=into)
    return translate


def _pointwise(op_name, inputs_of=None, flops=1):
    """A pointwise operator of the notation where its rules give the trace's result, else one kernel of the same size."""
    def translate(writer, op):
        views = (inputs_of or operands)(op)
        out, into = op.outputs[0], _written(op)
        fits = _broadcast(views) == out.shape and _promoted(views) == dtype_name(out.dtype)
        if not fits:
            return _stream(flops)(writer, op)
        return writer.node(op_name, [writer.use(view) for view in views], [out], into)
    return translate


def _two(op_name, scalar_name):
    """The operator of two tensors, or of a tensor and a number."""
    def translate(writer, op):
        return _pointwise(op_name if len(operands(op)) == 2 else scalar_name)(writer, op)
    return translate


def _power(writer, op):
    if len(operands(op)) == 2:
        return _pointwise("pow", flops=3)(writer, op)
    exponent = op.args[1] if not isinstance(op.args[1], View) else None
    known = {2: "integer_pow", 3: "integer_pow", 0.5: "sqrt", -0.5: "rsqrt"}
    return _pointwise(known.get(exponent, "pow_scalar"), flops=3)(writer, op)


def _where(writer, op):
    views = operands(op)
    mask, values = views[0], views[1:]
    out = op.outputs[0]
    fits = values and mask.dtype == torch.bool and _broadcast(views) == out.shape and _promoted(values) == dtype_name(out.dtype)
    if not fits:
        return _stream()(writer, op)
    return writer.node("where", [writer.use(view) for view in views], [out])


def _copy(writer, op):
    """clone, _to_copy, copy_: a copy, or a cast."""
    source, out, into = operands(op)[-1], op.outputs[0], _written(op)
    if source.shape != out.shape:
        writer.stream([writer.use(source)], [out], into=into)
    elif dtype_name(source.dtype) == dtype_name(out.dtype):
        writer.node("copy", [writer.use(source)], [out], into)
    else:
        writer.node("cast", [writer.use(source)], [out], into, dtype=dtype_name(out.dtype))


def _fill(writer, op):
    writer.stream([], results(op), into=_written(op))


def _reduce(op_name, flops=1):
    def translate(writer, op):
        x, out = op.args[0], op.outputs[0]
        same = dtype_name(x.dtype) == dtype_name(out.dtype)
        if len(results(op)) == 1 and same and x.elements % out.elements == 0:
            writer.node(op_name, [writer.use(x)], [out], shape=list(out.shape))
        else:
            _stream(flops)(writer, op)
    return translate


def _rows(view, dim):
    """Shape and strides with one dimension moved to the end."""
    order = [d for d in range(len(view.shape)) if d != dim % len(view.shape)] + [dim % len(view.shape)]
    return tuple(view.shape[d] for d in order), tuple(view.stride[d] for d in order)


def _over_rows(writer, views, dim):
    """Operands whose rows are along `dim`, and the shape of a result."""
    if dim % len(views[0].shape) == len(views[0].shape) - 1:
        return [writer.use(view) for view in views], views[0].shape
    return [writer.use(view, *_rows(view, dim)) for view in views], _rows(views[0], dim)[0]


def _row_result(out, shape):
    return out if tuple(shape) == out.shape else (out, shape)


def _softmax(op_name):
    def translate(writer, op):
        x, dim = op.args[:2]
        out = op.outputs[0]
        if not x.shape:
            return _stream(5)(writer, op)
        inputs, shape = _over_rows(writer, [x], dim)
        changed = dtype_name(out.dtype) != dtype_name(x.dtype)
        if changed and op_name == "log_softmax":
            return _stream(5)(writer, op)
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
        return _stream(4)(writer, op)
    inputs, shape = _over_rows(writer, [dy, y], dim)
    return writer.node("log_softmax_backward", inputs, [_row_result(out, shape)])


def _count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def _as_rows(writer, view, columns):
    """A tensor whose last dimensions, `columns` elements, form a row."""
    if view.shape and view.shape[-1] == columns:
        return writer.use(view), view.shape
    shape = (view.elements // columns, columns)
    return writer.use(view, shape, (columns, 1)), shape


def _layer_norm(writer, op):
    x, normalized, weight, bias = op.args[:4]
    if weight is None and bias is not None:
        return _stream(8)(writer, op)
    columns = _count(normalized)
    name, shape = _as_rows(writer, x, columns)
    inputs = [name] + [writer.use(p, (columns,), (1,)) for p in (weight, bias) if p is not None]
    y, *statistics = op.outputs
    return writer.node("layer_norm", inputs, [_row_result(y, shape)] + [(s, shape[:-1], torch.float32) if s is not None and s.elements
                                                                         else None for s in statistics])


def _layer_norm_backward(writer, op):
    dy, x, normalized, mean, rstd, weight = op.args[:6]
    columns = _count(normalized)
    (gradient, shape), (rows, _) = _as_rows(writer, dy, columns), _as_rows(writer, x, columns)
    inputs = [gradient, rows] + [writer.use(s, shape[:-1], _row_major(shape[:-1])) for s in (mean, rstd)]
    dx, dw, db = op.outputs
    if dx is not None:
        writer.node("layer_norm_backward", inputs, [_row_result(dx, shape)])
    if dw is not None or db is not None:
        writer.node("layer_norm_weight_backward", inputs, [None if g is None else (g, (columns,)) for g in (dw, db)])


def _row_major(shape):
    stride, step = [], 1
    for size in reversed(shape):
        stride.append(step)
        step *= size
    return tuple(reversed(stride))


def _rms_norm(writer, op):
    """One kernel; the root mean squares are kept for the backward pass."""
    x, normalized, weight = op.args[:3]
    columns = _count(normalized)
    name, shape = _as_rows(writer, x, columns)
    y, rms = op.outputs
    writer.node("rms_norm", [name] + ([writer.use(weight, (columns,), (1,))] if weight is not None else []), [_row_result(y, shape)])
    if rms is not None and rms.elements:
        writer.node("allocate", [], [rms], outputs=_text(rms.dtype, rms.shape))


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
    if weight is None or bias is None:
        return _stream(8 if training else 2)(writer, op)
    channels = (x.shape[1],)
    inputs = [writer.use(t) for t in (x, weight, bias, mean, variance) if t is not None]
    outputs = [y] + [(s, channels, torch.float32) if s is not None and s.elements else None for s in statistics]
    return writer.node("batch_norm", inputs, outputs, **({"training": 1} if training else {}))


def _batch_norm_backward(writer, op):
    if op.name.endswith("cudnn_batch_norm_backward"):
        x, dy, weight, _, _, mean, rstd = op.args[:7]
    else:
        dy, x, weight, _, _, mean, rstd = op.args[:7]
    if weight is None or mean is None or not mean.elements:
        return _stream(11)(writer, op)
    outputs = [output if output is not None and output.elements else None for output in op.outputs]
    return writer.node("batch_norm_backward", [writer.use(t) for t in (dy, x, weight, mean, rstd)], outputs)


def _dropout(writer, op):
    writer.node("dropout", [writer.use(op.args[0])], [o if o is not None and o.elements else None for o in op.outputs])


def _embedding(writer, op):
    weight, ids = op.args[:2]
    writer.node("embedding", [writer.use(weight), writer.use(ids)], [op.outputs[0]])


def _embedding_backward(writer, op):
    dy, ids = op.args[:2]
    writer.node("embedding_backward", [writer.use(dy), writer.use(ids)], [op.outputs[0]], shape=list(op.outputs[0].shape))


def _nll_loss(writer, op):
    x, labels, _, reduction = op.args[:4]
    if reduction == 0 or len(x.shape) != 2:
        return _stream()(writer, op)
    writer.node("nll_loss", [writer.use(x), writer.use(labels)], [(op.outputs[0], (1,))])
    total = op.outputs[1]
    return writer.node("allocate", [], [total], outputs=_text(total.dtype, ()))


def _nll_loss_backward(writer, op):
    dy, x, labels, _, reduction = op.args[:5]
    if reduction == 0 or len(x.shape) != 2:
        return _stream()(writer, op)
    return writer.node("nll_loss_backward", [writer.use(x), writer.use(labels), writer.use(dy)], [op.outputs[0]])


def _cat(writer, op):
    views = [view for view in op.args[0] if view.elements]
    out = op.outputs[0]
    dim = (op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", 0)) % len(out.shape)
    fits = all(len(view.shape) == len(out.shape) for view in views) and _promoted(views) == dtype_name(out.dtype) and len(views) <= 64
    if len(views) == 1 or not fits:
        return _stream()(writer, op)
    return writer.node("cat", [writer.use(view) for view in views], [out], dim=dim)


def _pool(writer, op):
    """Square windows are an operator of the notation; others stream."""
    x, window = op.args[:2]
    stride = op.args[2] if len(op.args) > 2 and op.args[2] else window
    padding = op.args[3] if len(op.args) > 3 else [0]
    y, index = op.outputs
    square = all(len(set(v)) == 1 for v in (window, stride, padding)) and len(x.shape) == 4
    fits = square and y.shape[2:] == tuple((s + 2 * padding[0] - window[0]) // stride[0] + 1 for s in x.shape[2:])
    if not fits:
        return _stream(_count(window))(writer, op)
    return writer.node("max_pool2d", [writer.use(x)], [y, index], window=window[0], stride=stride[0], padding=padding[0])


def _pool_backward(writer, op):
    dy, x, index = op.args[0], op.args[1], op.args[-1]
    if len(x.shape) != 4:
        return _gather(1)(writer, op)
    return writer.node("max_pool2d_backward", [writer.use(t) for t in (dy, x, index)], [op.outputs[0]])


def _gather(flops=0):
    """Reads as many elements as it writes, and all indices."""
    def translate(writer, op):
        inputs, outputs = operands(op), results(op)
        if not outputs:
            return
        moved = sum(view.bytes for view in outputs)
        indices = sum(view.bytes for view in inputs[1:] if not view.dtype.is_floating_point)
        writer.stream([writer.use(view) for view in inputs], outputs, flops=flops * outputs[0].elements, read_bytes=moved + indices,
                      into=_written(op))
    return translate


def _scatter(writer, op):
    """Copies the tensor unless it works in place, then writes single elements."""
    x, *others = operands(op)
    out, into = op.outputs[0], _written(op)
    if into is None:
        writer.node("copy", [writer.use(x)], [out])
        into = out
    read = sum(view.bytes for view in others)
    part = max((view for view in others if view.dtype == x.dtype), key=lambda view: view.elements, default=None)
    shape = part if part is not None and part.elements <= x.elements else into
    written = View(into.storage, shape.shape, shape.stride, into.offset, into.dtype)
    writer.stream([writer.use(view) for view in others], [written], flops=written.elements, read_bytes=read, into=into)


def _layers(op, weights, places):
    """For each layer of a recurrent network, the weights for inputs and for the state of each direction.
    `places`: where the numbers of layers and whether there are two directions are among the arguments."""
    stride, (layers, both) = op.args[2], (op.args[place] for place in places)
    directions = 2 if both else 1
    for layer in range(layers):
        yield [weights[(layer * directions + d) * stride:][:2] for d in range(directions)]


def _stacked(writer, weight):
    return writer.use(weight, (1, *weight.shape), (weight.elements, *weight.stride))


def _text(dtype, shape):
    return f"{dtype_name(dtype)}[{', '.join(map(str, shape))}]"


def _recurrent(writer, op):
    """A node for each layer and direction; all write to the results of the whole network."""
    x, weights, _, _, _, _, mode, hidden, projected, _, batch_first = op.args[:11]
    if projected or len(x.shape) != 3:
        return _stream()(writer, op)
    gates = {2: 4, 3: 3}.get(mode, 1)
    _allocate(writer, op)
    steps, batch = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
    strides = (x.stride[1], x.stride[0], x.stride[2]) if batch_first else x.stride
    current = writer.use(x, (steps, batch, x.shape[2]), strides)
    for directions in _layers(op, weights, (9, 13)):
        y = None
        for inputs, state in directions:
            y = writer.node("recurrent", [current, _stacked(writer, inputs), _stacked(writer, state)], [None], gates=gates)
        if len(directions) == 2:
            y = writer.node("allocate", [], [None], outputs=_text(x.dtype, (steps, batch, 2 * hidden)))
        current = y
    return None


def _recurrent_backward(writer, op):
    x, weights = op.args[:2]
    mode, hidden, projected, _, batch_first = op.args[10:15]
    if projected or len(x.shape) != 3:
        return _stream()(writer, op)
    gates = {2: 4, 3: 3}.get(mode, 1)
    _allocate(writer, op)
    steps, batch = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
    dy = writer.node("allocate", [], [None], outputs=_text(x.dtype, (steps, batch, hidden)))
    for directions in _layers(op, weights, (13, 17)):
        for inputs, state in directions:
            rows = writer.node("allocate", [], [None], outputs=_text(x.dtype, (steps, batch, inputs.shape[1])))
            writer.node("recurrent_backward", [dy, rows, _stacked(writer, inputs), _stacked(writer, state)], [None], gates=gates)
    return None


def _fft(writer, op):
    out = max(results(op) + operands(op), key=lambda view: view.elements)
    length = max(out.shape[-1], 2)
    writer.stream([writer.use(view) for view in operands(op)], results(op), flops=5 * out.elements * (length - 1).bit_length())


def _nothing(writer, op):
    """Launches nothing on the GPU."""


def _allocate(writer, op):
    for out in results(op):
        writer.node("allocate", [], [out], outputs=_text(out.dtype, out.shape))


def _activation_backward(writer, op):
    dy, saved = operands(op)[:2]
    return _pointwise("activation_backward", lambda _: [dy, saved], 3)(writer, op)


_TABLE = {
    **products.TABLE,
    "add": _two("add", "add_scalar"), "sub": _two("sub", "add_scalar"), "rsub": _two("sub", "rsub_scalar"),
    "mul": _two("mul", "mul_scalar"), "div": _two("div", "div_scalar"), "pow": _power, "where": _where,
    "clone": _copy, "_to_copy": _copy, "copy": _copy,
    "_softmax": _softmax("softmax"), "_safe_softmax": _softmax("softmax"), "_log_softmax": _softmax("log_softmax"),
    "_softmax_backward_data": _softmax_backward, "_log_softmax_backward_data": _log_softmax_backward,
    "native_layer_norm": _layer_norm, "native_layer_norm_backward": _layer_norm_backward, "_fused_rms_norm": _rms_norm,
    "native_group_norm": _group_norm, "native_group_norm_backward": _group_norm_backward,
    "native_dropout": _dropout, "embedding": _embedding, "embedding_dense_backward": _embedding_backward,
    "nll_loss_forward": _nll_loss, "nll_loss_backward": _nll_loss_backward, "cat": _cat,
    "max_pool2d_with_indices": _pool, "max_pool2d_with_indices_backward": _pool_backward,
    "sum": _reduce("reduce_sum"), "mean": _reduce("reduce_mean"), "amax": _reduce("reduce_max"), "max": _reduce("reduce_max"),
    "_cudnn_rnn": _recurrent, "_cudnn_rnn_backward": _recurrent_backward,
    "lift_fresh": _nothing, "lift_fresh_copy": _nothing, "_local_scalar_dense": _nothing, "is_pinned": _nothing, "_assert_async": _nothing, "_assert_tensor_metadata": _nothing,
}
_TABLE.update({name: _batch_norm for name in ("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
                                              "_native_batch_norm_legit_no_training", "batch_norm_with_update")})
_TABLE.update({name: _batch_norm_backward for name in ("native_batch_norm_backward", "cudnn_batch_norm_backward")})
_TABLE.update({name: _pointwise(name) for name in ("neg", "sqrt", "exp", "rsqrt", "cos", "sin", "log", "relu", "tanh", "sigmoid")})
_TABLE.update({"gelu": _pointwise("gelu", flops=5), "silu": _pointwise("silu", flops=4), "softplus": _pointwise("softplus", flops=4),
               "native_dropout_backward": _pointwise("dropout_backward", lambda op: list(op.args[:2]), 2)})
_TABLE.update({name: _activation_backward for name in (
    "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "hardswish_backward",
    "hardsigmoid_backward", "hardtanh_backward", "leaky_relu_backward", "elu_backward", "softplus_backward", "mish_backward",
    "log_sigmoid_backward")})
_TABLE.update({name: _fill for name in ("fill", "zero", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros",
                                        "new_ones", "new_full", "arange", "linspace", "eye", "scalar_tensor", "bernoulli", "rand", "randn",
                                        "rand_like", "randn_like", "randint", "uniform", "normal", "random", "exponential", "tril_indices",
                                        "triu_indices", "randperm", "hann_window")})
_TABLE.update({name: _allocate for name in ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")})
_TABLE.update({name: _gather() for name in ("index_select", "gather", "index", "take", "take_along_dim", "masked_select")})
_TABLE.update({name: _scatter for name in ("index_put", "_index_put_impl", "index_add", "scatter", "scatter_add", "scatter_reduce",
                                           "index_copy", "index_fill", "masked_scatter", "slice_scatter", "select_scatter")})
_TABLE.update({name: _fft for name in ("_fft_r2c", "_fft_c2r", "_fft_c2c")})
# Kernels that stream their tensors, with FLOPs an element: each arithmetic operation and each transcendental counts once.
_STREAMS = {
    1: """abs abs_ sign clamp clamp_min clamp_max maximum minimum hardtanh threshold leaky_relu eq ne lt le gt ge logical_and logical_or
          logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor bitwise_left_shift bitwise_right_shift isnan isinf
          isfinite floor ceil round trunc frac remainder fmod floor_divide reciprocal square
          masked_fill sum mean amin amax max min any all argmax argmin cumsum cumprod prod prelu heaviside
          cosh sinh acos asin atan tan log2 log10 log1p exp2 expm1 sgn angle conj_physical real imag topk
          aminmax lerp_ logical_and_ max_pool3d_with_indices avg_pool2d_backward avg_pool3d_backward
          _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward upsample_nearest2d_backward glu_jvp _prelu_kernel_backward
          norm_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward""",
    2: """erf erfc atan2 hypot std var norm linalg_vector_norm hardsigmoid addcmul addcdiv lerp mse_loss smooth_l1_loss l1_loss huber_loss
          mse_loss_backward smooth_l1_loss_backward huber_loss_backward logaddexp rms_norm_backward _prelu_kernel glu avg_pool1d
          _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d xlogy""",
    3: """hardswish elu celu selu var_mean std_mean logsumexp lgamma digamma logit var_backward polar glu_backward log_sigmoid_forward
          binary_cross_entropy_with_logits binary_cross_entropy binary_cross_entropy_backward cdist _cdist_forward kl_div erfinv
          upsample_bilinear2d_backward upsample_bicubic2d_backward""",
    6: "mish _fused_rms_norm_backward upsample_linear1d upsample_trilinear3d",
    9: "avg_pool2d avg_pool3d max_unpool2d upsample_bilinear2d _upsample_bilinear2d_aa",
    30: "upsample_bicubic2d _upsample_bicubic2d_aa grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward",
    0: """flip roll constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d reflection_pad1d_backward
          reflection_pad2d_backward replication_pad2d_backward upsample_nearest1d upsample_nearest2d upsample_nearest3d repeat
          repeat_interleave stack tril triu slice_backward select_backward diagonal_backward unfold_backward im2col col2im sort argsort
          nonzero searchsorted bucketize unique_dim _unique2 multinomial histc bincount pixel_shuffle pixel_unshuffle channel_shuffle
          native_channel_shuffle complex view_as_real_copy one_hot diag_embed block_diag kthvalue mode median embedding_renorm
          rot90 tile affine_grid_generator new_tensor set_ _unsafe_index rrelu_with_noise index_put_ split_with_sizes_copy
          split_copy unbind_copy nll_loss2d_forward nll_loss2d_backward meshgrid _pad_circular fmax fmin""",
}
for _flops, _names in _STREAMS.items():
    for _name in _names.split():
        _TABLE.setdefault(_name, _stream(_flops))


def translate(writer, op):
    """Adds the nodes of one call. Calls without results (assertions) and views launch nothing."""
    name = op.name.split(".", 1)[-1]
    known = _TABLE.get(name) or _TABLE.get(name.rstrip("_")) or _TABLE.get(name.removesuffix("_out"))
    made = results(op)
    if known is _nothing or not made:
        return
    sources = {view.storage for view in operands(op)}
    if not op.written and all(view.storage in sources for view in made):
        return  # a view
    if known is not None:
        known(writer, op)
    else:
        writer.stream([writer.use(view) for view in operands(op)], made, into=_written(op), unmapped=op.name)
