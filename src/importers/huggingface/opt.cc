// OPT (transformers/models/opt/modeling_opt.py).

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
  config.width = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  config.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  config.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  config.inner = c.integer({"ffn_dim"}, 1, kLargestConfigSize);
  config.positions = c.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  config.vocabulary = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.embedding =
      c.optional_integer({"word_embed_proj_dim"}, 1, kLargestConfigSize).value_or(config.width);
  config.activation = c.optional_string({"activation_function"}).value_or("relu");
  check_activation(c, "activation_function", config.activation);
  config.norm_first = c.boolean("do_layer_norm_before", true);
  config.bias = c.boolean("enable_bias", true);
  config.dropout = !c.has("dropout") || c.number("dropout") > 0;
  config.attention_dropout = c.has("attention_dropout") && c.number("attention_dropout") > 0;
  head_size(c, "hidden_size", config.width, "num_attention_heads", config.heads);
  return config;
}

TensorId attention(Layers& f, const OptConfig& c, TensorId x, TensorId mask) {
  const std::string p = "decoder.layers.0.self_attn.";
  const int64_t size = c.width / c.heads;
  const auto project = [&](const char* name) {
    return f.linear(x, p + name, {c.width, c.bias, f.outputs(size, {c.heads})});
  };
  const auto heads = [&](TensorId t, const char* name) {
    return f.op("split_heads", {t}, p + name, {{"heads", c.heads}, {"copied", 1}});
  };
  const TensorId scaled = f.op("mul_scalar", {project("q_proj")}, p + "scale");
  const TensorId k = heads(project("k_proj"), "k_copy");
  const TensorId v = heads(project("v_proj"), "v_copy");
  const TensorId q = heads(scaled, "q_copy");
  std::vector<Attribute> attributes = {{"causal", 1}, {"scale", "none"}};
  if (c.attention_dropout) attributes.push_back({"dropout", 1});
  const TensorId context = f.attention(q, k, v, p + "attention", std::move(attributes), {mask});
  const TensorId out =
      f.linear(context, p + "out_proj", {c.width, c.bias, f.inputs(size, c.heads)});
  return f.dropout(out, "decoder.layers.0.dropout", c.dropout);
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
  const TensorId narrow =
      f.feed_forward(before(middle, p + "final_layer_norm"), {.up = p + "fc1",
                                                              .act = p + "activation_fn",
                                                              .down = p + "fc2",
                                                              .activation = c.activation,
                                                              .inner = c.inner,
                                                              .bias = c.bias});
  const TensorId dropped = f.dropout(narrow, p + "fc_dropout", c.dropout);
  return after(f.op("add", {middle, dropped}, p + "residual"), p + "final_layer_norm");
}

Graph build(const OptConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  GraphBuilder& b = f.builder();
  b.begin_segment("embeddings", 1);
  const TensorId table =
      f.vocabulary_table("decoder.embed_tokens.weight", c.vocabulary, c.embedding);
  TensorId tokens =
      f.embedding(table, f.ids("input_ids", {request.batch, request.seq}), "decoder.embed_tokens");
  const TensorId mask = f.op("causal_mask", {tokens}, "causal_mask", {{"padding", 1}});
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
  Decoder decoder;
  decoder.layers = config.layers;
  decoder.heads = decoder.kv_heads = config.heads;
  decoder.inner = config.inner;
  decoder.looked_up_parameters = (config.positions + 2) * config.width;  // as of GPT-2
  decoder.cache_width = 2 * config.width;
  decoder.windows.assign(static_cast<size_t>(config.layers), 0);
  model.decoder = std::move(decoder);
  return model;
}

}  // namespace tilecast
