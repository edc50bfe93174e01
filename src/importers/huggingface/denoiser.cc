#include "importers/huggingface/denoiser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace tilecast {

Denoiser::Denoiser(Graph& graph, const DenoiserConfig& config, const DenoiserBatch& batch,
                   DType dtype)
    : graph_(graph),
      c_(config),
      batch_(batch),
      f_(graph, {.batch = batch.samples, .seq = 1, .dtype = dtype}) {}

int64_t Denoiser::share(int64_t tokens) const { return ceil_divide(tokens, ranks()); }

int64_t Denoiser::tokens() const {
  return share(checked_product(
      {ceil_divide(batch_.frames, c_.patch_t), batch_.height / c_.patch, batch_.width / c_.patch}));
}

TensorId Denoiser::input(const std::string& name, Shape shape) {
  return b().input(name, std::move(shape), f_.request().dtype);
}

TensorId Denoiser::mlp(TensorId x, const std::string& first, const std::string& second,
                       int64_t wide, int64_t out, const std::string& activation) {
  return linear(f_.activation(linear(x, first, wide), activation, first + ".act"), second, out);
}

TensorId Denoiser::embed_step(const std::string& p, int64_t channels, int64_t out) {
  const TensorId waves = input(p + "waves", {batch_.samples, channels});
  return mlp(waves, p + "linear_1", p + "linear_2", out, out, "silu");
}

TensorId Denoiser::embed_patches(const std::string& name, bool convolution, bool bias) {
  const int64_t elements = checked_product({c_.in, c_.patch_t, c_.patch, c_.patch});
  const int64_t count = tokens();
  if (!convolution) {
    const TensorId cut = input("latents", {batch_.samples, count, elements});
    return linear(f_.op("copy", {cut}, name + ".patches"), name, c_.hidden_dim(), bias);
  }
  // A rank convolves its share only; its patches are in one column here, with the same work.
  const bool whole = ranks() == 1 && batch_.frames == 1;
  const TensorId image =
      input("latents", {batch_.samples, c_.in, whole ? batch_.height : count * c_.patch,
                        whole ? batch_.width : c_.patch});
  std::vector<TensorId> operands = {
      image, f_.weight(name + ".weight", {c_.hidden_dim(), c_.in, c_.patch, c_.patch})};
  if (bias) operands.push_back(f_.weight(name + ".bias", {c_.hidden_dim()}));
  const TensorId y = f_.op("conv2d", std::move(operands), name, {{"stride", c_.patch}});
  return f_.transpose(f_.view(y, {batch_.samples, c_.hidden_dim(), count}), {0, 2, 1});
}

void Denoiser::unpatch(TensorId x, const std::string& name) {
  const TensorId y = linear(x, name, checked_product({c_.out, c_.patch_t, c_.patch, c_.patch}));
  graph_.outputs = {f_.op("copy", {y}, name + ".unpatch")};
}

TensorId Denoiser::cast(TensorId x, DType dtype, const std::string& name) {
  if (b().graph().tensor(x).dtype == dtype) return x;
  return f_.op("cast", {x}, name, {{"dtype", dtype}});
}

TensorId Denoiser::layer_norm(TensorId x, const std::string& name, bool affine) {
  return f_.layer_norm(x, name, {.weight = affine, .bias = affine});
}

TensorId Denoiser::wide_norm(TensorId x, const std::string& name, bool affine) {
  return layer_norm(cast(x, DType::kFp32, name + ".fp32"), name, affine);
}

TensorId Denoiser::part(TensorId condition, const std::string& name, int64_t columns) {
  return f_.view(f_.slice(condition, columns, name), {batch_.samples, 1, columns});
}

TensorId Denoiser::modulate(TensorId x, TensorId condition, const std::string& name) {
  const int64_t columns = shape_of(x).back();
  const TensorId scale = f_.op("add_scalar", {part(condition, name, columns)}, name + ".scale");
  return f_.op("add", {f_.op("mul", {x, scale}, name), part(condition, name, columns)}, name);
}

