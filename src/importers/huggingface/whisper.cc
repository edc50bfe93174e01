// Whisper (transformers/models/whisper/modeling_whisper.py): mel spectrograms through two
// convolutions and an encoder, text through a decoder that attends to it.

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct WhisperConfig {
  int64_t hidden_dim, mel_bins, vocab_size, audio_tokens, text_tokens;
  int64_t encoder_layers, encoder_heads, encoder_ffn_dim;
  int64_t decoder_layers, decoder_heads, decoder_ffn_dim;
  std::string activation;
};

WhisperConfig whisper_config(const JsonObject& c) {
  WhisperConfig w{};
  w.hidden_dim = c.integer({"d_model"}, 1, kLargestConfigSize);
  w.mel_bins = c.integer({"num_mel_bins"}, 1, kLargestConfigSize);
  w.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  w.audio_tokens = c.integer({"max_source_positions"}, 1, kLargestConfigSize);
  w.text_tokens = c.integer({"max_target_positions"}, 1, kLargestConfigSize);
  w.encoder_layers = c.integer({"encoder_layers"}, 1, 100000);
  w.encoder_heads = c.integer({"encoder_attention_heads"}, 1, kLargestConfigSize);
  w.encoder_ffn_dim = c.integer({"encoder_ffn_dim"}, 1, kLargestConfigSize);
  w.decoder_layers = c.integer({"decoder_layers"}, 1, 100000);
  w.decoder_heads = c.integer({"decoder_attention_heads"}, 1, kLargestConfigSize);
  w.decoder_ffn_dim = c.integer({"decoder_ffn_dim"}, 1, kLargestConfigSize);
  head_dim_of(c, "d_model", w.hidden_dim, "encoder_attention_heads", w.encoder_heads);
  head_dim_of(c, "d_model", w.hidden_dim, "decoder_attention_heads", w.decoder_heads);
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
    TensorId audio = embed_audio();
    b.begin_segment("encoder.layers", c_.encoder_layers);
    const TensorId first = audio;
    audio = attend(audio, audio, "encoder.layers.0.self_attn.", c_.encoder_heads, false, true);
    audio = feed(audio, "encoder.layers.0.", c_.encoder_ffn_dim);
    b.carry(first, audio);
    b.begin_segment("decoder.embeddings", 1);
    memory_ = f_.layer_norm(audio, "encoder.layer_norm");
    const TensorId table =
        f_.vocabulary_table("decoder.embed_tokens", c_.vocab_size, c_.hidden_dim);
    const TensorId token_embeds = f_.embedding(
        table, f_.ids("decoder_input_ids", {request_.batch, request_.seq}), "decoder.embed_tokens");
    const TensorId position_embeds =
        f_.embedding(f_.weight("decoder.embed_positions", {c_.text_tokens, c_.hidden_dim}),
                     f_.ids("position_ids", {1, request_.seq}), "decoder.embed_positions");
    const TensorId start = f_.op("add", {token_embeds, position_embeds}, "decoder.add_positions");
    mask_ = f_.causal_mask(start, "decoder.causal_mask");
    b.begin_segment("decoder.layers", c_.decoder_layers);
    const std::string p = "decoder.layers.0.";
    TensorId x = attend(start, start, p + "self_attn.", c_.decoder_heads, true, true);
    x = attend(x, memory_, p + "encoder_attn.", c_.decoder_heads, false, false);
    x = feed(x, p, c_.decoder_ffn_dim);
    b.carry(start, x);
    b.begin_segment("head", 1);
    const TensorId last = f_.layer_norm(x, "decoder.layer_norm");
    const TensorId logits = f_.op("linear", {last, table}, "proj_out");
    graph_.outputs = {f_.op("keep", {logits, last, memory_}, "proj_out")};  // in the model's output
  }

 private:
  /// Two convolutions over time, the second of stride 2.
  TensorId embed_audio() {
    const int64_t batch = request_.batch;
    TensorId x = f_.builder().input("input_features", {batch, c_.mel_bins, 1, 2 * c_.audio_tokens},
                                    request_.dtype);
    x = convolve(x, "encoder.conv1", c_.mel_bins, 1);
    x = convolve(x, "encoder.conv2", c_.hidden_dim, 2);
    const TensorId rows =
        f_.transpose(f_.view(x, {batch, c_.hidden_dim, c_.audio_tokens}), {0, 2, 1});
    const TensorId positions =
        f_.weight("encoder.embed_positions", {c_.audio_tokens, c_.hidden_dim});
    graph_.tensor(positions).frozen = true;  // sinusoids: requires_grad_(False)
    return f_.op("add", {rows, positions}, "encoder.add_positions");
  }

  TensorId convolve(TensorId x, const std::string& name, int64_t in, int64_t stride) {
    const TensorId y = f_.op("conv2d",
                             {x, f_.weight(name + ".weight", {c_.hidden_dim, in, 1, 3}),
                              f_.weight(name + ".bias", {c_.hidden_dim})},
                             name, {{"stride", stride}, {"padding", 1}});
    return f_.activation(y, "gelu", name + ".act");
  }

  /// Attention of x to `to`, with a norm before and a residual after it. The key projection has no
  /// bias.
  TensorId attend(TensorId x, TensorId to, const std::string& p, int64_t heads, bool causal,
                  bool self) {
    const TensorId normal = f_.layer_norm(x, p + "layer_norm");
    const TensorId source = self ? normal : to;
    const int64_t head_dim = c_.hidden_dim / heads;
    const auto project = [&](TensorId from, const char* name, bool bias) {
      return f_.linear(from, p + name, {c_.hidden_dim, bias, f_.outputs(head_dim, {heads})});
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
        f_.linear(context, p + "out_proj", {c_.hidden_dim, true, f_.inputs(head_dim, heads)});
    return f_.residual({x, out}, p + "residual");
  }

  TensorId feed(TensorId x, const std::string& p, int64_t ffn_dim) {
    const TensorId mlp_out =
        f_.feed_forward(f_.layer_norm(x, p + "final_layer_norm"), {.up = p + "fc1",
                                                                   .act = p + "act",
                                                                   .down = p + "fc2",
                                                                   .activation = c_.activation,
                                                                   .ffn_dim = ffn_dim});
    return f_.residual({x, mlp_out}, p + "residual");
  }

  Graph& graph_;
  Layers f_;
  const WhisperConfig& c_;
  const GraphRequest& request_;
  TensorId memory_ = -1, mask_ = -1;
};

Graph build_whisper(const WhisperConfig& config, const GraphRequest& request) {
  Graph graph;
  Whisper(graph, config, request).build();
  return graph;
}

}  // namespace

Model read_whisper(const JsonObject& json) {
  const WhisperConfig config = whisper_config(json);
  Model model = make_model(config, config.text_tokens, config.text_tokens, build_whisper);
  model.has_fused_attention = true;
  return model;
}

}  // namespace tilecast
