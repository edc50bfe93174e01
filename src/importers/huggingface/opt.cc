// OPT (transformers/models/opt/modeling_opt.py, eager attention).

#include <algorithm>

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct OptConfig {
  int64_t width, heads, layers, inner, positions, vocabulary, embedding;
  std::string activation;
  bool norm_first, bias, dropout, attention_dropout;
};

OptConfig read_config(const JsonObject& c) {
  OptConfig config{};
  config.width = c.integer({"hidden_size"}, 1, kLargestSize);
  config.heads = c.integer({"num_attention_heads"}, 1, kLargestSize);
  config.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  config.inner = c.integer({"ffn_dim"}, 1, kLargestSize);
  config.positions = c.integer({"max_position_embeddings"}, 1, kLargestSize);
  config.vocabulary = c.integer({"vocab_size"}, 1, kLargestSize);
  config.embedding =
      c.optional_integer({"word_embed_proj_dim"}, 1, kLargestSize).value_or(config.width);
  config.activation = c.optional_string({"activation_function"}).value_or("relu");
  check_activation(c, "activation_function", config.activation);
  config.norm_first = c.boolean("do_layer_norm_before", true);
  config.bias = c.boolean("enable_bias", true);
  config.dropout = !c.has("dropout") || c.number("dropout") > 0;
  config.attention_dropout = c.has("attention_dropout") && c.number("attention_dropout") > 0;
  head_size(c, "hidden_size", config.width, "num_attention_heads", config.heads);
  return config;
}

/// The causal mask joined with the (all ones) padding mask, [b, 1, s, s], as the decoder makes it.
TensorId decoder_mask(Layers& f) {
  GraphBuilder& b = f.builder();
  const int64_t s = f.request().seq;
  const Shape full = {f.request().batch, 1, s, s};
  const TensorId causal = f.causal_mask("causal_mask");
  const TensorId ones = b.input("attention_mask", {full[0], 1, 1, s}, f.request().dtype);
  const TensorId wide = f.op("expand", {ones}, "expand_mask", {{"shape", full}});
  const TensorId inverted = f.op("rsub_scalar", {wide}, "expand_mask");
  const TensorId hidden = f.op("cast", {inverted}, "expand_mask", {{"dtype", DType::kBool}});
  const TensorId filled = f.op("where", {hidden, inverted}, "expand_mask");
  const TensorId again = f.op("cast", {filled}, "expand_mask", {{"dtype", DType::kBool}});
  return f.op("where", {again, causal}, "expand_mask");
}

TensorId attention(Layers& f, const OptConfig& c, TensorId x, TensorId mask) {
  const std::string p = "decoder.layers.0.self_attn.";
  const int64_t size = c.width / c.heads;
  const int64_t batch = f.request().batch;
  const int64_t s = f.request().seq;
  const auto heads = [&](TensorId t, const std::string& name) {
    const TensorId dense = f.op("copy", {f.split_heads(t, c.heads)}, name);
    return f.view(dense, {batch * c.heads, s, size});
  };
  const auto linear = [&](TensorId t, const char* name) {
    return f.linear(t, p + name, {c.width, c.bias});
  };
  const auto project = [&](TensorId merged) {
    return f.dropout(linear(merged, "out_proj"), "decoder.layers.0.dropout", c.dropout);
  };
  const TensorId q = f.op("mul_scalar", {linear(x, "q_proj")}, p + "scale");
  if (f.request().fused_attention) {
    const auto split = [&](TensorId t) { return f.split_heads(t, c.heads); };
    return project(f.fused_attention(split(q), split(linear(x, "k_proj")),
                                     split(linear(x, "v_proj")), p + "attention", {{"causal", 1}}));
  }
  const TensorId k = heads(linear(x, "k_proj"), p + "k_copy");
  const TensorId v = heads(linear(x, "v_proj"), p + "v_copy");
  const TensorId scores =
      f.op("matmul", {heads(q, p + "q_copy"), f.transpose(k, {0, 2, 1})}, p + "scores");
  const TensorId wide = f.view(scores, {batch, c.heads, s, s});
  const TensorId masked = f.op("add", {wide, mask}, p + "mask");
  const TensorId clamped = f.op("maximum_scalar", {masked}, p + "clamp");
  const TensorId weights =
      f.op("softmax", {f.view(clamped, {batch * c.heads, s, s})}, p + "softmax");
  const TensorId dropped = f.dropout(weights, p + "dropout", c.attention_dropout);
  const TensorId context = f.op("matmul", {dropped, v}, p + "context");
  return project(f.merge_heads(f.view(context, {batch, c.heads, s, size}), p + "merge"));
}

TensorId layer(Layers& f, const OptConfig& c, TensorId x, TensorId mask) {
  const std::string p = "decoder.layers.0.";
  const auto before = [&](TensorId t, const std::string& name) {
    return c.norm_first ? f.layer_norm(t, name) : t;
  };
  const auto after = [&](TensorId t, const std::string& name) {
    return c.norm_first ? t : f.layer_norm(t, name);
  };
  const TensorId attended = attention(f, c, before(x, p + "self_attn_layer_norm"), mask);
  const TensorId middle =
      after(f.op("add", {x, attended}, p + "self_attn.residual"), p + "self_attn_layer_norm");
  const TensorId wide =
      f.linear(before(middle, p + "final_layer_norm"), p + "fc1", {c.inner, c.bias});
  const TensorId narrow =
      f.linear(f.activation(wide, c.activation, p + "activation_fn"), p + "fc2", {c.width, c.bias});
  const TensorId dropped = f.dropout(narrow, p + "fc_dropout", c.dropout);
  return after(f.op("add", {middle, dropped}, p + "residual"), p + "final_layer_norm");
}

Graph build(const OptConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  GraphBuilder& b = f.builder();
  b.begin_segment("embeddings", 1);
  const TensorId table = f.weight("decoder.embed_tokens.weight", {c.vocabulary, c.embedding});
  TensorId tokens =
      f.embedding(table, f.ids("input_ids", {request.batch, request.seq}), "decoder.embed_tokens");
  const TensorId mask = decoder_mask(f);
  // The table has two rows more than positions (an offset that OPT inherited from fairseq).
  const TensorId places =
      f.embedding(f.weight("decoder.embed_positions.weight", {c.positions + 2, c.width}),
                  f.ids("position_ids", {request.batch, request.seq}), "decoder.embed_positions");
  if (c.embedding != c.width) tokens = f.linear(tokens, "decoder.project_in", {c.width, false});
  const TensorId start = f.op("add", {tokens, places}, "decoder.add_embeddings");

  b.begin_segment("decoder.layers", c.layers);
  const TensorId end = layer(f, c, start, mask);
  b.carry(start, end);

  b.begin_segment("head", 1);
  TensorId output = c.norm_first ? f.layer_norm(end, "decoder.final_layer_norm") : end;
  if (c.embedding != c.width)
    output = f.linear(output, "decoder.project_out", {c.embedding, false});
  graph.outputs = {f.op("linear", {output, table}, "lm_head")};
  return graph;
}

}  // namespace

Model read_opt(const JsonObject& json) {
  const OptConfig config = read_config(json);
  Model model = make_model(config, config.positions, config.positions, build);
  model.has_fused_attention = true;
  return model;
}

}  // namespace tilecast
