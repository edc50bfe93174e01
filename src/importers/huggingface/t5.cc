// T5, mT5, UMT5 and Switch Transformers (transformers/models/t5, mt5, umt5, switch_transformers):
// encoder and decoder; in the last some feed-forward layers are experts. Tokens spread evenly over
// the experts; the capacity limit, which drops tokens, is not applied.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "importers/huggingface/layers.h"
#include "importers/huggingface/relative_bias.h"

namespace tilecast {
namespace {

// Limits far above any published model (Switch-C: 2048 experts, T5: 24 layers), so that a typing
// mistake does not make the graph too large; it lists every expert.
constexpr int64_t kMaxLayers = 2000;
constexpr int64_t kMaxExperts = 4096;
constexpr int64_t kLargestPeriod = 16384;

struct T5Config {
  int64_t hidden_dim, heads, head_dim, ffn_dim, layers, decoder_layers, vocab_size, buckets;
  int64_t num_experts, encoder_step,
      decoder_step;  ///< experts 0: none; step: every n-th layer is sparse
  std::string activation;
  bool gated, tied_embeddings, dropout;
  bool own_bias;      ///< UMT5: each layer has its own table of relative positions
  bool encoder_only;  ///< T5EncoderModel, which pipelines of diffusers have
};

T5Config t5_config(const JsonObject& c) {
  T5Config config{};
  config.hidden_dim = c.integer({"d_model"}, 1, kLargestConfigSize);
  config.heads = c.integer({"num_heads"}, 1, kLargestConfigSize);
  config.head_dim = c.integer({"d_kv"}, 1, kLargestConfigSize);
  config.ffn_dim = c.integer({"d_ff"}, 1, kLargestConfigSize);
  config.layers = c.integer({"num_layers"}, 1, kMaxLayers);
  config.decoder_layers =
      c.optional_integer({"num_decoder_layers"}, 1, kMaxLayers).value_or(config.layers);
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.buckets =
      c.optional_integer({"relative_attention_num_buckets"}, 1, kLargestConfigSize).value_or(32);
  const std::string projection = c.optional_string({"feed_forward_proj"}).value_or("relu");
  config.gated = projection.starts_with("gated-");
  config.activation = config.gated ? projection.substr(6) : projection;
  // transformers interprets "gated-gelu" as gelu_new.
  if (config.gated && config.activation == "gelu") config.activation = "gelu_new";
  check_activation(c, "feed_forward_proj", config.activation);
  config.tied_embeddings = c.boolean("tie_word_embeddings", true);
  config.dropout = drops(c, "dropout_rate", 0.1);
  config.own_bias = c.string("model_type") == "umt5";
  config.encoder_only = class_name(c, "").ends_with("EncoderModel");
  if (c.string("model_type") != "switch_transformers") return config;
  config.num_experts = c.integer({"num_experts"}, 1, kMaxExperts);
  const auto step = [&](const char* sparse_key, const char* step_key, int64_t layers) -> int64_t {
    if (const auto count = c.optional_integer({sparse_key}, 0, layers); count)
      return *count == 0 ? 0 : std::max<int64_t>(1, layers / *count);
    return c.optional_integer({step_key}, 0, layers).value_or(0);
  };
  config.encoder_step = step("num_sparse_encoder_layers", "encoder_sparse_step", config.layers);
  config.decoder_step =
      step("num_sparse_decoder_layers", "decoder_sparse_step", config.decoder_layers);
  const int64_t period = std::max(config.encoder_step, config.decoder_step);
  if (period * config.num_experts > kLargestPeriod)
    c.fail("num_experts",
           fmt::format("{} experts with every {}th layer sparse make the graph too large",
                       config.num_experts, period));
  return config;
}

class T5Builder {
 public:
  T5Builder(Graph& graph, const T5Config& config, const GraphRequest& request)
      : f_(graph, request), c_(config), graph_(graph) {}

