"""Matrix products, convolutions and attention: which operands are transposed in memory, and which operator of the notation fits."""
from .pieces import by_pixel, text
from .tracing import View


def stored(writer, view):
    """The name of a matrix (or of matrices in a batch) as it is stored, and 1 if that is transposed."""
    *batch, rows, columns = view.shape
    if view.stride[-1] == 1 or columns == 1 or view.stride[-2] != 1:
        return writer.use(view), 0
    shape, stride = (*batch, columns, rows), (*view.stride[:-2], view.stride[-1], view.stride[-2])
    return writer.use(view, shape, stride), 1


def _complex(writer, a, b, out):
    """Complex numbers, which the notation does not have: one kernel with eight real operations for each product and its sum."""
    before, writer.unmeasured = writer.unmeasured, "complex_product"
    writer.stream([writer.use(a), writer.use(b)], [out], flops=8 * out.elements * a.shape[-1])
    writer.unmeasured = before


def product(writer, a, b, out, bias=None):
    """a · b for two matrices. In the forward pass, a product with a weight is a linear layer."""
    if a.dtype.is_complex and out is not None:
        return _complex(writer, a, b, out)
    result = None if out is None else (out, out.shape)
    left, ta = stored(writer, a)
    right, tb = stored(writer, b)
    if writer.phase == "forward" and not ta and (bias is not None or writer.is_weight(b) or tb):
        inputs = [left, right] + ([writer.use(bias)] if bias is not None else [])
        return writer.node("linear", inputs, [result], **({} if tb else {"weight_layout": 1}))
    flags = {**({"transpose_a": 1} if ta else {}), **({"transpose_b": 1} if tb else {})}
    return writer.node("gemm", [left, right], [result], **flags)


def mm(writer, op):
    product(writer, op.args[0], op.args[1], op.outputs[0])


def addmm(writer, op):
    bias, a, b = op.args[:3]
    out = op.outputs[0]
    if bias.elements == out.shape[1] and bias.shape[-1] == out.shape[1] and writer.phase == "forward":
        return product(writer, a, b, out, bias)
    return product(writer, a, b, out)


def linear(writer, op):
    """Where PyTorch does not split it (tensors made under inference_mode)."""
    x, weight, *bias = op.args
    inputs = [writer.use(x), writer.use(weight)] + [writer.use(b) for b in bias if b is not None]
    writer.node("linear", inputs, [(op.outputs[0], op.outputs[0].shape)])


def mv(writer, op):
    *_, matrix, vector = op.args[:3] if op.name.endswith("addmv") else op.args[:2]
    out = op.outputs[0]
    writer.node("gemm", [writer.use(matrix), writer.use(vector, (vector.elements, 1), (vector.stride[0], 1))],
                [(out, (out.elements, 1))])


def dot(writer, op):
    a, b = op.args[:2]
    n = a.elements
    writer.node("gemm", [writer.use(a, (1, n), (n, 1)), writer.use(b, (n, 1), (1, 1))], [(op.outputs[0], (1, 1))])


def batched(writer, a, b, out, shape=None):
    if a.dtype.is_complex:
        return _complex(writer, a, b, out)
    left, ta = stored(writer, a)
    right, tb = stored(writer, b)
    flags = {**({"transpose_a": 1} if ta else {}), **({"transpose_b": 1} if tb else {})}
    return writer.node("matmul", [left, right], [(out, shape or out.shape)], **flags)


def bmm(writer, op):
    batched(writer, op.args[0], op.args[1], op.outputs[0])


def baddbmm(writer, op):
    batched(writer, op.args[1], op.args[2], op.outputs[0])


def _divided(view, dim, groups):
    """A matrix as a batch of `groups` parts along a dimension; None if the parts would not be even."""
    if view.shape[dim] % groups:
        return None
    shape, part = list(view.shape), view.shape[dim] // groups
    shape[dim] = part
    return View(view.storage, (groups, *shape), (part * view.stride[dim], *view.stride), view.offset, view.dtype)


def grouped_mm(writer, op):
    """A product for each expert. Their rows are taken to be as many for each; where that leaves a rest, all rows meet one expert."""
    a, b, out = op.args[0], op.args[1], op.outputs[0]
    if len(a.shape) == len(b.shape) == 3:
        return batched(writer, a, b, out)
    groups = next(view.shape[0] for view in (a, b, out) if len(view.shape) == 3)
    left = a if len(a.shape) == 3 else _divided(a, 0 if len(b.shape) == 3 else 1, groups)
    right = b if len(b.shape) == 3 else _divided(b, 1 if len(a.shape) == 3 else 0, groups)
    if left is not None and right is not None:
        return batched(writer, left, right, out, (groups, left.shape[1], right.shape[2]))
    writer.node("allocate", [], [out], outputs=text(out.dtype, out.shape))
    one, other = (View(v.storage, v.shape[-2:], v.stride[-2:], v.offset, v.dtype) for v in (a, b))
    return product(writer, one, other, None)


