// wav2vec 2.0 and HuBERT (transformers/models/wav2vec2 and models/hubert): convolutions over the
// samples of a wave, then a transformer. The length of a sequence is its number of samples.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "importers/huggingface/layers.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct SpeechConfig {
  std::vector<int64_t> widths, strides, windows;  ///< of the convolutions
  int64_t shortest = 0;                           ///< samples that one step needs
  bool conv_bias, conv_layer_norm;                ///< a layer norm in each, not one group norm
  std::string conv_activation;
  int64_t hidden_dim, heads, layers, ffn_dim, position_window, position_groups;
  std::string activation;
  bool norm_first, projection_norm, position_batch_norm, masked_embedding;
  bool hidden_dropout, attention_dropout, activation_dropout;
  int64_t letters = 0;        ///< outputs of a CTC head; 0: none
  int64_t labels = 0;         ///< classes of a sequence; 0: none
  int64_t projected_dim = 0;  ///< columns that are classified
  std::string other_class;    ///< a class whose own parts are not known
};

/// Samples that one step of the transformer needs at least.
int64_t shortest_wave(const JsonObject& c, const SpeechConfig& s) {
  constexpr int64_t kHour = int64_t{16000} * 3600;
  int64_t samples = 1;
  for (size_t i = s.windows.size(); i-- > 0;) {
    samples = (samples - 1) * s.strides[i] + s.windows[i];
    if (samples > kHour)
      c.fail("conv_stride", fmt::format("one step of the transformer would need more than an hour "
                                        "of sound ({} samples)",
                                        kHour));
  }
  return samples;
}

void read_convolutions(const JsonObject& c, SpeechConfig& s) {
  s.widths = integers(c, "conv_dim", 1, kLargestConfigSize);
  constexpr int64_t kLongest = 1 << 16;
  s.strides = integers_like(c, "conv_stride", "conv_dim", s.widths.size(), kLongest);
  s.windows = integers_like(c, "conv_kernel", "conv_dim", s.widths.size(), kLongest);
  s.shortest = shortest_wave(c, s);
  s.conv_bias = c.boolean("conv_bias", false);
  const std::string norm = c.optional_string({"feat_extract_norm"}).value_or("group");
  if (norm != "group" && norm != "layer")
    c.fail("feat_extract_norm", "expected 'group' or 'layer', found '" + shown_name(norm) + "'");
  s.conv_layer_norm = norm == "layer";
  s.conv_activation = c.optional_string({"feat_extract_activation"}).value_or("gelu");
  check_activation(c, "feat_extract_activation", s.conv_activation);
  s.position_window = c.integer({"num_conv_pos_embeddings"}, 1, kLongest);
  s.position_groups = c.integer({"num_conv_pos_embedding_groups"}, 1, kLongest);
  if (s.hidden_dim % s.position_groups != 0)
    c.fail("num_conv_pos_embedding_groups",
           fmt::format("{} groups do not divide the hidden size {} ('hidden_size')",
                       s.position_groups, s.hidden_dim));
}

void read_head(const JsonObject& c, SpeechConfig& s) {
  const std::string name = class_name(c, "");
  if (name.ends_with("ForCTC")) s.letters = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  if (name.ends_with("ForSequenceClassification")) {
    s.labels = label_count(c);
    s.projected_dim =
        c.optional_integer({"classifier_proj_size"}, 1, kLargestConfigSize).value_or(256);
  }
  if (s.letters == 0 && s.labels == 0 && !name.empty() && !name.ends_with("Model"))
    s.other_class = shown_name(name);
}

SpeechConfig wav2vec2_config(const JsonObject& c) {
  SpeechConfig s{};
  s.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  s.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  head_dim_of(c, "hidden_size", s.hidden_dim, "num_attention_heads", s.heads);
  s.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  s.ffn_dim = c.integer({"intermediate_size"}, 1, kLargestConfigSize);
  s.activation = c.optional_string({"hidden_act"}).value_or("gelu");
  check_activation(c, "hidden_act", s.activation);
  read_convolutions(c, s);
  s.norm_first = c.boolean("do_stable_layer_norm", false);
  s.projection_norm = c.boolean("feat_proj_layer_norm", true);
  s.position_batch_norm = c.boolean("conv_pos_batch_norm", false);
  const auto positive = [&](const char* key, double fallback) {
    return (c.has(key) ? c.number(key) : fallback) > 0;
  };
  s.masked_embedding = positive("mask_time_prob", 0.05) || positive("mask_feature_prob", 0);
  s.hidden_dropout = drops(c, "hidden_dropout", 0.1);
  s.attention_dropout = drops(c, "attention_dropout", 0.1);
  s.activation_dropout = drops(c, "activation_dropout", 0.1);
  const bool adapted = c.boolean("add_adapter", false);
  if (adapted || c.optional_integer({"adapter_attn_dim"}, 0, kLargestConfigSize).value_or(0) > 0)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: '{}': adapters are not supported; only models without them",
                            c.where(), adapted ? "add_adapter" : "adapter_attn_dim"));
  read_head(c, s);
  return s;
}

