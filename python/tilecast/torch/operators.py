"""The table of ATen operators: what each is in Tilecast's graph notation."""
import torch

from . import norms, products, recurrent
from .pieces import allocate, broadcast, operands, pointwise, promoted, results, stream, text, two, written
from .tracing import View
from .writer import dtype_name


def _power(writer, op):
    if len(operands(op)) == 2:
        return pointwise("pow", flops=3)(writer, op)
    exponent = op.args[1] if not isinstance(op.args[1], View) else None
    known = {2: "integer_pow", 3: "integer_pow", 0.5: "sqrt", -0.5: "rsqrt"}
    return pointwise(known.get(exponent, "pow_scalar"), flops=3)(writer, op)


def _where(writer, op):
    views = operands(op)
    mask, values = views[0], views[1:]
    out = op.outputs[0]
    fits = values and mask.dtype == torch.bool and broadcast(views) == out.shape and promoted(values) == dtype_name(out.dtype)
    if not fits:
        return stream()(writer, op)
    return writer.node("where", [writer.use(view) for view in views], [out])


def _copy(writer, op):
    """clone, _to_copy, copy_: a copy, or a cast."""
    source, out, into = operands(op)[-1], op.outputs[0], written(op)
    if source.shape != out.shape:
        writer.stream([writer.use(source)], [out], into=into)
    elif dtype_name(source.dtype) == dtype_name(out.dtype):
        writer.node("copy", [writer.use(source)], [out], into)
    else:
        writer.node("cast", [writer.use(source)], [out], into, dtype=dtype_name(out.dtype))


def _fill(writer, op):
    writer.stream([], results(op), into=written(op))


def _reduce(op_name, flops=1):
    def translate(writer, op):
        x, out = op.args[0], op.outputs[0]
        same = dtype_name(x.dtype) == dtype_name(out.dtype)
        if len(results(op)) == 1 and same and x.elements % out.elements == 0:
            writer.node(op_name, [writer.use(x)], [out], shape=list(out.shape))
        else:
            stream(flops)(writer, op)
    return translate


def _dropout(writer, op):
    writer.node("dropout", [writer.use(op.args[0])], [o if o is not None and o.elements else None for o in op.outputs])


def _embedding(writer, op):
    weight, ids = op.args[:2]
    writer.node("embedding", [writer.use(weight), writer.use(ids)], [op.outputs[0]])


def _embedding_backward(writer, op):
    dy, ids = op.args[:2]
    writer.node("embedding_backward", [writer.use(dy), writer.use(ids)], [op.outputs[0]], shape=list(op.outputs[0].shape))


