"""Fake CUDA tensors on a machine without CUDA: PyTorch runs as on a GPU, but no tensor has any memory.

PyTorch's FakeTensorMode computes shapes only. In a build without CUDA its autograd engine lacks two things of the CUDA library:
the device guard (streams and events) and the hooks that say that CUDA is there. `build` compiles an empty guard and such hooks
(a few lines of C++ with PyTorch's own headers); `install` loads them before PyTorch, which keeps the first hooks it sees. All dispatch is
then that of CUDA tensors. In particular torch.autocast('cuda') is PyTorch's own: its list of operators, its cache of cast weights.

Some things stay with Python: `autocast` asks no driver whether it may run, and scaled_dot_product_attention, whose choice among its
kernels is compiled into the CUDA library, is made here by the rules of ATen/native/transformers/cuda/sdp_utils.cpp.
Needs g++ (or $CXX) and must be installed before the first `import torch`.
"""
import ctypes
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

SOURCE = r"""
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
using c10::Device, c10::DeviceIndex, c10::Stream;
constexpr auto kType = c10::DeviceType::CUDA;
struct Guard final : c10::impl::NoOpDeviceGuardImpl<kType> {
  Device exchangeDevice(Device) const override { return Device(kType, 0); }
  Device getDevice() const override { return Device(kType, 0); }
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, Device(kType, 0)); }
  Stream getDefaultStream(Device) const override { return Stream(Stream::DEFAULT, Device(kType, 0)); }
  Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, Device(kType, 0)); }
  void record(void**, const Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
};
namespace c10::impl { C10_REGISTER_GUARD_IMPL(CUDA, Guard) }
struct CUDAHooks : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool hasCuDNN() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
};
using at::CUDAHooksRegistry, at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks)
"""


def build(folder):
    """Compiles the guard and the hooks into `folder`; the path of the library. Exits where that fails."""
    found = importlib.util.find_spec("torch")
    if found is None:
        raise SystemExit(f"torch is not installed in {sys.executable}: pip install torch transformers")
    root, library = Path(found.origin).parent, Path(folder) / "fake_cuda.so"
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-shared", "-fPIC", "-x", "c++", "-", f"-I{root}/include",
               f"-L{root}/lib", f"-Wl,-rpath,{root}/lib", "-ltorch_cpu", "-lc10", "-o", str(library)]
    made = subprocess.run(command, input=SOURCE, text=True, capture_output=True)
    if made.returncode:
        raise SystemExit(f"{command[0]} failed on the guard of fake CUDA tensors:\n{made.stderr[-2000:]}")
    return str(library)


def install(library):
    """Loads what `build` made, then torch, and makes its CUDA tensors usable under FakeTensorMode."""
    if "torch" in sys.modules:
        raise RuntimeError("fake_cuda.install must come before the first import of torch")
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    _patch()


def _patch():
    import torch
    if torch.version.cuda:
        raise SystemExit("this PyTorch is built with CUDA; the reference needs the CPU build (pip install torch+cpu)")
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *args, **kwargs: True
    torch.cuda.get_device_capability = lambda *args, **kwargs: (9, 0)
    global _library
    _library = torch.library.Library("aten", "IMPL")
    for key in ("AutogradCUDA", "CUDA"):
        _library.impl("scaled_dot_product_attention", _attention, key)
    # Without a CUDA kernel these two would run as the several operators that they stand for, with as many results.
    for name in ("silu_backward", "mish_backward"):
        _library.impl(name, lambda grad, self: torch.empty_like(grad), "CUDA")
    _allow_grouped_products()


def _allow_grouped_products():
    """Products of experts: the shape rule of fake tensors takes bf16 only, CUDA any dtype (GroupedBlas.cpp: one product after the
    other where its fused kernel does not take the dtype, into the same result)."""
    from torch import _meta_registrations
    rule = _meta_registrations._meta_grouped_mm_common

    def any_dtype(mat_a, mat_b, *args, **kwargs):
        import torch
        kwargs["out_dtype"] = kwargs.get("out_dtype") or mat_a.dtype
        if mat_a.dtype in (torch.float32, torch.float16):
            mat_a, mat_b = mat_a.to(torch.bfloat16), mat_b.to(torch.bfloat16)
            out = rule(mat_a, mat_b, *args, **{**kwargs, "out_dtype": torch.bfloat16})
            return out.to(kwargs["out_dtype"])
        return rule(mat_a, mat_b, *args, **kwargs)

    _meta_registrations._meta_grouped_mm_common = any_dtype


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Flash for 16-bit tensors without a mask, memory-efficient for the rest, math where neither takes the shapes."""
    import torch
    aten = torch.ops.aten
    head = query.shape[-1]
    half = query.dtype in (torch.float16, torch.bfloat16)
    same_heads = query.shape[1] == key.shape[1]
    if half and attn_mask is None and head <= 256 and head == value.shape[-1] and (same_heads or enable_gqa):
        padding = -head % 8
        scale = head ** -0.5 if scale is None else scale
        padded = [torch.nn.functional.pad(t, (0, padding)) if padding else t for t in (query, key, value)]
        out = aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, False, scale=scale)[0]
        return out[..., :head] if padding else out
    learned = attn_mask is not None and attn_mask.requires_grad and torch.is_grad_enabled()  # T5: measured on an H100
    if same_heads and head % (8 if half else 4) == 0 and not learned:
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:  # convert_boolean_attn_mask
                attn_mask = torch.where(attn_mask, torch.zeros((), dtype=query.dtype, device=query.device),
                                        torch.full((), -torch.inf, dtype=query.dtype, device=query.device))
            length = attn_mask.shape[-1]
            if length % 16:  # pad_bias: the kernel's alignment
                attn_mask = torch.nn.functional.pad(attn_mask, (0, -length % 16))[..., :length]
            attn_mask = attn_mask.expand(*query.shape[:2], query.shape[2], key.shape[2])
        needs_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        return aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, needs_grad, dropout_p, is_causal,
                                                            scale=scale)[0]
    return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                   enable_gqa=enable_gqa)[0]
