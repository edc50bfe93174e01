// GPT-2 (transformers/models/gpt2/modeling_gpt2.py): also the GPT-3 sizes.

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct Gpt2Config {
  int64_t hidden_dim, heads, layers, ffn_dim, max_positions, vocab_size;
  std::string activation;
  bool has_head;
  bool embedding_dropout, residual_dropout, attention_dropout;
};

Gpt2Config gpt2_config(const JsonObject& c) {
  Gpt2Config config{};
  config.hidden_dim = c.integer({"n_embd", "hidden_size"}, 1, kLargestConfigSize);
  config.heads = c.integer({"n_head", "num_attention_heads"}, 1, kLargestConfigSize);
  config.layers = c.integer({"n_layer", "num_hidden_layers"}, 1, 100000);
  config.ffn_dim =
      c.optional_integer({"n_inner"}, 1, kLargestConfigSize).value_or(4 * config.hidden_dim);
  config.max_positions =
      c.integer({"n_positions", "n_ctx", "max_position_embeddings"}, 1, kLargestConfigSize);
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.activation = c.optional_string({"activation_function"}).value_or("gelu_new");
  check_activation(c, "activation_function", config.activation);
  head_dim_of(c, "n_embd", config.hidden_dim, "n_head", config.heads);
  config.embedding_dropout = drops(c, "embd_pdrop", 0.1);
  config.residual_dropout = drops(c, "resid_pdrop", 0.1);
  config.attention_dropout = drops(c, "attn_pdrop", 0.1);
  const Json& architectures = c.json().value("architectures", Json::array());
  config.has_head =
      !(architectures.is_array() && architectures.size() == 1 && architectures[0] == "GPT2Model");
  return config;
}

TensorId attention(Layers& f, const Gpt2Config& c, TensorId x) {
  const int64_t head_dim = c.hidden_dim / c.heads;
  const TensorId qkv =
      f.linear(x, "h.0.attn.c_attn",
               {3 * c.hidden_dim, true, f.outputs(head_dim, {c.heads, c.heads, c.heads}), true});
  const std::vector<TensorId> parts =
      f.builder().add("split", {qkv}, "h.0.attn.split", {{"parts", 3}});
  const TensorId q = f.split_heads(parts[0], c.heads);
  const TensorId k = f.split_heads(parts[1], c.heads);
  const TensorId v = f.split_heads(parts[2], c.heads);
  std::vector<Attribute> attributes = {{"causal", 1}, {"scale", "div"}, {"stored_mask", 1}};
  if (c.attention_dropout) attributes.push_back({"dropout", 1});
  const TensorId context = f.attention(q, k, v, "h.0.attn.attention", std::move(attributes));
  const TensorId out =
      f.linear(context, "h.0.attn.c_proj", {c.hidden_dim, true, f.inputs(head_dim, c.heads), true});
  return f.dropout(out, "h.0.attn.resid_dropout", c.residual_dropout);
}

Graph build_gpt2(const Gpt2Config& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  GraphBuilder& b = f.builder();
  b.begin_segment("embeddings", 1);
  const TensorId table = f.vocabulary_table("wte.weight", c.vocab_size, c.hidden_dim);
  const TensorId tokens =
      f.embedding(table, f.ids("input_ids", {request.batch, request.seq}), "wte");
  const TensorId position_embeds =
      f.embedding(f.weight("wpe.weight", {c.max_positions, c.hidden_dim}),
                  f.ids("position_ids", {1, request.seq}), "wpe");
  const TensorId start = f.dropout(f.op("add", {tokens, position_embeds}, "add_embeddings"), "drop",
                                   c.embedding_dropout);

  b.begin_segment("h", c.layers);
  const TensorId attn_out = attention(f, c, f.layer_norm(start, "h.0.ln_1"));
  const TensorId hidden = f.residual({attn_out, start}, "h.0.attn.residual");
  const TensorId mlp_out =
      f.feed_forward(f.layer_norm(hidden, "h.0.ln_2"), {.up = "h.0.mlp.c_fc",
                                                        .act = "h.0.mlp.act",
                                                        .down = "h.0.mlp.c_proj",
                                                        .activation = c.activation,
                                                        .ffn_dim = c.ffn_dim,
                                                        .weight_is_k_by_n = true});
  const TensorId end = f.residual(
      {hidden, f.dropout(mlp_out, "h.0.mlp.dropout", c.residual_dropout)}, "h.0.mlp.residual");
  b.carry(start, end);

  b.begin_segment("head", 1);
  TensorId output = f.layer_norm(end, "ln_f");
  if (c.has_head) output = f.tied_output(output, table);
  graph.outputs = {output};
  return graph;
}

}  // namespace

Model read_gpt2(const JsonObject& json) {
  const Gpt2Config config = gpt2_config(json);
  Model model = make_model(config, config.max_positions, config.max_positions, build_gpt2);
  model.has_fused_attention = true;
  if (!config.has_head) return model;
  Decoder decoder;
  decoder.layers = config.layers;
  decoder.heads = decoder.kv_heads = config.heads;
  decoder.ffn_dim = config.ffn_dim;
  decoder.embedding_parameters =
      config.max_positions * config.hidden_dim;  // the token embedding is also the output layer
  decoder.caches = {
      {.layers = config.layers, .dim = 2 * config.hidden_dim, .kv_heads = config.heads}};
  model.decoder = std::move(decoder);
  return model;
}

}  // namespace tilecast