def _bags(ids, offsets):
    """Ids [bags, pooling] where bags are of one length; None: they are not."""
    bags = offsets.elements
    if not bags or ids.elements % bags or not ids.dense:
        return None
    return View(ids.storage, (bags, ids.elements // bags), (ids.elements // bags, 1), ids.offset, ids.dtype)


def _embedding_bag(writer, op):
    """Bags are taken to be of one length. The results beside the sums are small tables that the backward pass reads."""
    weight, ids, offsets, _, mode, _, weights, last = (*op.args, *(0, 0, None, False)[len(op.args) - 4:])[:8]
    out, *tables = op.outputs
    rows = None if last else _bags(ids, offsets)
    if rows is None or mode == 2 or isinstance(weights, View):  # the largest of each bag, weighted sums, bags of several lengths
        read = ids.elements * weight.shape[1]  # each id reads a row
        return writer.stream([writer.use(view) for view in operands(op)], results(op), flops=read,
                             read_bytes=read * weight.dtype.itemsize + ids.bytes, into=written(op))
    for table in tables:
        if table is not None and table.elements:
            writer.node("allocate", [], [table], outputs=text(table.dtype, table.shape))
    return writer.node("embedding_bag", [writer.use(weight), writer.use(rows)], [out])


def _embedding_bag_backward(writer, op):
    """Each row of a bag gets the bag's gradient."""
    dy, ids, *others = op.args
    dw = op.outputs[0]
    rows = _bags(ids, others[0] if op.name.endswith("bag_backward") else dy)
    if rows is None or len(dy.shape) != 2 or rows.shape[0] != dy.shape[0]:
        return _gather(1)(writer, op)
    each = writer.use(dy, (*rows.shape, dy.shape[1]), (dy.stride[0], 0, dy.stride[1]))
    return writer.node("embedding_backward", [each, writer.use(rows)], [dw], shape=list(dw.shape))


def _euclidean_dist(writer, op):
    """Distances by a product: |x|^2 - 2 x y + |y|^2 (ATen/native/Distance.cpp, _euclidean_dist)."""
    x, y = op.args[:2]
    out, last = op.outputs[0], len(x.shape) - 1

    def parts(view):
        """The view, its squared lengths, and ones."""
        squares = writer.node("integer_pow", [writer.use(view)], [None])
        lengths = writer.node("reduce_sum", [squares], [None], shape=[*view.shape[:-1], 1])
        return writer.use(view), lengths, writer.node("stream", [], [None], outputs=text(view.dtype, (*view.shape[:-1], 1)))

    (left, x_lengths, x_ones), (right, y_lengths, y_ones) = parts(x), parts(y)
    left = writer.node("cat", [writer.node("mul_scalar", [left], [None]), x_lengths, x_ones], [None], dim=last)
    right = writer.node("cat", [right, y_ones, y_lengths], [None], dim=last)
    writer.node("gemm" if last == 1 else "matmul", [left, right], [out], transpose_b=1)
    for _ in ("clamp", "sqrt"):
        writer.stream([writer.use(out)], [out], flops=out.elements, into=out)


def _deformable(writer, op):
    """Gathers the windows at their offsets, bilinearly, then a product (torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu)."""
    x, weight, *offsets = operands(op)[:4]
    out = op.outputs[0]
    groups, window = op.args[11] if len(op.args) > 11 else 1, weight.elements // weight.shape[0]
    rows = out.elements // weight.shape[0]
    flops = 9 * window * groups * rows
    if groups != 1:
        return writer.stream([writer.use(view) for view in operands(op)], [out], flops=flops + 2 * window * out.elements)
    columns = writer.node("stream", [writer.use(view) for view in (x, *offsets[:2])], [None],
                          outputs=text(x.dtype, (window, rows)), flops=flops, unmeasured="deform_conv2d")
    matrix = writer.use(weight, (weight.shape[0], window), (window, 1))
    return writer.node("gemm", [matrix, columns], [(out, (weight.shape[0], rows))])


def _nll_loss(writer, op):
    x, labels, _, reduction = op.args[:4]
    if reduction == 0 or len(x.shape) != 2:
        return stream()(writer, op)
    writer.node("nll_loss", [writer.use(x), writer.use(labels)], [(op.outputs[0], (1,))])
    total = op.outputs[1]
    return writer.node("allocate", [], [total], outputs=text(total.dtype, ()))


def _nll_loss_backward(writer, op):
    dy, x, labels, _, reduction = op.args[:5]
    if reduction == 0 or len(x.shape) != 2:
        return stream()(writer, op)
    return writer.node("nll_loss_backward", [writer.use(x), writer.use(labels), writer.use(dy)], [op.outputs[0]])


def _cat(writer, op):
    views = [view for view in op.args[0] if view.elements]
    out = op.outputs[0]
    dim = (op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", 0)) % len(out.shape)
    fits = all(len(view.shape) == len(out.shape) for view in views) and promoted(views) == dtype_name(out.dtype) and len(views) <= 64
    if len(views) == 1 or not fits:
        return stream()(writer, op)
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
        return stream(norms.count(window))(writer, op)
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
                      into=written(op))
    return translate


def _scatter(writer, op):
    """Copies the tensor unless it works in place, then writes single elements."""
    x, *others = operands(op)
    out, into = op.outputs[0], written(op)
    if into is None:
        writer.node("copy", [writer.use(x)], [out])
        into = out
    read = sum(view.bytes for view in others)
    part = max((view for view in others if view.dtype == x.dtype), key=lambda view: view.elements, default=None)
    shape = part if part is not None and part.elements <= x.elements else into
    target = View(into.storage, shape.shape, shape.stride, into.offset, into.dtype)
    writer.stream([writer.use(view) for view in others], [target], flops=target.elements, read_bytes=read, into=into)


def _fft(writer, op):
    out = max(results(op) + operands(op), key=lambda view: view.elements)
    length = max(out.shape[-1], 2)
    writer.stream([writer.use(view) for view in operands(op)], results(op), flops=5 * out.elements * (length - 1).bit_length())


def _roll(writer, op):
    """A kernel for each dimension (ATen/native/TensorTransformations.h, roll_common)."""
    x = writer.use(op.args[0])
    out = op.outputs[0]
    for _ in op.args[1][1:] if isinstance(op.args[1], (list, tuple)) else ():
        x = writer.node("copy", [x], [None])
    writer.stream([x], [out])


def _nothing(writer, op):
    """Launches nothing on the GPU."""


def _activation_backward(writer, op):
    dy, saved = operands(op)[:2]
    return pointwise("activation_backward", lambda _: [dy, saved], 3)(writer, op)


_TABLE = {
    **products.TABLE, **norms.TABLE, **recurrent.TABLE,
    "add": two("add", "add_scalar"), "sub": two("sub", "add_scalar"), "rsub": two("sub", "rsub_scalar"),
    "mul": two("mul", "mul_scalar"), "div": two("div", "div_scalar"), "pow": _power, "where": _where,
    "clone": _copy, "_to_copy": _copy, "copy": _copy,
    "native_dropout": _dropout, "embedding": _embedding, "embedding_dense_backward": _embedding_backward,
    "nll_loss_forward": _nll_loss, "nll_loss_backward": _nll_loss_backward, "cat": _cat, "roll": _roll,
    "max_pool2d_with_indices": _pool, "max_pool2d_with_indices_backward": _pool_backward,
    "sum": _reduce("reduce_sum"), "mean": _reduce("reduce_mean"), "amax": _reduce("reduce_max"), "max": _reduce("reduce_max"),
    "_embedding_bag": _embedding_bag, "_embedding_bag_forward_only": _embedding_bag, "_euclidean_dist": _euclidean_dist,
    "_embedding_bag_backward": _embedding_bag_backward, "_embedding_bag_dense_backward": _embedding_bag_backward,
    "deform_conv2d": _deformable,
    **{name: _nothing for name in ("lift_fresh", "lift_fresh_copy", "_local_scalar_dense", "is_pinned", "_assert_async",
                                   "_assert_tensor_metadata")},
    # Views of tensors that the module's code keeps (anchors of detectors): a trace sees another storage.
    **{name: _nothing for name in ("view", "expand", "select", "slice", "permute", "transpose", "t", "unsqueeze", "squeeze", "detach",
                                   "alias", "as_strided", "split", "split_with_sizes", "unbind", "diagonal")},
}
_TABLE.update({name: pointwise(name) for name in ("neg", "sqrt", "exp", "rsqrt", "cos", "sin", "log", "relu", "tanh", "sigmoid")})
_TABLE.update({"gelu": pointwise("gelu", flops=5), "silu": pointwise("silu", flops=4), "softplus": pointwise("softplus", flops=4),
               "native_dropout_backward": pointwise("dropout_backward", lambda op: list(op.args[:2]), 2)})
_TABLE.update({name: _activation_backward for name in (
    "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "hardswish_backward",
    "hardsigmoid_backward", "hardtanh_backward", "leaky_relu_backward", "elu_backward", "softplus_backward", "mish_backward",
    "log_sigmoid_backward")})
_TABLE.update({name: _fill for name in ("fill", "zero", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros",
                                        "new_ones", "new_full", "arange", "linspace", "eye", "scalar_tensor", "bernoulli", "rand", "randn",
                                        "rand_like", "randn_like", "randint", "uniform", "normal", "random", "exponential", "tril_indices",
                                        "triu_indices", "randperm", "hann_window")})
_TABLE.update({name: allocate for name in ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")})
_TABLE.update({name: _gather() for name in ("index_select", "gather", "index", "take", "take_along_dim", "masked_select")})
_TABLE.update({name: _scatter for name in ("index_put", "_index_put_impl", "index_add", "scatter", "scatter_add", "scatter_reduce",
                                           "index_copy", "index_fill", "masked_scatter", "slice_scatter", "select_scatter")})
_TABLE.update({name: _fft for name in ("_fft_r2c", "_fft_c2r", "_fft_c2c")})
# Kernels that stream their tensors, with FLOPs an element: each arithmetic operation and each transcendental counts once.
_STREAMS = {
    1: """abs abs_ sign clamp clamp_min clamp_max maximum minimum hardtanh threshold leaky_relu eq ne lt le gt ge logical_and
          logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor bitwise_left_shift bitwise_right_shift
          isnan isinf isfinite floor ceil round trunc frac remainder fmod floor_divide reciprocal square masked_fill sum mean amin
          amax max min any all argmax argmin prod prelu heaviside cosh sinh acos asin atan tan log2 log10 log1p exp2 expm1 sgn angle
          conj_physical real imag aminmax lerp_ logical_and_ glu_jvp _prelu_kernel_backward norm_backward nan_to_num nansum isposinf
          isneginf""",
    2: """erf erfc atan2 hypot std var norm linalg_vector_norm hardsigmoid addcmul addcdiv lerp mse_loss smooth_l1_loss l1_loss
          huber_loss mse_loss_backward smooth_l1_loss_backward huber_loss_backward logaddexp rms_norm_backward _prelu_kernel glu xlogy""",
    3: """hardswish _weight_norm_interface _weight_norm_interface_backward elu celu selu var_mean std_mean logsumexp lgamma digamma
          logit var_backward polar glu_backward log_sigmoid_forward binary_cross_entropy_with_logits binary_cross_entropy
          binary_cross_entropy_backward kl_div erfinv renorm""",
    6: "mish _fused_rms_norm_backward",
    0: """flip constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d reflection_pad1d_backward
          reflection_pad2d_backward replication_pad2d_backward repeat repeat_interleave stack tril triu slice_backward select_backward
          diagonal_backward unfold_backward multinomial pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle complex
          view_as_real_copy one_hot diag_embed block_diag embedding_renorm rot90 tile affine_grid_generator new_tensor set_
          rrelu_with_noise split_with_sizes_copy split_copy unbind_copy nll_loss2d_forward nll_loss2d_backward meshgrid
          _pad_circular fmax fmin reflection_pad3d reflection_pad3d_backward replication_pad3d replication_pad1d_backward
          replication_pad3d_backward""",
}
# The same, where no measurement holds such kernels (as OpDef::unmeasured says of the notation's own operators).
_UNMEASURED_STREAMS = {
    1: """cumsum cumprod topk max_pool3d_with_indices avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward
          _adaptive_avg_pool3d_backward upsample_nearest2d_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward
          cummax cummin nms upsample_nearest1d_backward upsample_nearest3d_backward _upsample_nearest_exact1d_backward
          _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward adaptive_max_pool3d_backward""",
    2: "avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d upsample_linear1d_backward",
    3: """cdist _cdist_forward upsample_bilinear2d_backward upsample_bicubic2d_backward logcumsumexp upsample_trilinear3d_backward
          _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward _cdist_backward _pdist_forward""",
    6: "upsample_linear1d upsample_trilinear3d",
    9: "roi_align _roi_align_backward roi_pool ps_roi_align avg_pool2d avg_pool3d max_unpool2d upsample_bilinear2d _upsample_bilinear2d_aa",
    30: "upsample_bicubic2d _upsample_bicubic2d_aa grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward",
    0: """upsample_nearest1d upsample_nearest2d upsample_nearest3d im2col col2im sort argsort nonzero searchsorted bucketize
          unique_dim _unique2 histc bincount kthvalue mode median _unsafe_index _upsample_nearest_exact1d _upsample_nearest_exact2d
          _upsample_nearest_exact3d""",
}
_UNMEASURED = {name for names in _UNMEASURED_STREAMS.values() for name in names.split()}
# Those with translators of their own that may write streams.
_UNMEASURED.update("""max_pool2d_with_indices max_pool2d_with_indices_backward index_select gather index take take_along_dim
                   masked_select index_put _index_put_impl index_add scatter scatter_add scatter_reduce index_copy
                   index_fill masked_scatter roll _fft_r2c _fft_c2r _fft_c2c _embedding_bag _embedding_bag_forward_only
                   _embedding_bag_backward _embedding_bag_dense_backward
                   deform_conv2d""".split())
for _streams in (_STREAMS, _UNMEASURED_STREAMS):
    for _flops, _names in _streams.items():
        for _name in _names.split():
            _TABLE.setdefault(_name, stream(_flops))


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
        writer.unmeasured = name.rstrip("_") if name.rstrip("_") in _UNMEASURED else None
        try:
            known(writer, op)
        finally:
            writer.unmeasured = None
    else:
        writer.stream([writer.use(view) for view in operands(op)], made, into=written(op), unmapped=op.name)
