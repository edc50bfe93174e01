// ModernBERT (transformers/models/modernbert/modeling_modernbert.py): rotary positions, layers with
// local and with global attention, gated MLPs, norms before attention and MLP.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct ModernBertConfig {
  int64_t hidden_dim, heads, ffn_dim, vocab_size, max_positions;
  int64_t window;              ///< keys that a query of a local layer sees
  std::vector<bool> is_local;  ///< by layer
  std::string activation, head_activation;
  bool norm_bias, attention_bias, mlp_bias, head_bias, decoder_bias;
  bool attention_dropout, mlp_dropout, embedding_dropout;
  bool vocabulary_head;
  int64_t labels, token_labels;  ///< classes of a sequence, of each token; 0: none
};

std::vector<bool> read_layer_types(const JsonObject& c, int64_t layers) {
  std::vector<bool> is_local;
  if (c.has("layer_types")) {
    const std::vector<std::string> types = c.strings("layer_types");
    if (static_cast<int64_t>(types.size()) != layers)
      c.fail("layer_types", fmt::format("expected {} entries, one for each of 'num_hidden_layers', "
                                        "found {}",
                                        layers, types.size()));
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] != "full_attention" && types[i] != "sliding_attention")
        c.fail(fmt::format("layer_types[{}]", i),
               "expected 'full_attention' or 'sliding_attention', found '" + shown_name(types[i]) +
                   "'");
      is_local.push_back(types[i] == "sliding_attention");
    }
    return is_local;
  }
  const int64_t every =
      c.optional_integer({"global_attn_every_n_layers"}, 1, kLargestConfigSize).value_or(3);
  for (int64_t i = 0; i < layers; ++i) is_local.push_back(i % every != 0);
  return is_local;
}

ModernBertConfig modernbert_config(const JsonObject& c) {
  ModernBertConfig m{};
  m.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  m.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  const int64_t head_dim =
      head_dim_of(c, "hidden_size", m.hidden_dim, "num_attention_heads", m.heads);
  if (head_dim % 2 != 0)
    c.fail(
        "num_attention_heads",
        fmt::format("expected heads of an even size, which rotary positions turn in pairs, found "
                    "{}",
                    head_dim));
  m.ffn_dim = c.integer({"intermediate_size"}, 1, kLargestConfigSize);
  m.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  m.max_positions = c.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  constexpr int64_t kMostLayers = 1000;  // each run of equal periods is one part of the graph
  m.is_local = read_layer_types(c, c.integer({"num_hidden_layers"}, 1, kMostLayers));
  // The window is on both sides of a query: half of it before, half of it after.
  m.window =
      c.optional_integer({"local_attention"}, 2, kLargestConfigSize).value_or(128) / 2 * 2 + 1;
  m.activation = c.optional_string({"hidden_activation"}).value_or("gelu");
  check_activation(c, "hidden_activation", m.activation);
  m.head_activation = c.optional_string({"classifier_activation"}).value_or("gelu");
  check_activation(c, "classifier_activation", m.head_activation);
  m.norm_bias = c.boolean("norm_bias", false);
  m.attention_bias = c.boolean("attention_bias", false);
  m.mlp_bias = c.boolean("mlp_bias", false);
  m.head_bias = c.boolean("classifier_bias", false);
  m.decoder_bias = c.boolean("decoder_bias", true);
  m.attention_dropout = drops(c, "attention_dropout", 0);
  m.mlp_dropout = drops(c, "mlp_dropout", 0);
  m.embedding_dropout = drops(c, "embedding_dropout", 0);
  const std::string name = class_name(c, "ModernBertForMaskedLM");
  m.vocabulary_head = name.ends_with("ForMaskedLM");
  m.labels = name.ends_with("ForSequenceClassification") ? label_count(c) : 0;
  m.token_labels = name.ends_with("ForTokenClassification") ? label_count(c)
                   : name.ends_with("ForQuestionAnswering") ? 2
                                                            : 0;
  return m;
}