TensorId Denoiser::add_gated(TensorId x, TensorId y, TensorId condition, const std::string& name) {
  const TensorId gate = part(condition, name, shape_of(y).back());
  return f_.residual({x, f_.op("mul", {y, gate}, name)}, name + ".residual");
}

TensorId Denoiser::as_heads(TensorId x, int64_t heads) {
  const Shape s = shape_of(x);
  return f_.view(x, {s[0], s[1], heads, s[2] / heads});
}

TensorId Denoiser::heads_of(TensorId x, const std::string& name, int64_t heads, int64_t head_dim) {
  return as_heads(linear(x, name, heads * head_dim), heads);
}

TensorId Denoiser::rotate(TensorId x, const std::string& name) {
  const Shape s = shape_of(x);
  const DType dtype = b().graph().tensor(x).dtype;
  const Shape table = {1, s[1], 1, s[3]};
  const TensorId cos = b().input(name + ".cos", table, DType::kFp32);
  const TensorId sin = b().input(name + ".sin", table, DType::kFp32);
  const TensorId half = f_.slice(x, s[3] / 2, name + ".half");
  const TensorId turned = join({f_.op("neg", {half}, name + ".neg"), half}, name + ".stack", 3);
  const auto times = [&](TensorId t, TensorId wave) {
    return f_.op("mul", {cast(t, DType::kFp32, name + ".fp32"), wave}, name + ".mul");
  };
  return cast(f_.op("add", {times(x, cos), times(turned, sin)}, name + ".add"), dtype,
              name + ".cast");
}

TensorId Denoiser::attend_to_text(TensorId q, TensorId k, TensorId v, const std::string& p) {
  const auto split = [&](TensorId t) { return f_.split_heads(t, shape_of(t)[2]); };
  return f_.attention(split(q), split(k), split(v), p + "attention", {});
}

/// Each rank attends to its own keys and values, then to those of the others. Results are merged in
/// fp32 by their sums of exponents.
TensorId Denoiser::around_ring(TensorId q, TensorId k, TensorId v, const std::string& p) {
  const DType dtype = b().graph().tensor(q).dtype;
  TensorId sum = cast(attend_to_text(q, k, v, p), DType::kFp32, p + "ring.fp32");
  for (int64_t step = 1; step < batch_.ring; ++step) {
    const auto next = [&](TensorId t) {
      return f_.op("ring_exchange", {t}, p + "ring", {{"ranks", batch_.ring}});
    };
    k = next(k);
    v = next(v);
    const TensorId block = cast(attend_to_text(q, k, v, p), DType::kFp32, p + "ring.fp32");
    const TensorId change = f_.op("sub", {sum, block}, p + "ring.sub");
    const TensorId weighted = f_.op("mul_scalar", {change}, p + "ring.mul");
    sum = f_.op("sub", {sum, weighted}, p + "ring.update");
  }
  return cast(sum, dtype, p + "ring.cast");
}

TensorId Denoiser::attend(TensorId q, TensorId k, TensorId v, const std::string& p) {
  // The parts of each rank are copied together before, and apart afterwards (all_to_all_4D of
  // long-context-attention, which xDiT calls).
  const auto exchange = [&](TensorId t, int64_t dim, int64_t scatter) {
    if (batch_.ulysses == 1) return t;
    const TensorId packed = f_.op("copy", {t}, p + "all_to_all.pack");
    const TensorId sent = f_.op("sequence_all_to_all", {packed}, p + "all_to_all",
                                {{"ranks", batch_.ulysses}, {"dim", dim}, {"scatter", scatter}});
    return f_.op("copy", {sent}, p + "all_to_all.unpack");
  };
  const Shape s = shape_of(q);
  q = exchange(q, 1, 2);
  k = exchange(k, 1, 2);
  v = exchange(v, 1, 2);
  const int64_t heads = shape_of(q)[2];
  TensorId y = batch_.ring > 1 ? around_ring(q, k, v, p) : attend_to_text(q, k, v, p);
  if (batch_.ulysses == 1) return y;
  y = exchange(as_heads(y, heads), 2, 1);
  return f_.view(y, {s[0], s[1], s[2] * s[3]});
}

}  // namespace tilecast