class Speech {
 public:
  Speech(Graph& graph, const SpeechConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("feature_extractor", 1);
    TensorId x = features();
    b.begin_segment("encoder.embeddings", 1);
    if (c_.projection_norm) x = f_.layer_norm(x, "feature_projection.layer_norm");
    x = f_.linear(x, "feature_projection.projection", {c_.hidden_dim});
    // A vector that training writes over some steps (SpecAugment), which is not modelled.
    if (c_.masked_embedding) f_.weight("masked_spec_embed", {c_.hidden_dim});
    x = f_.op("add", {x, positions(x)}, "encoder.add_positions");
    if (!c_.norm_first) x = f_.layer_norm(x, "encoder.layer_norm");
    x = f_.dropout(x, "encoder.dropout", c_.hidden_dropout);
    b.begin_segment("encoder.layers", c_.layers);
    const TensorId start = x;
    x = layer(x, "encoder.layers.0.");
    b.carry(start, x);
    b.begin_segment("head", 1);
    if (c_.norm_first) x = f_.layer_norm(x, "encoder.layer_norm");
    graph_.outputs = {head(x)};
  }

 private:
  Shape shape(TensorId x) { return graph_.tensor(x).shape; }

  /// [b, c, 1, t] → [b, t, c], one copy.
  TensorId rows(TensorId x, const std::string& name) {
    const Shape s = shape(x);
    return f_.op("copy", {f_.transpose(f_.view(x, {s[0], s[1], s[3]}), {0, 2, 1})}, name);
  }
  /// [b, t, c] → [b, c, 1, t], one copy.
  TensorId columns(TensorId x, const std::string& name) {
    const Shape s = shape(x);
    return f_.view(f_.op("copy", {f_.transpose(x, {0, 2, 1})}, name), {s[0], s[2], 1, s[1]});
  }

  TensorId features() {
    const int64_t batch = f_.request().batch;
    TensorId x =
        f_.builder().input("input_values", {batch, 1, 1, f_.request().seq}, f_.request().dtype);
    for (size_t i = 0; i < c_.widths.size(); ++i) {
      const std::string name = fmt::format("feature_extractor.conv_layers.{}", i);
      std::vector<TensorId> operands = {
          x, f_.weight(name + ".conv.weight", {c_.widths[i], shape(x)[1], 1, c_.windows[i]})};
      if (c_.conv_bias) operands.push_back(f_.weight(name + ".conv.bias", {c_.widths[i]}));
      x = f_.op("conv2d", std::move(operands), name + ".conv", {{"stride", c_.strides[i]}});
      if (c_.conv_layer_norm) {
        const TensorId normal = f_.layer_norm(rows(x, name + ".permute"), name + ".layer_norm");
        x = columns(normal, name + ".permute");
      } else if (i == 0) {  // each channel is a group
        x = f_.group_norm(x, c_.widths[0], name + ".layer_norm");
      }
      x = f_.activation(x, c_.conv_activation, name + ".activation");
    }
    return rows(x, "feature_extractor.permute");
  }

  /// The weight of the convolution over positions: v scaled to the length g for each place of the
  /// window (torch.nn.utils.parametrizations.weight_norm).
  TensorId position_weight(const std::string& p) {
    const Shape full = {c_.hidden_dim, c_.hidden_dim / c_.position_groups, 1, c_.position_window};
    if (c_.position_batch_norm) return f_.weight(p + "weight", full);
    const Shape place = {1, 1, 1, c_.position_window};
    const TensorId g = f_.weight(p + "weight_g", place), v = f_.weight(p + "weight_v", full);
    const TensorId squares = f_.op("integer_pow", {v}, p + "weight_norm");
    const TensorId sum = f_.op("reduce_sum", {squares}, p + "weight_norm", {{"shape", place}});
    const TensorId ratio =
        f_.op("div", {g, f_.op("sqrt", {sum}, p + "weight_norm")}, p + "weight_norm");
    return f_.op("mul", {v, ratio}, p + "weight_norm");
  }

  /// Relative positions: a convolution over time.
  TensorId positions(TensorId x) {
    const std::string p = "encoder.pos_conv_embed.";
    const int64_t steps = shape(x)[1];
    TensorId in = columns(x, p + "permute");
    if (c_.position_batch_norm) in = batch_norm(in, p + "batch_norm");
    const TensorId y = f_.op(
        "conv2d", {in, position_weight(p + "conv."), f_.weight(p + "conv.bias", {c_.hidden_dim})},
        p + "conv", {{"padding", c_.position_window / 2}, {"groups", c_.position_groups}});
    // An even window makes one step more.
    const TensorId cut = shape(y)[3] == steps
                             ? y
                             : f_.op("slice", {y}, p + "padding", {{"dim", 3}, {"count", steps}});
    const TensorId active = f_.activation(cut, c_.conv_activation, p + "activation");
    return rows(f_.op("copy", {active}, p + "permute"), p + "permute");
  }

