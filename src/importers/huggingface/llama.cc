// Llama, Mistral and Qwen2 (transformers/models/llama/modeling_llama.py and its kin, eager
// attention): RMSNorm, rotary embedding, grouped-query heads, SwiGLU.

#include <fmt/format.h>

#include <algorithm>

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct LlamaConfig {
  int64_t width, heads, kv_heads, head, layers, inner, positions, vocabulary;
  std::string activation;
  bool qkv_bias, out_bias, mlp_bias, tied, attention_dropout;
};

LlamaConfig read_config(const JsonObject& c) {
  LlamaConfig config{};
  config.width = c.integer({"hidden_size"}, 1, kLargestSize);
  config.heads = c.integer({"num_attention_heads"}, 1, kLargestSize);
  config.kv_heads =
      c.optional_integer({"num_key_value_heads"}, 1, kLargestSize).value_or(config.heads);
  if (config.heads % config.kv_heads != 0)
    c.fail("num_key_value_heads",
           fmt::format("{} does not divide the {} attention heads", config.kv_heads, config.heads));
  const std::optional<int64_t> head = c.optional_integer({"head_dim"}, 1, kLargestSize);
  config.head =
      head ? *head : head_size(c, "hidden_size", config.width, "num_attention_heads", config.heads);
  if (config.head % 2 != 0)
    c.fail("num_attention_heads",
           fmt::format("rotary embedding needs an even head size, found {}", config.head));
  config.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  config.inner = c.integer({"intermediate_size"}, 1, kLargestSize);
  config.positions = c.integer({"max_position_embeddings"}, 1, kLargestSize);
  config.vocabulary = c.integer({"vocab_size"}, 1, kLargestSize);
  config.activation = c.optional_string({"hidden_act"}).value_or("silu");
  check_activation(c, "hidden_act", config.activation);
  const bool qwen = c.string("model_type") == "qwen2";
  config.out_bias = c.boolean("attention_bias", false);
  config.qkv_bias = qwen || config.out_bias;
  config.mlp_bias = c.boolean("mlp_bias", false);
  config.tied = c.boolean("tie_word_embeddings", false);
  config.attention_dropout = c.has("attention_dropout") && c.number("attention_dropout") > 0;
  return config;
}

struct Rotary {
  TensorId cos, sin;
};

/// Angles of every position, [1, s, head], once a forward pass.
Rotary rotary_table(Layers& f, const LlamaConfig& c) {
  GraphBuilder& b = f.builder();
  const int64_t s = f.request().seq;
  const TensorId frequencies = b.tensor(
      {.name = "rotary_emb.inv_freq", .shape = {1, c.head / 2, 1}, .kind = TensorKind::kBuffer});
  const TensorId places = b.input("position_ids", {1, 1, s}, DType::kFp32);
  const TensorId angles = f.op("matmul", {frequencies, places}, "rotary_emb");
  const TensorId half = f.transpose(angles, {0, 2, 1});
  const TensorId both = f.op("cat", {half, half}, "rotary_emb", {{"dim", {2}}});
  const auto wave = [&](const char* op) {
    TensorId t = f.op("mul_scalar", {f.op(op, {both}, "rotary_emb")}, "rotary_emb");
    if (f.request().dtype != DType::kFp32)
      t = f.op("cast", {t}, "rotary_emb", {{"dtype", {static_cast<int64_t>(f.request().dtype)}}});
    return f.view(t, {1, 1, s, c.head});
  };
  return {wave("cos"), wave("sin")};
}

/// x cos + rotate_half(x) sin
TensorId rotate(Layers& f, TensorId x, const Rotary& rotary, const std::string& name) {
  const std::vector<TensorId> halves = f.builder().add("split", {x}, name, {{"parts", {2}}});
  const TensorId turned =
      f.op("cat", {f.op("neg", {halves[1]}, name), halves[0]}, name, {{"dim", {3}}});
  return f.op("add", {f.op("mul", {x, rotary.cos}, name), f.op("mul", {turned, rotary.sin}, name)},
              name);
}