class ModernBert {
 public:
  ModernBert(Graph& graph, const ModernBertConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("embeddings", 1);
    const Shape ids = {f_.request().batch, f_.request().seq};
    table_ = f_.vocabulary_table("embeddings.tok_embeddings", c_.vocab_size, c_.hidden_dim);
    TensorId x = f_.op("embedding", {table_, f_.ids("input_ids", ids)}, "embeddings.tok_embeddings",
                       {{"inner", int64_t{1}}});
    x = f_.dropout(norm(x, "embeddings.norm"), "embeddings.drop", c_.embedding_dropout);
    rotary_table(global_, "full_attention");
    rotary_table(local_, "sliding_attention");
    const int64_t s = f_.request().seq;
    mask_ = b.input("sliding_window_mask", {1, 1, s, s}, f_.request().dtype);
    b.begin_segment("layers.0", 1);  // without a norm before its attention
    x = layer(x, 0);
    x = further_layers(x);
    b.begin_segment("head", 1);
    graph_.outputs = {head(norm(x, "final_norm"))};
  }

 private:
  struct Rotary {
    TensorId cos = -1, sin = -1;
  };

  TensorId norm(TensorId x, const std::string& name) {
    const TensorId weight = f_.weight(name + ".weight", {c_.hidden_dim});
    if (!c_.norm_bias) return f_.op("layer_norm", {x, weight}, name);
    return f_.op("layer_norm", {x, weight, f_.weight(name + ".bias", {c_.hidden_dim})}, name);
  }

  /// Cosines and sines [1, 1, s, head_dim] of positions times frequencies; no matrix product.
  void rotary_table(Rotary& rotary, const std::string& kind) {
    const std::string name = "rotary_emb." + kind;
    const int64_t s = f_.request().seq, head_dim = c_.hidden_dim / c_.heads;
    const TensorId frequencies = f_.builder().tensor(
        {.name = name + "_inv_freq", .shape = {1, 1, head_dim / 2}, .kind = TensorKind::kBuffer});
    const TensorId places = f_.builder().input("position_ids", {1, s, 1}, DType::kFp32);
    const TensorId angles = f_.op("mul", {places, frequencies}, name);
    const TensorId both = f_.op("cat", {angles, angles}, name, {{"dim", 2}});
    const auto wave = [&](const char* function) {
      TensorId t = f_.op("mul_scalar", {f_.op(function, {both}, name)}, name);
      if (f_.request().dtype != DType::kFp32)
        t = f_.op("cast", {t}, name, {{"dtype", f_.request().dtype}});
      return f_.view(t, {1, 1, s, head_dim});
    };
    rotary = {wave("cos"), wave("sin")};
  }

  TensorId attention(TensorId x, bool local, const std::string& p) {
    const int64_t head_dim = c_.hidden_dim / c_.heads;
    const Layers::Split split = f_.outputs(head_dim, {c_.heads, c_.heads, c_.heads});
    const TensorId all = f_.linear(x, p + "Wqkv", {3 * c_.hidden_dim, c_.attention_bias, split});
    const auto part = [&](const char* name) {
      return f_.split_heads(f_.slice(all, c_.hidden_dim, p + name), c_.heads);
    };
    const TensorId q = part("q"), k = part("k"), v = part("v");
    const Rotary& rotary = local ? local_ : global_;
    const auto turn = [&](TensorId t, const char* name) {
      return f_.op("apply_rotary", {t, rotary.cos, rotary.sin}, p + name);
    };
    std::vector<Attribute> attributes = {{"softmax_fp32", 1}};
    std::vector<TensorId> masks;
    if (c_.attention_dropout) attributes.push_back({"dropout", 1});
    if (local) {
      attributes.push_back({"window", c_.window});
      masks.push_back(mask_);
    }
    const TensorId context = f_.attention(turn(q, "rotary_q"), turn(k, "rotary_k"), v,
                                          p + "attention", std::move(attributes), std::move(masks));
    const TensorId out = f_.linear(
        context, p + "Wo", {c_.hidden_dim, c_.attention_bias, f_.inputs(head_dim, c_.heads)});
    return f_.dropout(out, p + "out_drop", c_.attention_dropout);
  }

