// Whisper (transformers/models/whisper/modeling_whisper.py): mel spectrograms through two
// convolutions and an encoder, text through a decoder that attends to it.

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct WhisperConfig {
  int64_t width, mels, vocabulary, sound_tokens, text_tokens;
  int64_t encoder_layers, encoder_heads, encoder_inner;
  int64_t decoder_layers, decoder_heads, decoder_inner;
  std::string activation;
};

WhisperConfig read_config(const JsonObject& c) {
  WhisperConfig w{};
  w.width = c.integer({"d_model"}, 1, kLargestConfigSize);
  w.mels = c.integer({"num_mel_bins"}, 1, kLargestConfigSize);
  w.vocabulary = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  w.sound_tokens = c.integer({"max_source_positions"}, 1, kLargestConfigSize);
  w.text_tokens = c.integer({"max_target_positions"}, 1, kLargestConfigSize);
  w.encoder_layers = c.integer({"encoder_layers"}, 1, 100000);
  w.encoder_heads = c.integer({"encoder_attention_heads"}, 1, kLargestConfigSize);
  w.encoder_inner = c.integer({"encoder_ffn_dim"}, 1, kLargestConfigSize);
  w.decoder_layers = c.integer({"decoder_layers"}, 1, 100000);
  w.decoder_heads = c.integer({"decoder_attention_heads"}, 1, kLargestConfigSize);
  w.decoder_inner = c.integer({"decoder_ffn_dim"}, 1, kLargestConfigSize);
  head_size(c, "d_model", w.width, "encoder_attention_heads", w.encoder_heads);
  head_size(c, "d_model", w.width, "decoder_attention_heads", w.decoder_heads);
  w.activation = c.optional_string({"activation_function"}).value_or("gelu");
  check_activation(c, "activation_function", w.activation);
  return w;
}

class Whisper {
 public:
  Whisper(Graph& graph, const WhisperConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config), request_(request) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("encoder.embeddings", 1);
    TensorId sound = embed_sound();
    b.begin_segment("encoder.layers", c_.encoder_layers);
    const TensorId first = sound;
    sound = attend(sound, sound, "encoder.layers.0.self_attn.", c_.encoder_heads, false, true);
    sound = feed(sound, "encoder.layers.0.", c_.encoder_inner);
    b.carry(first, sound);
    b.begin_segment("decoder.embeddings", 1);
    memory_ = f_.layer_norm(sound, "encoder.layer_norm");
    const TensorId table = f_.vocabulary_table("decoder.embed_tokens", c_.vocabulary, c_.width);
    const TensorId words = f_.embedding(
        table, f_.ids("decoder_input_ids", {request_.batch, request_.seq}), "decoder.embed_tokens");
    const TensorId places =
        f_.embedding(f_.weight("decoder.embed_positions", {c_.text_tokens, c_.width}),
                     f_.ids("position_ids", {1, request_.seq}), "decoder.embed_positions");
    const TensorId start = f_.op("add", {words, places}, "decoder.add_positions");
    mask_ = f_.causal_mask(start, "decoder.causal_mask");
    b.begin_segment("decoder.layers", c_.decoder_layers);
    const std::string p = "decoder.layers.0.";
    TensorId x = attend(start, start, p + "self_attn.", c_.decoder_heads, true, true);
    x = attend(x, memory_, p + "encoder_attn.", c_.decoder_heads, false, false);
    x = feed(x, p, c_.decoder_inner);
    b.carry(start, x);
    b.begin_segment("head", 1);
    graph_.outputs = {f_.op("linear", {f_.layer_norm(x, "decoder.layer_norm"), table}, "proj_out")};
  }

 private:
  /// Two convolutions over time, the second of stride 2.
  TensorId embed_sound() {
    const int64_t batch = request_.batch;
    TensorId x = f_.builder().input("input_features", {batch, c_.mels, 1, 2 * c_.sound_tokens},
                                    request_.dtype);
    x = convolve(x, "encoder.conv1", c_.mels, 1);
    x = convolve(x, "encoder.conv2", c_.width, 2);
    const TensorId rows = f_.transpose(f_.view(x, {batch, c_.width, c_.sound_tokens}), {0, 2, 1});
    return f_.op("add", {rows, f_.weight("encoder.embed_positions", {c_.sound_tokens, c_.width})},
                 "encoder.add_positions");
  }

  TensorId convolve(TensorId x, const std::string& name, int64_t in, int64_t stride) {
    const TensorId y = f_.op("conv2d",
                             {x, f_.weight(name + ".weight", {c_.width, in, 1, 3}),
                              f_.weight(name + ".bias", {c_.width})},
                             name, {{"stride", stride}, {"padding", 1}});
    return f_.activation(y, "gelu", name + ".act");
  }

  /// Attention of x to `to` with the norm before and the residual after. Keys have no bias.
  TensorId attend(TensorId x, TensorId to, const std::string& p, int64_t heads, bool causal,
                  bool self) {
    const TensorId normal = f_.layer_norm(x, p + "layer_norm");
    const TensorId source = self ? normal : to;
    const int64_t size = c_.width / heads;
    const auto project = [&](TensorId from, const char* name, bool bias) {
      return f_.linear(from, p + name, {c_.width, bias, f_.outputs(size, {heads})});
    };
    const TensorId scaled = f_.op("mul_scalar", {project(normal, "q_proj", true)}, p + "scale");
    const TensorId q = f_.split_heads(scaled, heads);
    const TensorId k = f_.split_heads(project(source, "k_proj", false), heads);
    const TensorId v = f_.split_heads(project(source, "v_proj", true), heads);
    std::vector<Attribute> attributes = {{"scale", "none"}};
    std::vector<TensorId> masks;
    if (causal) {
      attributes.push_back({"causal", 1});
      masks.push_back(mask_);
    }
    const TensorId context =
        f_.attention(q, k, v, p + "attention", std::move(attributes), std::move(masks));
    const TensorId out =
        f_.linear(context, p + "out_proj", {c_.width, true, f_.inputs(size, heads)});
    return f_.op("add", {x, out}, p + "residual");
  }

  TensorId feed(TensorId x, const std::string& p, int64_t inner) {
    const TensorId narrow =
        f_.feed_forward(f_.layer_norm(x, p + "final_layer_norm"), {.up = p + "fc1",
                                                                   .act = p + "act",
                                                                   .down = p + "fc2",
                                                                   .activation = c_.activation,
                                                                   .inner = inner});
    return f_.op("add", {x, narrow}, p + "residual");
  }

  Graph& graph_;
  Layers f_;
  const WhisperConfig& c_;
  const GraphRequest& request_;
  TensorId memory_ = -1, mask_ = -1;
};

Graph build(const WhisperConfig& config, const GraphRequest& request) {
  Graph graph;
  Whisper(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_whisper(const JsonObject& json) {
  const WhisperConfig config = read_config(json);
  Model model = make_model(config, config.text_tokens, config.text_tokens, build);
  model.has_fused_attention = true;
  return model;
}

}  // namespace tilecast
