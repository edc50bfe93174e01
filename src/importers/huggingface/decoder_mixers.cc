// Layers with a recurrent state instead of a KV cache: gated delta nets (Qwen3-Next, Qwen3.5; Kimi)
// and Mamba-2 (Nemotron-H). The kernels belong to the libraries that transformers loads
// (flash-linear-attention, mamba_ssm, causal_conv1d). Both kernels of small gates (decay and update
// rate) are one; the norms of keys and queries are part of the scan.

#include <fmt/format.h>

#include "importers/huggingface/decoder_graph.h"

namespace tilecast {

TensorId DecoderGraph::convolution(TensorId x, const std::string& p, const Layers::Split& split) {
  const int64_t channels = graph_.tensor(x).shape.back();
  if (c_.recurrent.conv_bias) f_.weight(p + "conv1d.bias", {channels}, 0, split);
  const TensorId weight = f_.weight(p + "conv1d.weight", {channels, c_.recurrent.window}, 0, split);
  return f_.op("silu", {f_.op("causal_conv1d", {x, weight}, p + "conv1d")}, p + "conv_act");
}

TensorId DecoderGraph::delta_net(TensorId x, size_t index) {
  const DecoderConfig::Recurrent& r = c_.recurrent;
  const std::string p = fmt::format("layers.{}.linear_attn.", index);
  const int64_t b = request_.batch, s = request_.seq;
  const int64_t keys = r.groups * r.state_dim, values = r.heads * r.head_dim;
  const Layers::Split by_part = f_.outputs(1, {keys, keys, values});
  const Layers::Split by_head = f_.outputs(1, {r.heads});
  TensorId qkv, z, a;
  if (r.merged) {
    const TensorId all =
        f_.linear(x, p + "in_proj_qkvz",
                  {2 * keys + 2 * values, false, f_.outputs(1, {keys, keys, values, values})});
    qkv = f_.slice(all, 2 * keys + values, p + "split_qkv");
    z = f_.slice(all, values, p + "split_z");
    const TensorId both =
        f_.linear(x, p + "in_proj_ba", {2 * r.heads, false, f_.outputs(1, {r.heads, r.heads})});
    a = f_.slice(both, r.heads, p + "split_a");
  } else {
    qkv = f_.linear(x, p + "in_proj_qkv", {2 * keys + values, false, by_part});
    z = f_.linear(x, p + "in_proj_z", {values, false, f_.outputs(1, {values})});
    f_.linear(x, p + "in_proj_b", {r.heads, false, by_head});
    a = f_.linear(x, p + "in_proj_a", {r.heads, false, by_head});
  }
  f_.weight(p + "A_log", {r.heads}, 0, by_head);
  f_.weight(p + "dt_bias", {r.heads}, 0, by_head);
  const TensorId mixed = convolution(qkv, p, by_part);
  const auto heads = [&](int64_t count, int64_t size, const char* name) {
    return f_.view(f_.slice(mixed, count * size, p + name), {b, s, count, size});
  };
  const TensorId q = heads(r.groups, r.state_dim, "split_q");
  const TensorId k = heads(r.groups, r.state_dim, "split_k");
  const TensorId v = heads(r.heads, r.head_dim, "split_v");
  const TensorId decay = f_.op("softplus", {a}, p + "decay");
  const TensorId y = f_.op("linear_scan", {v, k, q, decay}, p + "scan", {{"delta", 1}});
  const TensorId normal = f_.view(f_.rms_norm(y, p + "norm"), {b, s, values});
  const TensorId out = f_.op("mul", {f_.op("silu", {z}, p + "gate"), normal}, p + "gate_mul");
  return f_.linear(out, p + "out_proj", {c_.hidden_dim, false, f_.inputs(1, values)});
}

/// Kimi Delta Attention: a gated delta net whose decay has a value for each element of a key.
/// Source: transformers 5.24, modeling_kimi_linear.py; q, k and v are one product here.
TensorId DecoderGraph::kimi_delta(TensorId x, size_t index) {
  const DecoderConfig::Recurrent& r = c_.recurrent;
  const std::string p = fmt::format("layers.{}.{}.", index, c_.attention_part);
  const int64_t b = request_.batch, s = request_.seq, width = r.heads * r.head_dim;
  const Layers::Split by_head = f_.outputs(r.head_dim, {r.heads});
  const Layers::Split by_part = f_.outputs(1, {width, width, width});
  const TensorId qkv = f_.linear(x, p + "qkv_proj", {3 * width, false, by_part});
  const TensorId forget = f_.linear(f_.linear(x, p + "f_a_proj", {r.head_dim, false}),
                                    p + "f_b_proj", {width, false, by_head});
  f_.linear(x, p + "b_proj", {r.heads, false, f_.outputs(1, {r.heads})});
  TensorId gate_input = x;
  if (r.gate_rank > 0) gate_input = f_.linear(x, p + "g_a_proj", {r.gate_rank, false});
  const TensorId gate =
      f_.linear(gate_input, p + (r.gate_rank > 0 ? "g_b_proj" : "g_proj"), {width, false, by_head});
  f_.weight(p + "A_log", {r.heads}, 0, f_.outputs(1, {r.heads}));
  f_.weight(p + "dt_bias", {width}, 0, by_head);
  const TensorId mixed = convolution(qkv, p, by_part);
  const auto heads = [&](const char* name) {
    return f_.view(f_.slice(mixed, width, p + name), {b, s, r.heads, r.head_dim});
  };
  const TensorId q = heads("split_q"), k = heads("split_k"), v = heads("split_v");
  const TensorId decay =
      f_.view(f_.op("softplus", {forget}, p + "decay"), {b, s, r.heads, r.head_dim});
  const TensorId y = f_.op("linear_scan", {v, k, q, decay}, p + "scan", {{"delta", 1}});
  const TensorId normal = f_.view(f_.rms_norm(y, p + "o_norm"), {b, s, width});
  const TensorId out = f_.op("mul", {normal, f_.op("sigmoid", {gate}, p + "gate")}, p + "gate_mul");
  return f_.linear(out, p + "o_proj", {c_.hidden_dim, false, f_.inputs(1, width)});
}

TensorId DecoderGraph::mamba(TensorId x, size_t index) {
  const DecoderConfig::Recurrent& r = c_.recurrent;
  const std::string p = fmt::format("layers.{}.mixer.", index);
  const int64_t b = request_.batch, s = request_.seq;
  const int64_t values = r.heads * r.head_dim, keys = r.groups * r.state_dim;
  const Layers::Split by_head = f_.outputs(1, {r.heads});
  const TensorId all = f_.linear(x, p + "in_proj",
                                 {2 * values + 2 * keys + r.heads, r.proj_bias,
                                  f_.outputs(1, {values, values, keys, keys, r.heads})});
  const TensorId z = f_.slice(all, values, p + "split_z");
  const TensorId wide = f_.slice(all, values + 2 * keys, p + "split_conv");
  const TensorId steps = f_.slice(all, r.heads, p + "split_dt");
  for (const char* name : {"A_log", "dt_bias", "D"}) f_.weight(p + name, {r.heads}, 0, by_head);
  const TensorId mixed = convolution(wide, p, f_.outputs(1, {values, keys, keys}));
  const TensorId v = f_.view(f_.slice(mixed, values, p + "split_x"), {b, s, r.heads, r.head_dim});
  const auto states = [&](const char* name) {
    return f_.view(f_.slice(mixed, keys, p + name), {b, s, r.groups, r.state_dim});
  };
  const TensorId k = states("split_b"), q = states("split_c");
  const TensorId decay = f_.op("softplus", {steps}, p + "decay");
  const TensorId y = f_.op("linear_scan", {v, k, q, decay}, p + "scan");
  // The norm is computed for each group of heads.
  const int64_t width = values / r.groups;
  const TensorId flat = f_.view(y, {b, s, values});
  // In this order the product has the dense layout of `flat`, not that of z, which is a slice.
  const TensorId gated = f_.op("mul", {flat, f_.op("silu", {z}, p + "gate")}, p + "gate_mul");
  const TensorId weight =
      f_.weight(p + "norm.weight", {r.groups, width}, 0, f_.outputs(1, {r.groups}));
  const TensorId normal =
      f_.op("rms_norm", {f_.view(gated, {b, s, r.groups, width}), weight}, p + "norm");
  return f_.linear(f_.view(normal, {b, s, values}), p + "out_proj",
                   {c_.hidden_dim, r.proj_bias, f_.inputs(1, values)});
}

}  // namespace tilecast