  TensorId mlp(TensorId x, const std::string& p) {
    const TensorId both = f_.linear(
        x, p + "Wi", {2 * c_.ffn_dim, c_.mlp_bias, f_.outputs(1, {c_.ffn_dim, c_.ffn_dim})});
    const TensorId input = f_.slice(both, c_.ffn_dim, p + "input");
    const TensorId gate = f_.slice(both, c_.ffn_dim, p + "gate");
    const TensorId product =
        f_.op("mul", {f_.activation(input, c_.activation, p + "act"), gate}, p + "gated");
    return f_.linear(f_.dropout(product, p + "drop", c_.mlp_dropout), p + "Wo",
                     {c_.hidden_dim, c_.mlp_bias, f_.inputs(1, c_.ffn_dim)});
  }

  TensorId layer(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.", index);
    const TensorId in = index == 0 ? x : norm(x, p + "attn_norm");
    const TensorId hidden =
        f_.residual({x, attention(in, c_.is_local[index], p + "attn.")}, p + "attn.residual");
    const TensorId out = mlp(norm(hidden, p + "mlp_norm"), p + "mlp.");
    return f_.residual({hidden, out}, p + "mlp.residual");
  }

  /// The layers after the first, as repetitions of their shortest period and a rest.
  TensorId further_layers(TensorId x) {
    const size_t count = c_.is_local.size() - 1;
    if (count == 0) return x;
    size_t period = 1;
    const auto repeats = [&](size_t p) {
      for (size_t i = 1; i + p < c_.is_local.size(); ++i) {
        if (c_.is_local[i] != c_.is_local[i + p]) return false;
      }
      return true;
    };
    while (!repeats(period)) ++period;
    const auto run = [&](size_t first, size_t layers, size_t times) {
      f_.builder().begin_segment(fmt::format("layers.{}", first), static_cast<int64_t>(times));
      const TensorId start = x;
      for (size_t i = 0; i < layers; ++i) x = layer(x, first + i);
      if (times > 1) f_.builder().carry(start, x);
    };
    run(1, period, count / period);
    if (count % period > 0) run(1 + count / period * period, count % period, 1);
    return x;
  }

  TensorId head(TensorId x) {
    if (!c_.vocabulary_head && c_.labels == 0 && c_.token_labels == 0) return x;
    if (c_.labels > 0)  // on the first token of each sequence
      x = f_.op("gather_rows", {x}, "first_token", {{"rows", f_.request().batch}});
    const TensorId dense = f_.linear(x, "head.dense", {c_.hidden_dim, c_.head_bias});
    const TensorId normal = norm(f_.activation(dense, c_.head_activation, "head.act"), "head.norm");
    if (c_.labels > 0) return f_.linear(normal, "classifier", {c_.labels});
    if (c_.token_labels > 0) return f_.linear(normal, "classifier", {c_.token_labels});
    std::vector<TensorId> operands = {normal, table_};
    if (c_.decoder_bias)
      operands.push_back(
          f_.weight("decoder.bias", {c_.vocab_size}, 0, f_.vocabulary(c_.vocab_size)));
    const TensorId logits = f_.op("linear", std::move(operands), "decoder");
    return f_.op("keep", {logits, normal}, "decoder");
  }

  Graph& graph_;
  Layers f_;
  const ModernBertConfig& c_;
  TensorId table_ = -1, mask_ = -1;
  Rotary global_, local_;
};

Graph build_modernbert(const ModernBertConfig& config, const GraphRequest& request) {
  Graph graph;
  ModernBert(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_modernbert(const JsonObject& json) {
  const ModernBertConfig config = modernbert_config(json);
  Model model = make_model(config, std::min<int64_t>(512, config.max_positions),
                           config.max_positions, build_modernbert);
  model.has_fused_attention = true;
  model.upcasts_loss = config.vocabulary_head;  // ForMaskedLMLoss; BERT's code has no cast
  return model;
}

}  // namespace tilecast