def _convolution(x, weight, stride, padding, dilation, transposed, output_padding, groups):
    """(prefix of the operator's name, attributes)."""
    dims = len(x.shape) - 2
    spread = [list(v) * (dims if len(v) == 1 else 1) for v in (stride, padding, dilation)]
    stride, padding, dilation = spread
    square = len(set(stride)) == 1 and len(set(padding)) == 1
    if dims == 2 and square and set(dilation) == {1} and not transposed:
        return "conv2d", {"stride": stride[0], "padding": padding[0], "groups": groups}
    attributes = {"strides": stride, "pads": padding, "dilations": dilation, "groups": groups}
    if transposed:
        attributes.update(transposed=1, output_padding=list(output_padding) * (dims if len(output_padding) == 1 else 1))
    return "conv", attributes


def _small(attributes):
    """Without the defaults."""
    plain = {"stride": 1, "padding": 0, "groups": 1}
    return {key: value for key, value in attributes.items()
            if plain.get(key) != value and not (key in ("strides", "dilations") and set(value) == {1})
            and not (key in ("pads", "output_padding") and set(value) == {0})}


def _image(writer, view, pixels):
    """An operand in the layout of the kernel: cuDNN's operator copies those in the other one (aten/src/ATen/native/cudnn/Conv_v7.cpp)."""
    name = writer.use(view)
    return name if pixels is None or by_pixel(view) in (None, pixels) else writer.node("copy", [name], [None])


def convolution(writer, op):
    x, weight, bias, *form = op.args
    out = op.outputs[0]
    name, attributes = _convolution(x, weight, *form)
    pixels = by_pixel(out)
    inputs = [_image(writer, x, pixels), writer.use(weight)] + ([writer.use(bias)] if bias is not None else [])
    writer.node(name, inputs, [out], **_small(attributes), **({"channels_last": 1} if pixels else {}))


def convolution_backward(writer, op):
    dy, x, weight, bias_sizes, *form, mask = op.args
    name, attributes = _convolution(x, weight, *form)
    pixels = by_pixel(x) or by_pixel(weight) or False
    inputs = [_image(writer, dy, pixels), _image(writer, x, pixels), writer.use(weight)]
    layout = {"channels_last": 1} if pixels else {}
    dx, dw, db = (output if wanted else None for output, wanted in zip(op.outputs, mask))
    if dx is not None:
        writer.node(f"{name}_input_backward", inputs, [dx], **_small(attributes), **layout)
    if dw is not None:
        writer.node(f"{name}_weight_backward", inputs, [dw], **_small(attributes), **layout)
    if db is not None:
        writer.node("reduce_sum", [writer.use(dy)], [db], shape=list(db.shape))


def _by_rows(writer, view):
    """Heads [b, h, s, d] as [b, s, h, d]."""
    b, h, s, d = view.shape
    return writer.use(view, (b, s, h, d), (view.stride[0], view.stride[2], view.stride[1], view.stride[3]))


def _rows_shape(view):
    b, h, s, d = view.shape
    return b, s, h, d


def _causal(op, place):
    causal = op.args[place] if len(op.args) > place else op.kwargs.get("is_causal", False)
    return causal and op.args[0].shape[2] <= op.args[1].shape[2]


def attention(writer, op):
    place = 6 if op.name.endswith("efficient_attention") else 4
    q, k, v = op.args[:3]
    out, lse = op.outputs[:2]
    b, h, s, _ = q.shape
    if lse is not None and lse.elements:
        lse = (lse, (b, h, s), None)
    elif lse is not None:
        lse = None
    flags = {"causal": 1} if _causal(op, place) else {}
    writer.node("attention", [_by_rows(writer, t) for t in (q, k, v)], [(out, _rows_shape(out)), lse], **flags)


def attention_backward(writer, op):
    efficient = "efficient" in op.name
    dy, q, k, v = op.args[:4]
    out, lse = (op.args[5], op.args[6]) if efficient else (op.args[4], op.args[5])
    causal = (op.args[11] if len(op.args) > 11 else op.kwargs.get("is_causal", False)) if efficient else op.args[11]
    b, h, s, _ = q.shape
    inputs = [_by_rows(writer, t) for t in (q, k, v, dy, out)] + [writer.use(lse, (b, h, s), (h * s, s, 1))]
    flags = {"causal": 1} if causal and q.shape[2] <= k.shape[2] else {}
    writer.node("attention_backward", inputs, [(g, _rows_shape(g)) for g in op.outputs[:3]], **flags)


TABLE = {"mm": mm, "addmm": addmm, "linear": linear, "mv": mv, "addmv": mv, "dot": dot, "bmm": bmm, "baddbmm": baddbmm,
         "_grouped_mm": grouped_mm, "convolution": convolution, "convolution_backward": convolution_backward,
         "_scaled_dot_product_flash_attention": attention, "_scaled_dot_product_efficient_attention": attention,
         "_scaled_dot_product_flash_attention_backward": attention_backward,
         "_scaled_dot_product_efficient_attention_backward": attention_backward}