  TensorId batch_norm(TensorId x, const std::string& name) {
    const Shape one = {c_.hidden_dim};
    std::vector<TensorId> operands = {x, f_.weight(name + ".weight", one),
                                      f_.weight(name + ".bias", one)};
    for (const char* statistic : {".running_mean", ".running_var"})
      operands.push_back(f_.builder().tensor({.name = name + statistic,
                                              .shape = one,
                                              .dtype = f_.request().dtype,
                                              .kind = TensorKind::kBuffer,
                                              .segment = f_.builder().current_segment()}));
    return f_.builder().add("batch_norm", std::move(operands), name).front();
  }

  TensorId attention(TensorId x, const std::string& p) {
    const int64_t head_dim = c_.hidden_dim / c_.heads;
    const auto project = [&](const char* name) {
      const Layers::Linear options = {c_.hidden_dim, true, f_.outputs(head_dim, {c_.heads})};
      return f_.split_heads(f_.linear(x, p + name, options), c_.heads);
    };
    const TensorId q = project("q_proj"), k = project("k_proj"), v = project("v_proj");
    std::vector<Attribute> attributes;
    if (c_.attention_dropout) attributes.push_back({"dropout", 1});
    const TensorId context = f_.attention(q, k, v, p + "attention", std::move(attributes));
    const Layers::Linear options = {c_.hidden_dim, true, f_.inputs(head_dim, c_.heads)};
    return f_.dropout(f_.linear(context, p + "out_proj", options), p + "dropout",
                      c_.hidden_dropout);
  }

  TensorId feed_forward(TensorId x, const std::string& p) {
    const TensorId wide =
        f_.linear(x, p + "intermediate_dense", {c_.ffn_dim, true, f_.outputs(1, {c_.ffn_dim})});
    const TensorId active = f_.dropout(f_.activation(wide, c_.activation, p + "act"),
                                       p + "intermediate_dropout", c_.activation_dropout);
    const TensorId out =
        f_.linear(active, p + "output_dense", {c_.hidden_dim, true, f_.inputs(1, c_.ffn_dim)});
    return f_.dropout(out, p + "output_dropout", c_.hidden_dropout);
  }

  TensorId layer(TensorId x, const std::string& p) {
    const auto norm = [&](TensorId t, const char* name, bool first) {
      return first == c_.norm_first ? f_.layer_norm(t, p + name) : t;
    };
    const TensorId out = attention(norm(x, "layer_norm", true), p + "attention.");
    const TensorId hidden =
        norm(f_.residual({x, out}, p + "attention.residual"), "layer_norm", false);
    const TensorId mlp_out =
        feed_forward(norm(hidden, "final_layer_norm", true), p + "feed_forward.");
    return norm(f_.residual({hidden, mlp_out}, p + "feed_forward.residual"), "final_layer_norm",
                false);
  }

  TensorId head(TensorId x) {
    if (c_.letters > 0) return f_.linear(f_.dropout(x, "dropout"), "lm_head", {c_.letters});
    if (c_.labels == 0) return x;
    const TensorId projected = f_.linear(x, "projector", {c_.projected_dim});
    const TensorId mean = f_.mean_of_rows(projected, "mean");
    return f_.linear(mean, "classifier", {c_.labels});
  }

  Graph& graph_;
  Layers f_;
  const SpeechConfig& c_;
};

Graph build_wav2vec2(const SpeechConfig& config, const GraphRequest& request) {
  if (request.seq < config.shortest)
    throw Error(ErrorKind::kInput,
                fmt::format("`seq`: expected {} samples or more, which the convolutions need for "
                            "one step, found {}; the length of a wave is its number of samples "
                            "(16,000 a second)",
                            config.shortest, request.seq));
  Graph graph;
  Speech(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_wav2vec2(const JsonObject& json) {
  const SpeechConfig config = wav2vec2_config(json);
  // Ten seconds at 16 kHz, the rate of all published models; no limit of positions.
  constexpr int64_t kTenSeconds = 160000;
  Model model =
      make_model(config, std::max(kTenSeconds, config.shortest), std::nullopt, build_wav2vec2);
  model.has_fused_attention = true;
  if (!config.other_class.empty())
    model.warnings.push_back(fmt::format(
        "only the encoder of '{}' is forecast, not what follows it", config.other_class));
  return model;
}

}  // namespace tilecast