/// Each key and value head serves several query heads: expanded by a copy.
TensorId repeat_heads(Layers& f, const LlamaConfig& c, TensorId x, const std::string& name) {
  const int64_t times = c.heads / c.kv_heads;
  if (times == 1) return x;
  const int64_t batch = f.request().batch;
  const int64_t s = f.request().seq;
  const TensorId narrow = f.view(x, {batch, c.kv_heads, 1, s, c.head});
  const TensorId wide =
      f.op("expand", {narrow}, name, {{"shape", {batch, c.kv_heads, times, s, c.head}}});
  return f.view(f.op("copy", {wide}, name), {batch, c.heads, s, c.head});
}

TensorId attention(Layers& f, const LlamaConfig& c, TensorId x, const Rotary& rotary,
                   TensorId mask) {
  const std::string p = "layers.0.self_attn.";
  const int64_t kv_width = c.kv_heads * c.head;
  TensorId q = f.split_heads(f.linear(x, p + "q_proj", {c.heads * c.head, c.qkv_bias}), c.heads);
  TensorId k = f.split_heads(f.linear(x, p + "k_proj", {kv_width, c.qkv_bias}), c.kv_heads);
  TensorId v = f.split_heads(f.linear(x, p + "v_proj", {kv_width, c.qkv_bias}), c.kv_heads);
  q = rotate(f, q, rotary, p + "rotary_q");
  k = rotate(f, k, rotary, p + "rotary_k");
  k = repeat_heads(f, c, k, p + "repeat_k");
  v = repeat_heads(f, c, v, p + "repeat_v");
  const TensorId scores = f.matmul(q, f.transpose(k, {0, 1, 3, 2}), p + "scores");
  const TensorId scaled = f.op("mul_scalar", {scores}, p + "scale");
  const TensorId masked = f.op("add", {scaled, mask}, p + "mask");
  const TensorId weights = f.op("softmax", {masked}, p + "softmax");
  const TensorId dropped = f.dropout(weights, p + "dropout", c.attention_dropout);
  const TensorId context = f.matmul(dropped, v, p + "context");
  return f.linear(f.merge_heads(context, p + "merge"), p + "o_proj", {c.width, c.out_bias});
}

Graph build(const LlamaConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  GraphBuilder& b = f.builder();
  b.begin_segment("embeddings", 1);
  const TensorId table = f.weight("embed_tokens.weight", {c.vocabulary, c.width});
  const TensorId start =
      f.embedding(table, f.ids("input_ids", {request.batch, request.seq}), "embed_tokens");
  const TensorId mask = f.causal_mask("causal_mask");
  const Rotary rotary = rotary_table(f, c);

  b.begin_segment("layers", c.layers);
  const TensorId normal = f.rms_norm(start, "layers.0.input_layernorm");
  const TensorId attended = attention(f, c, normal, rotary, mask);
  const TensorId middle = f.op("add", {start, attended}, "layers.0.self_attn.residual");
  const TensorId inner = f.rms_norm(middle, "layers.0.post_attention_layernorm");
  const TensorId gate =
      f.activation(f.linear(inner, "layers.0.mlp.gate_proj", {c.inner, c.mlp_bias}), c.activation,
                   "layers.0.mlp.act_fn");
  const TensorId up = f.linear(inner, "layers.0.mlp.up_proj", {c.inner, c.mlp_bias});
  const TensorId product = f.op("mul", {gate, up}, "layers.0.mlp.mul");
  const TensorId down = f.linear(product, "layers.0.mlp.down_proj", {c.width, c.mlp_bias});
  const TensorId end = f.op("add", {middle, down}, "layers.0.mlp.residual");
  b.carry(start, end);

  b.begin_segment("head", 1);
  const TensorId last = f.rms_norm(end, "norm");
  graph.outputs = {c.tied ? f.op("linear", {last, table}, "lm_head")
                          : f.linear(last, "lm_head", {c.vocabulary, false})};
  return graph;
}

}  // namespace

Model read_llama(const JsonObject& json) {
  const LlamaConfig config = read_config(json);
  return make_model(config, std::min<int64_t>(2048, config.positions), config.positions, build);
}

}  // namespace tilecast
