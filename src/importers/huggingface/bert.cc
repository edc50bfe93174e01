// BERT (transformers/models/bert/modeling_bert.py).

#include <algorithm>

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct BertConfig {
  int64_t hidden_dim, heads, layers, ffn_dim, max_positions, type_vocab_size, vocab_size;
  std::string activation;
  bool pooler, vocabulary_head;
  int64_t labels;  ///< outputs of the head on the pooled first token; 0 for none
};

BertConfig read_config(const JsonObject& c) {
  BertConfig config{};
  config.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  config.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  config.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  config.ffn_dim = c.integer({"intermediate_size"}, 1, kLargestConfigSize);
  config.max_positions = c.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  config.type_vocab_size =
      c.optional_integer({"type_vocab_size"}, 1, kLargestConfigSize).value_or(2);
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.activation = c.optional_string({"hidden_act"}).value_or("gelu");
  check_activation(c, "hidden_act", config.activation);
  head_dim_of(c, "hidden_size", config.hidden_dim, "num_attention_heads", config.heads);
  // The class named in the config decides which heads there are; the default, pre-training, has
  // all.
  std::string name = "BertForPreTraining";
  if (c.has("architectures") && !c.strings("architectures").empty())
    name = c.strings("architectures").front();
  const bool language = name == "BertLMHeadModel" || name == "BertForMaskedLM";
  config.vocabulary_head = language || name == "BertForPreTraining";
  config.pooler = !language;
  const bool pair = name == "BertForPreTraining" || name == "BertForNextSentencePrediction";
  const bool classes = name == "BertForSequenceClassification";
  config.labels = pair      ? 2
                  : classes ? c.optional_integer({"num_labels"}, 1, kLargestConfigSize).value_or(2)
                            : 0;
  return config;
}

TensorId attention(Layers& f, const BertConfig& c, TensorId x, TensorId mask) {
  const std::string p = "encoder.layer.0.attention.";
  const int64_t head_dim = c.hidden_dim / c.heads;
  const auto project = [&](const char* name) {
    const Layers::Linear options = {c.hidden_dim, true, f.outputs(head_dim, {c.heads})};
    return f.split_heads(f.linear(x, p + name, options), c.heads);
  };
  const TensorId q = project("self.query");
  const TensorId k = project("self.key");
  const TensorId v = project("self.value");
  const TensorId context =
      f.attention(q, k, v, p + "self.attention", {{"scale", "div"}, {"dropout", 1}}, {mask});
  const TensorId out = f.dropout(
      f.linear(context, p + "output.dense", {c.hidden_dim, true, f.inputs(head_dim, c.heads)}),
      p + "output.dropout");
  return f.layer_norm(f.op("add", {out, x}, p + "output.residual"), p + "output.LayerNorm");
}

std::vector<TensorId> heads(Layers& f, const BertConfig& c, TensorId x, TensorId table) {
  std::vector<TensorId> outputs;
  if (c.vocabulary_head) {
    const std::string p = "cls.predictions.";
    const TensorId dense = f.linear(x, p + "transform.dense", {c.hidden_dim});
    const TensorId active = f.activation(dense, c.activation, p + "transform.act");
    const TensorId normal = f.layer_norm(active, p + "transform.LayerNorm");
    const TensorId bias = f.weight(p + "bias", {c.vocab_size}, 0, f.outputs(1, {c.vocab_size}));
    outputs.push_back(f.op("linear", {normal, table, bias}, p + "decoder"));
  }
  if (!c.vocabulary_head && c.labels == 0) outputs.push_back(x);
  if (!c.pooler) return outputs;
  // The first token of each sequence, a strided view that linear reads in place.
  const TensorId first =
      f.op("gather_rows", {x}, "pooler.first_token", {{"rows", f.request().batch}});
  const TensorId pooled =
      f.op("tanh", {f.linear(first, "pooler.dense", {c.hidden_dim})}, "pooler.act");
  outputs.push_back(c.labels > 0 ? f.linear(pooled, "cls.seq_relationship", {c.labels}) : pooled);
  return outputs;
}

Graph build(const BertConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  GraphBuilder& b = f.builder();
  const int64_t batch = request.batch;
  const int64_t s = request.seq;
  b.begin_segment("embeddings", 1);
  // Without an attention mask as input, the model creates one of all ones.
  const TensorId like = b.tensor({.name = "attention_mask",
                                  .shape = {batch, 1, 1, s},
                                  .dtype = request.dtype,
                                  .kind = TensorKind::kReference});
  const TensorId seen = f.op("fill", {like}, "attention_mask");
  const TensorId mask =
      f.op("mul_scalar", {f.op("rsub_scalar", {seen}, "extended_mask")}, "extended_mask");
  const TensorId table =
      f.vocabulary_table("embeddings.word_embeddings.weight", c.vocab_size, c.hidden_dim);
  const TensorId token_embeds =
      f.embedding(table, f.ids("input_ids", {batch, s}), "embeddings.word_embeddings");
  const TensorId types = f.embedding(
      f.weight("embeddings.token_type_embeddings.weight", {c.type_vocab_size, c.hidden_dim}),
      f.ids("token_type_ids", {batch, s}), "embeddings.token_type_embeddings");
  const TensorId position_embeds = f.embedding(
      f.weight("embeddings.position_embeddings.weight", {c.max_positions, c.hidden_dim}),
      f.ids("position_ids", {1, s}), "embeddings.position_embeddings");
  const TensorId pair = f.op("add", {token_embeds, types}, "embeddings.add");
  const TensorId sum = f.op("add", {pair, position_embeds}, "embeddings.add_positions");
  const TensorId start = f.dropout(f.layer_norm(sum, "embeddings.LayerNorm"), "embeddings.dropout");

  b.begin_segment("encoder.layer", c.layers);
  const std::string p = "encoder.layer.0.";
  const TensorId attn_out = attention(f, c, start, mask);
  const TensorId mlp_out = f.dropout(f.feed_forward(attn_out, {.up = p + "intermediate.dense",
                                                               .act = p + "intermediate.act",
                                                               .down = p + "output.dense",
                                                               .activation = c.activation,
                                                               .ffn_dim = c.ffn_dim}),
                                     p + "output.dropout");
  const TensorId end =
      f.layer_norm(f.op("add", {mlp_out, attn_out}, p + "output.residual"), p + "output.LayerNorm");
  b.carry(start, end);

  b.begin_segment("head", 1);
  graph.outputs = heads(f, c, end, table);
  return graph;
}

}  // namespace

Model read_bert(const JsonObject& json) {
  const BertConfig config = read_config(json);
  Model model =
      make_model(config, std::min<int64_t>(512, config.max_positions), config.max_positions, build);
  model.has_fused_attention = true;
  return model;
}

}  // namespace tilecast