  void build() {
    f_.builder().begin_segment("encoder.embed", 1);
    const TensorId table = f_.vocabulary_table("shared.weight", c_.vocab_size, c_.hidden_dim);
    const TensorId encoded = stack("encoder", table, {});
    if (c_.encoder_only) {
      f_.builder().begin_segment("head", 1);
      graph_.outputs = {
          dropout(norm(encoded, "encoder.final_layer_norm"), "encoder.final_dropout")};
      return;
    }
    f_.builder().begin_segment("decoder.embed", 1);
    TensorId x = stack("decoder", table, encoded);
    f_.builder().begin_segment("head", 1);
    x = norm(x, "decoder.final_layer_norm");
    x = dropout(x, "decoder.dropout");
    const RoleScope role(f_.builder(), Role::kOutput);
    const TensorId last = x;
    if (c_.tied_embeddings) x = f_.op("mul_scalar", {x}, "lm_head.scale");
    const TensorId logits =
        c_.tied_embeddings
            ? f_.tied_output(x, table)
            : f_.linear(x, "lm_head", {c_.vocab_size, false, f_.vocabulary(c_.vocab_size)});
    graph_.outputs = {f_.op("keep", {logits, last, memory_}, "lm_head")};  // in the model's output
  }

 private:
  TensorId norm(TensorId x, const std::string& name) {
    const TensorId weight = f_.weight(name + ".weight", {c_.hidden_dim});
    return f_.op("rms_norm", {x, weight}, name, {{"keeps_input", 1}});
  }
  TensorId dropout(TensorId x, const std::string& name) { return f_.dropout(x, name, c_.dropout); }

  int64_t tokens_of(const std::string& stack) const {
    return stack == "encoder" ? f_.request().seq : f_.request().decoder_tokens();
  }

  TensorId attention_mask(const std::string& stack) {
    const int64_t s = tokens_of(stack);
    return f_.builder().input(stack + ".attention_mask", {1, 1, stack == "encoder" ? 1 : s, s},
                              f_.request().dtype);
  }

  /// The bias for each query-key pair by their distance, plus the mask: [b, heads, s, s].
  TensorId position_bias(TensorId buckets, const std::string& name, TensorId mask) {
    return f_.op("add", {relative_bias(f_, buckets, c_.buckets, c_.heads, name), mask}, name);
  }

  TensorId attention(TensorId x, TensorId memory, TensorId bias, bool learned,
                     const std::string& p) {
    const auto project = [&](TensorId from, const char* name) {
      const Layers::Linear options = {c_.heads * c_.head_dim, false,
                                      f_.outputs(c_.head_dim, {c_.heads})};
      return f_.split_heads(f_.linear(from, p + name, options), c_.heads);
    };
    const TensorId q = project(x, "q"), k = project(memory, "k"), v = project(memory, "v");
    std::vector<Attribute> attributes = {{"scale", "none"}};
    if (c_.dropout) attributes.push_back({"dropout", 1});
    if (learned) attributes.push_back({"learned_bias", 1});
    const TensorId context = f_.attention(q, k, v, p + "attention", std::move(attributes), {bias});
    return f_.linear(context, p + "o", {c_.hidden_dim, false, f_.inputs(c_.head_dim, c_.heads)});
  }

  /// The weights of experts are replicated on every rank.
  TensorId feed_forward(TensorId x, const std::string& p, bool expert = false) {
    const Layers::Split columns = expert ? Layers::Split{} : f_.outputs(1, {c_.ffn_dim});
    const auto wide = [&](const char* name) {
      return f_.linear(x, p + name, {c_.ffn_dim, false, columns});
    };
    TensorId y = f_.activation(wide(c_.gated ? "wi_0" : "wi"), c_.activation, p + "act");
    if (c_.gated) y = f_.op("mul", {y, wide("wi_1")}, p + "mul");
    return f_.linear(dropout(y, p + "dropout"), p + "wo",
                     {c_.hidden_dim, false, expert ? Layers::Split{} : f_.inputs(1, c_.ffn_dim)});
  }

  /// Top-1 routing: for each expert, its tokens are gathered, transformed and scattered back.
  TensorId experts(TensorId x, const std::string& p) {
    const Shape shape = graph_.tensor(x).shape;
    const int64_t tokens = checked_multiply(shape[0], shape[1]);
    const Shape one = {shape[0], shape[1], 1};
    const Shape each = {shape[0], shape[1], c_.num_experts};
    const std::string r = p + "router.";
    const TensorId logits = f_.linear(x, r + "classifier", {c_.num_experts, false});
    const TensorId probabilities = f_.op("softmax", {logits}, r + "softmax");
    f_.op("reduce_max", {probabilities}, r + "argmax", {{"shape", one}});
    const TensorId one_hot = f_.op("compare", {probabilities}, r + "one_hot");
    f_.op("cast", {one_hot}, r + "capacity", {{"dtype", DType::kInt64}});
    const TensorId best = f_.op("reduce_max", {probabilities}, r + "max", {{"shape", one}});
    TensorId states = f_.op("copy", {x}, p + "next_states");
    const int64_t share = ceil_divide(tokens, c_.num_experts);
    for (int64_t i = 0; i < c_.num_experts; ++i) {
      const std::string e = fmt::format("{}experts.expert_{}.", p, i);
      const TensorId own = f_.op("gather_rows", {x}, e + "gather", {{"rows", share}});
      states = f_.op("scatter_rows", {states, feed_forward(own, e, true)}, e + "scatter");
    }
    return f_.op("mul", {states, best}, p + "router_probs");
  }

