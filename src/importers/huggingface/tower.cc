#include "importers/huggingface/tower.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "importers/huggingface/fields.h"

namespace tilecast {
namespace {

/// BEiT's biases: a row for each distance, and three for the class token. [1, heads, n, n]
TensorId patch_bias(Layers& f, const Tower& t, const std::string& name) {
  const int64_t side = 2 * (t.image / t.patch) - 1;
  const TensorId table = f.weight(name + ".relative_position_bias_table",
                                  {side * side + 3, t.heads}, 1, f.outputs(1, {t.heads}));
  const TensorId index =
      f.ids(name + ".relative_position_index", {checked_multiply(t.tokens, t.tokens)});
  const TensorId rows = f.view(f.embedding(table, index, name), {t.tokens, t.tokens, t.heads});
  const TensorId bias = f.op("copy", {f.transpose(rows, {2, 0, 1})}, name);
  return f.view(bias, {1, t.heads, t.tokens, t.tokens});
}

TensorId attention(Layers& f, const Tower& t, TensorId x, const std::string& p, TensorId causal,
                   TensorId bias) {
  const int64_t head_dim = t.hidden_dim / t.heads;
  const auto project = [&](const char* name, bool with_bias) {
    const Layers::Linear options = {t.hidden_dim, with_bias, f.outputs(head_dim, {t.heads})};
    return f.split_heads(f.linear(x, p + name, options), t.heads);
  };
  const TensorId q = project("q_proj", t.qkv_bias), k = project("k_proj", t.qkv_bias && t.key_bias),
                 v = project("v_proj", t.qkv_bias);
  std::vector<Attribute> attributes;
  std::vector<TensorId> masks;
  if (t.attention_dropout) attributes.push_back({"dropout", 1});
  if (t.softmax_fp32) attributes.push_back({"softmax_fp32", 1});
  if (causal >= 0) attributes.push_back({"causal", 1});
  if (causal >= 0 || bias >= 0) masks.push_back(causal >= 0 ? causal : bias);
  const TensorId context =
      f.attention(q, k, v, p + "attention", std::move(attributes), std::move(masks));
  return f.linear(context, p + "out_proj", {t.hidden_dim, true, f.inputs(head_dim, t.heads)});
}

TensorId mlp(Layers& f, const Tower& t, TensorId x, const std::string& p) {
  if (!t.swiglu)
    return f.feed_forward(x, {.up = p + "fc1",
                              .act = p + "act",
                              .down = p + "fc2",
                              .activation = t.activation,
                              .ffn_dim = t.ffn_dim});
  const Layers::Linear wide = {t.ffn_dim, true, f.outputs(1, {t.ffn_dim})};
  const TensorId gate = f.op("silu", {f.linear(x, p + "gate_proj", wide)}, p + "act");
  const TensorId product = f.op("mul", {gate, f.linear(x, p + "up_proj", wide)}, p + "mul");
  return f.linear(product, p + "down_proj", {t.hidden_dim, true, f.inputs(1, t.ffn_dim)});
}

TensorId scaled(Layers& f, const Tower& t, TensorId x, const std::string& name) {
  return t.layer_scale ? f.op("mul", {x, f.weight(name, {t.hidden_dim})}, name) : x;
}

}  // namespace

Tower read_tower(const JsonObject& c) {
  Tower t{};
  t.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  t.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  head_dim_of(c, "hidden_size", t.hidden_dim, "num_attention_heads", t.heads);
  t.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  if (c.has("intermediate_size") || !c.has("mlp_ratio"))
    t.ffn_dim = c.integer({"intermediate_size"}, 1, kLargestConfigSize);
  else
    t.ffn_dim = static_cast<int64_t>(static_cast<double>(t.hidden_dim) * factor(c, "mlp_ratio", 4));
  t.activation = c.optional_string({"hidden_act"}).value_or("gelu");
  check_activation(c, "hidden_act", t.activation);
  for (const char* key : {"attention_probs_dropout_prob", "attention_dropout"})
    t.attention_dropout = t.attention_dropout || (c.has(key) && c.number(key) > 0);
  return t;
}

void read_image(const JsonObject& c, Tower& t) {
  constexpr int64_t kLargestImage = 1 << 16;
  t.image = image_side(c);
  t.patch = c.integer({"patch_size"}, 1, kLargestImage);
  t.channels = c.optional_integer({"num_channels"}, 1, kLargestImage).value_or(3);
  if (t.patch > t.image)
    c.fail("patch_size", fmt::format("{} is larger than the image ({})", t.patch, t.image));
  const int64_t side = t.image / t.patch;
  t.tokens = side * side + t.class_tokens + t.registers;
}

TensorId encode(Layers& f, const Tower& t, TensorId start, const std::string& name, TensorId mask) {
  GraphBuilder& b = f.builder();
  TensorId bias = -1;
  if (t.shared_relative_bias) bias = patch_bias(f, t, "relative_position_bias");
  b.begin_segment(name, t.layers);
  const std::string p = name + ".0.";
  if (t.relative_bias) {
    const TensorId own = patch_bias(f, t, p + "relative_position_bias");
    bias = bias < 0 ? own : f.op("add", {own, bias}, p + "relative_position_bias");
  }
  const TensorId attn_out =
      scaled(f, t, attention(f, t, f.layer_norm(start, p + "layer_norm1"), p + "attn.", mask, bias),
             p + "layer_scale1");
  const TensorId hidden = f.residual({start, attn_out}, p + "attn.residual");
  const TensorId mlp_out = scaled(
      f, t, mlp(f, t, f.layer_norm(hidden, p + "layer_norm2"), p + "mlp."), p + "layer_scale2");
  const TensorId end = f.residual({hidden, mlp_out}, p + "mlp.residual");
  b.carry(start, end);
  return end;
}

TensorId embed_image(Layers& f, const Tower& t, const std::string& p) {
  GraphBuilder& b = f.builder();
  const int64_t batch = f.request().batch;
  const TensorId pixels =
      b.input("pixel_values", {batch, t.channels, t.image, t.image}, f.request().dtype);
  std::vector<TensorId> operands = {
      pixels, f.weight(p + "patch.weight", {t.hidden_dim, t.channels, t.patch, t.patch})};
  if (t.patch_bias) operands.push_back(f.weight(p + "patch.bias", {t.hidden_dim}));
  const TensorId patches = f.op("conv2d", std::move(operands), p + "patch", {{"stride", t.patch}});
  const TensorId flat = f.view(patches, {batch, t.hidden_dim, t.patches()});
  TensorId x = f.transpose(flat, {0, 2, 1});
  const auto learned = [&](const std::string& name, int64_t count) {
    return f.op("expand", {f.weight(p + name, {1, count, t.hidden_dim})}, p + name,
                {{"shape", Shape{batch, count, t.hidden_dim}}});
  };
  if (t.mask_token) f.weight(p + "mask_token", {1, t.hidden_dim});
  const int64_t placed = t.class_tokens + t.patches();
  if (t.class_tokens > 0) {
    std::vector<TensorId> parts = {learned("class_token", 1)};
    if (t.class_tokens > 1) parts.push_back(learned("distillation_token", t.class_tokens - 1));
    parts.push_back(x);
    x = f.op("cat", std::move(parts), p + "cat", {{"dim", 1}});
  }
  if (t.positions)
    x = f.op("add", {x, f.weight(p + "positions", {1, placed, t.hidden_dim})}, p + "add_positions");
  if (t.registers > 0) {
    const auto part = [&](int64_t count) {
      return f.op("slice", {x}, p + "split", {{"dim", 1}, {"count", count}});
    };
    x = f.op("cat",
             {part(t.class_tokens), learned("register_tokens", t.registers), part(t.patches())},
             p + "cat_registers", {{"dim", 1}});
  }
  return t.embedding_norm ? f.layer_norm(x, p + "pre_layernorm") : x;
}

TensorId embed_text(Layers& f, const Tower& t, const std::string& p) {
  const int64_t s = f.request().seq;
  const TensorId token_embeds =
      f.embedding(f.vocabulary_table(p + "token_embedding", t.vocab_size, t.hidden_dim),
                  f.ids("input_ids", {f.request().batch, s}), p + "token_embedding");
  const TensorId position_embeds =
      f.embedding(f.weight(p + "position_embedding", {t.tokens, t.hidden_dim}),
                  f.ids("position_ids", {1, s}), p + "position_embedding");
  return f.op("add", {token_embeds, position_embeds}, p + "add_positions");
}

TensorId one_token(Layers& f, TensorId x, const std::string& name) {
  const Shape shape = f.builder().graph().tensor(x).shape;
  return f.op("gather_rows", {f.view(x, {shape[0] * shape[1], shape[2]})}, name,
              {{"rows", shape[0]}});
}

}  // namespace tilecast
