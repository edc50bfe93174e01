// OPT (transformers/models/opt/modeling_opt.py).

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct OptConfig {
  int64_t hidden_dim, heads, layers, ffn_dim, max_positions, vocab_size, embedding;
  std::string activation;
  bool norm_first, bias, dropout, attention_dropout;
};

OptConfig opt_config(const JsonObject& c) {
  OptConfig config{};
  config.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  config.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  config.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  config.ffn_dim = c.integer({"ffn_dim"}, 1, kLargestConfigSize);
  config.max_positions = c.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.embedding = c.optional_integer({"word_embed_proj_dim"}, 1, kLargestConfigSize)
                         .value_or(config.hidden_dim);
  config.activation = c.optional_string({"activation_function"}).value_or("relu");
  check_activation(c, "activation_function", config.activation);
  config.norm_first = c.boolean("do_layer_norm_before", true);
  config.bias = c.boolean("enable_bias", true);
  config.dropout = drops(c, "dropout", 0.1);
  config.attention_dropout = drops(c, "attention_dropout", 0);
  head_dim_of(c, "hidden_size", config.hidden_dim, "num_attention_heads", config.heads);
  return config;
}

TensorId attention(Layers& f, const OptConfig& c, TensorId x, TensorId mask) {
  const std::string p = "decoder.layers.0.self_attn.";
  const int64_t head_dim = c.hidden_dim / c.heads;
  const auto project = [&](const char* name) {
    return f.linear(x, p + name, {c.hidden_dim, c.bias, f.outputs(head_dim, {c.heads})});
  };
  const auto heads = [&](TensorId t, const char* name) {
    return f.op("split_heads", {t}, p + name, {{"heads", c.heads}, {"copied", 1}});
  };
  const TensorId scaled = f.op("mul_scalar", {project("q_proj")}, p + "scale");
  const TensorId k = heads(project("k_proj"), "k_copy");
  const TensorId v = heads(project("v_proj"), "v_copy");
  const TensorId q = heads(scaled, "q_copy");
  std::vector<Attribute> attributes = {{"causal", 1}, {"scale", "none"}, {"softmax_fp32", 1}};
  if (c.attention_dropout) attributes.push_back({"dropout", 1});
  const TensorId context = f.attention(q, k, v, p + "attention", std::move(attributes), {mask});
  const TensorId out =
      f.linear(context, p + "out_proj", {c.hidden_dim, c.bias, f.inputs(head_dim, c.heads)});
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
  const TensorId attn_out = attention(f, c, before(x, p + "self_attn_layer_norm"), mask);
  const TensorId hidden =
      after(f.residual({x, attn_out}, p + "self_attn.residual"), p + "self_attn_layer_norm");
  const TensorId mlp_out =
      f.feed_forward(before(hidden, p + "final_layer_norm"), {.up = p + "fc1",
                                                              .act = p + "activation_fn",
                                                              .down = p + "fc2",
                                                              .activation = c.activation,
                                                              .ffn_dim = c.ffn_dim,
                                                              .bias = c.bias});
  const TensorId dropped = f.dropout(mlp_out, p + "fc_dropout", c.dropout);
  return after(f.residual({hidden, dropped}, p + "residual"), p + "final_layer_norm");
}

Graph build_opt(const OptConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  GraphBuilder& b = f.builder();
  b.begin_segment("embeddings", 1);
  const TensorId table =
      f.vocabulary_table("decoder.embed_tokens.weight", c.vocab_size, c.embedding);
  TensorId tokens =
      f.embedding(table, f.ids("input_ids", {request.batch, request.seq}), "decoder.embed_tokens");
  const TensorId mask = f.op("causal_mask", {tokens}, "causal_mask", {{"padding", 1}});
  // The table has two more rows than positions, an offset that OPT inherited from fairseq.
  const TensorId position_embeds =
      f.embedding(f.weight("decoder.embed_positions.weight", {c.max_positions + 2, c.hidden_dim}),
                  f.ids("position_ids", {request.batch, request.seq}), "decoder.embed_positions");
  if (c.embedding != c.hidden_dim)
    tokens = f.linear(tokens, "decoder.project_in", {c.hidden_dim, false});
  const TensorId start = f.op("add", {tokens, position_embeds}, "decoder.add_embeddings");

  b.begin_segment("decoder.layers", c.layers);
  const TensorId end = layer(f, c, start, mask);
  b.carry(start, end);

  b.begin_segment("head", 1);
  TensorId output = c.norm_first ? f.layer_norm(end, "decoder.final_layer_norm") : end;
  if (c.embedding != c.hidden_dim)
    output = f.linear(output, "decoder.project_out", {c.embedding, false});
  graph.outputs = {f.tied_output(output, table)};
  return graph;
}

}  // namespace

Model read_opt(const JsonObject& json) {
  const OptConfig config = opt_config(json);
  Model model = make_model(config, config.max_positions, config.max_positions, build_opt);
  model.has_fused_attention = true;
  Decoder decoder;
  decoder.layers = config.layers;
  decoder.heads = decoder.kv_heads = config.heads;
  decoder.ffn_dim = config.ffn_dim;
  decoder.embedding_parameters = (config.max_positions + 2) * config.hidden_dim;  // as of GPT-2
  decoder.caches = {
      {.layers = config.layers, .dim = 2 * config.hidden_dim, .kv_heads = config.heads}};
  model.decoder = std::move(decoder);
  return model;
}

}  // namespace tilecast
