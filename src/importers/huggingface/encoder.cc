// BERT (transformers/models/bert/modeling_bert.py) and the encoders like it. Names of parts are
// BERT's.

#include "importers/huggingface/encoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "importers/huggingface/relative_bias.h"

namespace tilecast {
namespace {

class Encoder {
 public:
  Encoder(Graph& graph, const EncoderConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config) {}

  void build() {
    f_.builder().begin_segment("embeddings", 1);
    if (!c_.disentangled) mask_ = padding_mask();
    TensorId x = embed();
    if (c_.disentangled) positions_ = relative_positions(f_, c_);
    if (c_.bias_buckets > 0) mask_ = position_bias();
    x = c_.groups > 0 ? shared_layers(x) : layers(x);
    f_.builder().begin_segment("head", 1);
    if (c_.norm_first) x = f_.layer_norm(x, "encoder.LayerNorm");
    graph_.outputs = heads(x);
  }

 private:
  TensorId dropout(TensorId x, const std::string& name) { return f_.dropout(x, name, c_.dropout); }

  /// Without an attention mask as input, the model creates one of all ones.
  TensorId padding_mask() {
    const TensorId like =
        f_.builder().tensor({.name = "attention_mask",
                             .shape = {f_.request().batch, 1, 1, f_.request().seq},
                             .dtype = f_.request().dtype,
                             .kind = TensorKind::kReference});
    const TensorId seen = f_.op("fill", {like}, "attention_mask");
    return f_.op("mul_scalar", {f_.op("rsub_scalar", {seen}, "extended_mask")}, "extended_mask");
  }

  /// MPNet adds a number for each distance and head; the mask of all ones is left out.
  TensorId position_bias() {
    const TensorId buckets = relative_buckets(f_, "encoder", f_.request().seq, true);
    const std::string name = "encoder.relative_attention_bias";
    const TensorId bias = relative_bias(f_, buckets, c_.bias_buckets, c_.heads, name);
    const int64_t s = f_.request().seq;
    return f_.op(
        "copy",
        {f_.op("expand", {bias}, name, {{"shape", Shape{f_.request().batch, c_.heads, s, s}}})},
        name);
  }

  TensorId embed() {
    const int64_t batch = f_.request().batch, s = f_.request().seq;
    const std::string p = "embeddings.";
    table_ = f_.vocabulary_table(p + "word_embeddings.weight", c_.vocab_size, c_.embed_dim);
    // Variables of a module, which ends before the layers.
    const auto embedding = [&](TensorId table, const char* ids, Shape shape, const char* name) {
      return f_.op("embedding", {table, f_.ids(ids, std::move(shape))}, p + name,
                   {{"inner", int64_t{1}}});
    };
    TensorId x = embedding(table_, "input_ids", {batch, s}, "word_embeddings");
    TensorId types = -1, positions = -1;
    if (c_.type_vocab_size > 0)
      types = embedding(
          f_.weight(p + "token_type_embeddings.weight", {c_.type_vocab_size, c_.embed_dim}),
          "token_type_ids", {batch, s}, "token_type_embeddings");
    if (c_.position_table)
      positions =
          embedding(f_.weight(p + "position_embeddings.weight", {c_.max_positions, c_.embed_dim}),
                    "position_ids", {1, s}, "position_embeddings");
    if (types >= 0) x = f_.op("add", {x, types}, p + "add");
    if (positions >= 0) x = f_.op("add", {x, positions}, p + "add_positions");
    if (c_.embedding_norm) x = f_.layer_norm(x, p + "LayerNorm");
    x = dropout(x, p + "dropout");
    // ALBERT projects in any case.
    if (c_.embed_dim == c_.hidden_dim && c_.groups == 0) return x;
    return f_.linear(x, p + "projection", {c_.hidden_dim, c_.projection_bias});
  }

  TensorId attention(TensorId in, const std::string& p) {
    const int64_t head_dim = c_.hidden_dim / c_.heads;
    if (c_.disentangled) return disentangled_attention(f_, c_, in, positions_, p + "self.");
    const auto project = [&](const char* name) {
      const Layers::Linear options = {c_.hidden_dim, true, f_.outputs(head_dim, {c_.heads})};
      return f_.split_heads(f_.linear(in, p + name, options), c_.heads);
    };
    const TensorId q = project("self.query");
    const TensorId k = project("self.key");
    const TensorId v = project("self.value");
    std::vector<Attribute> attributes = {{"scale", "div"}};
    if (c_.attention_dropout) attributes.push_back({"dropout", 1});
    if (c_.bias_buckets == 0) attributes.push_back({"ones_mask", 1});
    return f_.attention(q, k, v, p + "self.attention", std::move(attributes), {mask_});
  }

