"""The forms that composite operators take on CUDA tensors.

The trace runs on fake CPU tensors, so it works with every build of PyTorch. PyTorch splits most composite operators in the same way on
every device. A few it fuses on CUDA only: attention, dropout, RMS norm, recurrent layers. While a trace runs, these are replaced for CPU
tensors by what PyTorch runs on CUDA. So is the list of operators that autocast runs in FP32, which is longer on CUDA.
"""
import contextlib
import threading
import warnings

import torch
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten
_one_at_a_time = threading.Lock()
_MOST_FLASH_HEAD = 256  # ATen/native/transformers/cuda/sdp_utils.cpp, check_head_dim_size_flash


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Flash for 16-bit tensors without a mask, memory-efficient for others, step by step where neither takes the shapes: the order
    of ATen/native/transformers/cuda/sdp_utils.cpp on GPUs since Ampere."""
    if query.dim() != 4:
        return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                       enable_gqa=enable_gqa)[0]
    head = query.shape[-1]
    half = query.dtype in (torch.float16, torch.bfloat16)
    same_heads = query.shape[1] == key.shape[1]
    if half and attn_mask is None and head <= _MOST_FLASH_HEAD and head == value.shape[-1] and (same_heads or enable_gqa):
        return _flash(query, key, value, dropout_p, is_causal, scale)
    learned = attn_mask is not None and attn_mask.requires_grad and torch.is_grad_enabled()
    aligned = head % (8 if half else 4) == 0 and value.shape[-1] % (8 if half else 4) == 0
    if same_heads and aligned and not learned:
        return _memory_efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
    return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                   enable_gqa=enable_gqa)[0]


def _flash(query, key, value, dropout_p, is_causal, scale):
    """Heads are padded to a multiple of 8 (pad_last_dim in ATen/native/transformers/attention.cpp)."""
    head = query.shape[-1]
    scale = head ** -0.5 if scale is None else scale
    padding = -head % 8
    operands = [torch.nn.functional.pad(t, (0, padding)) if padding else t for t in (query, key, value)]
    out = aten._scaled_dot_product_flash_attention(*operands, dropout_p, is_causal, False, scale=scale)[0]
    return out[..., :head] if padding else out


def _memory_efficient(query, key, value, mask, dropout_p, is_causal, scale):
    if mask is not None:
        if mask.dtype == torch.bool:  # convert_boolean_attn_mask
            mask = torch.where(mask, torch.zeros((), dtype=query.dtype), torch.full((), -torch.inf, dtype=query.dtype))
        length = mask.shape[-1]
        if length % 16:  # pad_bias: the kernel's alignment
            mask = torch.nn.functional.pad(mask, (0, -length % 16))[..., :length]
        mask = mask.expand(*query.shape[:2], query.shape[2], key.shape[2])
    saves = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(query, key, value, mask, saves, dropout_p, is_causal, scale=scale)[0]


def dropout(x, p, train):
    if not train or p == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * torch.zeros((), dtype=x.dtype)
    return aten.native_dropout(x, p, True)[0]


def rms_norm(x, normalized_shape, weight=None, eps=None):
    return aten._fused_rms_norm(x, normalized_shape, weight, eps)[0]


def group_norm(x, groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """The kernel reads and writes rows; that of the CPU also channels last (ATen/native/group_norm.cpp)."""
    batch, channels = x.shape[:2]
    weight, bias = (None if t is None else t.contiguous() for t in (weight, bias))
    return aten.native_group_norm(x.contiguous(), weight, bias, batch, channels, x.shape[2:].numel(), groups, eps)[0]


def _autocast(tensor):
    return tensor.to(torch.get_autocast_dtype("cpu")) if tensor is not None and tensor.dtype == torch.float32 else tensor


def _cudnn_rnn(mode, x, hidden, cell, params, has_biases, layers, rate, train, bidirectional, batch_first, batches=()):
    if torch.is_autocast_enabled("cpu"):  # aten/src/ATen/cudnn/AutocastRNN.cpp
        x, hidden, cell, params = _autocast(x), _autocast(hidden), _autocast(cell), [_autocast(weight) for weight in params]
    per_layer = 4 if has_biases else 2
    size, out_size = hidden.shape[-1] if cell is None else cell.shape[-1], hidden.shape[-1]
    projected = 0 if size == out_size else out_size
    weights = params[0].detach().flatten()  # stands for the buffer that the parameters are views of
    return aten._cudnn_rnn(x, params, per_layer + (1 if projected else 0), weights, hidden, cell, mode, size, projected, layers,
                           batch_first, rate, train, bidirectional, list(batches), None)


def lstm(x, hx, params, has_biases, num_layers, rate, train, bidirectional, batch_first):
    out = _cudnn_rnn(2, x, hx[0], hx[1], params, has_biases, num_layers, rate, train, bidirectional, batch_first)
    return out[0], out[1], out[2]


def gru(x, hx, params, has_biases, num_layers, rate, train, bidirectional, batch_first):
    out = _cudnn_rnn(3, x, hx, None, params, has_biases, num_layers, rate, train, bidirectional, batch_first)
    return out[0], out[1]


def _batches(data, sizes):
    """The number of sequences in each step of a packed batch, all of one length (packing)."""
    steps = sizes.shape[0]
    return [data.shape[0] // steps] * steps


def packed_lstm(data, sizes, hx, params, has_biases, num_layers, rate, train, bidirectional):
    out = _cudnn_rnn(2, data, hx[0], hx[1], params, has_biases, num_layers, rate, train, bidirectional, False, _batches(data, sizes))
    return out[0], out[1], out[2]


def packed_gru(data, sizes, hx, params, has_biases, num_layers, rate, train, bidirectional):
    out = _cudnn_rnn(3, data, hx, None, params, has_biases, num_layers, rate, train, bidirectional, False, _batches(data, sizes))
    return out[0], out[1]


def packing(recorder):
    """Packed sequences: their lengths are values, which a trace does not have, so that all are as long as the longest may be."""
    kept = []

    def pack(x, lengths, batch_first):
        recorder.note("all packed sequences were taken to be as long as the padded ones")
        rows = x.transpose(0, 1) if batch_first else x
        sizes = torch.empty(rows.shape[0], dtype=torch.int64)
        kept.append(sizes)  # so that no other tensor gets its storage's key
        recorder.numbers[sizes.untyped_storage()._cdata] = rows.shape[1]
        return rows.flatten(0, 1).contiguous(), sizes

    def pad(data, sizes, batch_first, padding_value, total_length):
        steps, batch = sizes.shape[0], data.shape[0] // sizes.shape[0]
        out = data.new_full((max(total_length, steps), batch, *data.shape[1:]), padding_value)
        out[:steps] = data.view(steps, batch, *data.shape[1:])
        return out.transpose(0, 1) if batch_first else out, torch.empty(batch, dtype=torch.int64)

    return {"_pack_padded_sequence": pack, "_pad_packed_sequence": pad}


def _grouped_mm(a, b, offs=None, bias=None, out_dtype=None):
    """The shape of the result in any dtype: PyTorch's rule knows BF16 only, its CUDA kernels fall back to a product for each group."""
    rows = a.shape[-2:-1] if a.dim() == 2 or b.dim() == 3 else a.shape[:-1]
    groups = (a.shape[0],) if a.dim() == b.dim() == 3 else (offs.shape[0],) if a.dim() == b.dim() == 2 else ()
    columns = b.shape[-1]
    return a.new_empty((*groups, *rows[-1:], columns), dtype=out_dtype or a.dtype)