  TensorId layer(TensorId x, TensorId memory, TensorId bias, const std::string& p, bool sparse) {
    const auto sublayer = [&](TensorId in, TensorId memory_or_self, bool cross,
                              const std::string& q) {
      const TensorId normal = norm(in, q + "layer_norm");
      const TensorId source = cross ? memory_or_self : normal;
      const TensorId out = attention(normal, source, cross ? cross_mask_ : bias, !cross,
                                     q + (cross ? "EncDecAttention." : "SelfAttention."));
      return f_.residual({in, dropout(out, q + "dropout")}, q + "residual");
    };
    x = sublayer(x, x, false, p + "layer.0.");
    if (memory >= 0) x = sublayer(x, memory, true, p + "layer.1.");
    const std::string q = p + (memory >= 0 ? "layer.2." : "layer.1.");
    const TensorId normal = norm(x, q + "layer_norm");
    const TensorId out =
        sparse ? experts(normal, q + "mlp.") : feed_forward(normal, q + "DenseReluDense.");
    return f_.residual({x, dropout(out, q + "dropout")}, q + "residual");
  }

  TensorId stack(const std::string& name, TensorId table, std::optional<TensorId> memory) {
    GraphBuilder& b = f_.builder();
    const int64_t tokens = tokens_of(name);
    const Shape ids = {f_.request().batch, tokens};
    TensorId x = f_.embedding(table, f_.ids(name + ".input_ids", ids), name + ".embed_tokens");
    x = dropout(x, name + ".dropout");
    const std::string table_name = name + ".relative_attention_bias";
    const TensorId buckets = relative_buckets(f_, name, tokens, name == "encoder");
    TensorId bias = -1;
    if (!c_.own_bias) bias = position_bias(buckets, table_name, attention_mask(name));
    const TensorId mask = c_.own_bias ? attention_mask(name) : -1;
    TensorId source = -1;
    if (memory) {
      // The encoder's last norm runs once, before the decoder reads it.
      source = memory_ =
          dropout(norm(*memory, "encoder.final_layer_norm"), "encoder.final_dropout");
      cross_mask_ =
          b.input("decoder.cross_mask", {ids[0], 1, 1, f_.request().seq}, f_.request().dtype);
    }
    const int64_t layers = memory ? c_.decoder_layers : c_.layers;
    const int64_t step = c_.num_experts == 0 ? 0 : (memory ? c_.decoder_step : c_.encoder_step);
    // In each period of `step` layers the second one is sparse (layer index % step == 1).
    const int64_t period = std::max<int64_t>(1, step);
    const auto run = [&](int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const bool sparse = step == 1 || (step > 1 && i % step == 1);
        if (c_.own_bias) bias = position_bias(buckets, table_name, mask);
        x = layer(x, source, bias, fmt::format("{}.block.{}.", name, first + i), sparse);
      }
    };
    if (layers / period > 0) {
      b.begin_segment(name + ".block", layers / period);
      const TensorId start = x;
      run(0, period);
      b.carry(start, x);
    }
    if (layers % period > 0) {
      b.begin_segment(name + ".last_blocks", 1);
      run(layers - layers % period, layers % period);
    }
    return x;
  }

  Layers f_;
  const T5Config& c_;
  Graph& graph_;
  TensorId cross_mask_ = -1, memory_ = -1;
};

Graph build_t5(const T5Config& config, const GraphRequest& request) {
  Graph graph;
  T5Builder(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_t5(const JsonObject& json) {
  // Relative positions: no limit; 512 is what T5 was trained with.
  Model model = make_model(t5_config(json), 512, std::nullopt, build_t5);
  // transformers 5.23: _supports_sdpa of T5, mT5 and UMT5, but not of Switch Transformers.
  model.has_fused_attention = json.string("model_type") != "switch_transformers";
  model.trains_position_bias = true;
  model.has_two_lengths = !t5_config(json).encoder_only;
  return model;
}

}  // namespace tilecast