  TensorId layer(TensorId x, const std::string& p) {
    const std::string a = p + "attention.";
    const auto norm = [&](TensorId t, const std::string& name, bool first) {
      return first == c_.norm_first ? f_.layer_norm(t, name) : t;
    };
    const TensorId context = attention(norm(x, a + "output.LayerNorm", true), a);
    const Layers::Linear options = {c_.hidden_dim, true,
                                    f_.inputs(c_.hidden_dim / c_.heads, c_.heads)};
    const TensorId out =
        dropout(f_.linear(context, a + "output.dense", options), a + "output.dropout");
    const TensorId hidden =
        norm(f_.residual({out, x}, a + "output.residual"), a + "output.LayerNorm", false);
    const TensorId mlp_out = dropout(
        f_.feed_forward(norm(hidden, p + "output.LayerNorm", true), {.up = p + "intermediate.dense",
                                                                     .act = p + "intermediate.act",
                                                                     .down = p + "output.dense",
                                                                     .activation = c_.activation,
                                                                     .ffn_dim = c_.ffn_dim}),
        p + "output.dropout");
    return norm(f_.residual({mlp_out, hidden}, p + "output.residual"), p + "output.LayerNorm",
                false);
  }

  TensorId layers(TensorId x) {
    int64_t first = 0;
    if (c_.disentangled && c_.disentangled->conv_window > 0) {
      f_.builder().begin_segment("encoder.first_layer", 1);
      x = conv_beside_layer(f_, c_, x, layer(x, "encoder.layer.0."));
      first = 1;
    }
    if (first == c_.layers) return x;
    f_.builder().begin_segment("encoder.layer", c_.layers - first);
    const TensorId end = layer(x, fmt::format("encoder.layer.{}.", first));
    f_.builder().carry(x, end);
    return end;
  }

  /// ALBERT: the layers of a group have the same weights, which belong to the embeddings' segment
  /// and so are counted once.
  TensorId shared_layers(TensorId x) {
    for (int64_t group = 0; group < c_.groups; ++group) {
      // Layer i is in group ⌊i · groups / layers⌋.
      const int64_t count = ceil_divide((group + 1) * c_.layers, c_.groups) -
                            ceil_divide(group * c_.layers, c_.groups);
      f_.builder().begin_segment(fmt::format("encoder.group.{}", group), count);
      const size_t before = graph_.tensors.size();
      const TensorId start = x;
      for (int64_t i = 0; i < c_.inner_layers; ++i)
        x = layer(x, fmt::format("encoder.group.{}.layer.{}.", group, i));
      f_.builder().carry(start, x);
      for (size_t id = before; id < graph_.tensors.size(); ++id) {
        if (graph_.tensors[id].kind == TensorKind::kWeight) graph_.tensors[id].segment = 0;
      }
    }
    return x;
  }

  TensorId vocabulary(TensorId x) {
    const std::string p = "cls.predictions.";
    const TensorId dense = f_.linear(x, p + "transform.dense", {c_.embed_dim});
    const TensorId active = f_.activation(dense, c_.head_activation, p + "transform.act");
    const TensorId normal = f_.layer_norm(active, p + "transform.LayerNorm");
    const TensorId bias = f_.weight(p + "bias", {c_.vocab_size}, 0, f_.vocabulary(c_.vocab_size));
    // The model's variables hold the last hidden state.
    return f_.op("keep", {f_.op("linear", {normal, table_, bias}, p + "decoder"), x},
                 p + "decoder");
  }

  std::vector<TensorId> heads(TensorId x) {
    std::vector<TensorId> outputs;
    if (c_.vocabulary_head) outputs.push_back(vocabulary(x));
    if (c_.token_labels > 0) return {f_.linear(x, "classifier", {c_.token_labels})};
    if (c_.discriminator) {
      const TensorId dense = f_.linear(x, "discriminator_predictions.dense", {c_.hidden_dim});
      const TensorId active =
          f_.activation(dense, c_.activation, "discriminator_predictions.activation");
      return {f_.linear(active, "discriminator_predictions.dense_prediction", {1})};
    }
    if (!c_.vocabulary_head && c_.labels == 0) outputs.push_back(x);
    if (!c_.pooler) return outputs;
    // The first token of each sequence, a strided view that linear reads in place.
    const TensorId first =
        f_.op("gather_rows", {x}, "pooler.first_token", {{"rows", f_.request().batch}});
    const TensorId pooled = f_.activation(f_.linear(first, "pooler.dense", {c_.hidden_dim}),
                                          c_.pooler_activation, "pooler.act");
    outputs.push_back(c_.labels > 0 ? f_.linear(pooled, "cls.seq_relationship", {c_.labels})
                                    : pooled);
    return outputs;
  }

  Graph& graph_;
  Layers f_;
  const EncoderConfig& c_;
  TensorId mask_ = -1, table_ = -1;
  RelativePositions positions_;
};

Graph build_encoder(const EncoderConfig& config, const GraphRequest& request) {
  Graph graph;
  Encoder(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_encoder_model(const JsonObject& json) {
  const EncoderConfig config = read_encoder(json);
  Model model = make_model(config, std::min<int64_t>(512, config.max_positions),
                           config.max_positions, build_encoder);
  // Fused kernels add no biases; transformers has no fused attention for DeBERTa.
  model.has_fused_attention = config.bias_buckets == 0 && !config.disentangled;
  if (!config.other_class.empty())
    model.warnings.push_back(
        fmt::format("only the encoder of '{}' is forecast, not what follows it",
                    shown_name(config.other_class)));
  return model;
}

}  // namespace tilecast