def _rnn_gradients(x, weights, stride, buffer, hidden, cell, *rest):
    """The shapes of the gradients, which PyTorch has no rule for."""
    return (torch.empty_like(x), torch.empty_like(hidden), None if cell is None else torch.empty_like(cell),
            [torch.empty_like(weight) for weight in weights])


# AT_FORALL_FP32 of aten/src/ATen/autocast_mode.h, less losses that are composites of these.
_AUTOCAST_FP32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
pow.Scalar softplus layer_norm native_layer_norm group_norm cosine_similarity nll_loss nll_loss_nd kl_div l1_loss smooth_l1_loss huber_loss
mse_loss binary_cross_entropy_with_logits cdist logsumexp""".split()
_AUTOCAST_FP32_BY_DTYPE = ["softmax.int", "log_softmax.int", "cumsum", "cumprod", "prod", "prod.dim_int", "sum", "sum.dim_IntList"]
_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)


def _overload(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def _low(tensor):
    return tensor.dtype in (torch.float16, torch.bfloat16)


def _in_fp32(operator):
    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
            return operator(*tree_map_only(torch.Tensor, lambda t: t.float() if _low(t) else t, args), **kwargs)
    return run


def _with_fp32_result(operator):
    """Of operators that take the dtype of their result."""
    def run(x, *args, **kwargs):
        given = kwargs.get("dtype") or next((a for a in args if isinstance(a, torch.dtype)), None)
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
            if given is None and _low(x):
                args = tuple(a for a in args if a is not None)
                kwargs["dtype"] = torch.float32
            return operator(x, *args, **kwargs)
    return run


_FORMS = {"scaled_dot_product_attention": attention, "dropout": dropout, "rms_norm": rms_norm, "group_norm": group_norm, "lstm.input": lstm, "gru.input": gru,
          "lstm.data": packed_lstm, "gru.data": packed_gru}


@contextlib.contextmanager
def cuda_forms(recorder=None):
    """Replaces the composite operators for CPU tensors of this process until the end of the block; packed sequences where a recorder can
    note what is assumed of them."""
    with _one_at_a_time:
        library = torch.library.Library("aten", "IMPL")
        fast_path = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for name, form in {**_FORMS, **(packing(recorder) if recorder is not None else {})}.items():
                    for key in ("AutogradCPU", "CPU"):
                        library.impl(name, form, key)
                library.impl("_cudnn_rnn_backward", _rnn_gradients, "Meta")
                library.impl("_grouped_mm", _grouped_mm, "Meta", allow_override=True)
                for names, wrap in ((_AUTOCAST_FP32, _in_fp32), (_AUTOCAST_FP32_BY_DTYPE, _with_fp32_result)):
                    for name in names:
                        library.impl(name, wrap(_overload(name)), "AutocastCPU", allow_override=True)
            yield
        finally:
            library._destroy()
            torch.backends.mha.set_fastpath_enabled(fast_path)
