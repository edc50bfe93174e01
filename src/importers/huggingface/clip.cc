// CLIP, SigLIP and SigLIP 2 (transformers/models/clip, siglip, siglip2): an image tower and a text
// tower, and the products of their embeddings; one text for each image.

#include <fmt/format.h>

#include <algorithm>

#include "importers/huggingface/fields.h"
#include "importers/huggingface/tower.h"

namespace tilecast {
namespace {

struct PairConfig {
  Tower image, text;
  int64_t projection = 0;
  bool siglip = false;
  bool flat_patches = false;  ///< SigLIP 2: patches are an input, and embedded by a linear layer
  bool pooling_head = true;   ///< SigLIP: attention of a learned query to all patches
};

class Pair {
 public:
  Pair(Graph& graph, const PairConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("vision_model.embeddings", 1);
    const std::string v = "vision_model.embeddings.";
    const TensorId pixels = c_.flat_patches ? embed_patches(v) : embed_image(f_, c_.image, v);
    const TensorId seen = encode(f_, c_.image, pixels, "vision_model.layers");
    b.begin_segment("text_model.embeddings", 1);
    const TensorId image = c_.siglip ? pool_siglip(seen) : pool_clip(seen);
    const TensorId start = embed_text(f_, c_.text, "text_model.");
    const TensorId mask = c_.siglip ? -1 : f_.causal_mask(start, "text_model.causal_mask");
    const TensorId read = encode(f_, c_.text, start, "text_model.layers", mask);
    b.begin_segment("head", 1);
    const TensorId last =
        one_token(f_, f_.layer_norm(read, "text_model.final_layer_norm"), "text_model.end_token");
    const TensorId text = f_.linear(last, c_.siglip ? "text_model.head" : "text_projection",
                                    {c_.projection, c_.siglip});
    const TensorId logits = f_.op("matmul", {unit(text, "text_norm"), unit(image, "image_norm")},
                                  "logits", {{"transpose_b", 1}});
    const TensorId scale = f_.op("exp", {f_.weight("logit_scale", {1})}, "logit_scale");
    const TensorId scaled = f_.op("mul", {logits, scale}, "logits.scale");
    graph_.outputs = {
        c_.siglip ? f_.op("add", {scaled, f_.weight("logit_bias", {1})}, "logits.bias") : scaled};
  }

 private:
  /// The positions of each image's grid are interpolated from a table.
  TensorId embed_patches(const std::string& p) {
    const Tower& t = c_.image;
    const TensorId patches = f_.builder().input(
        "pixel_values", {f_.request().batch, t.tokens, t.channels * t.patch * t.patch},
        f_.request().dtype);
    const TensorId x = f_.linear(patches, p + "patch_embedding", {t.hidden_dim});
    const TensorId table = f_.weight(p + "position_embedding", {t.tokens, t.hidden_dim});
    const TensorId grid =
        f_.op("copy", {f_.view(table, {1, t.tokens, t.hidden_dim})}, p + "interpolate_positions");
    return f_.op("add", {x, grid}, p + "add_positions");
  }

  TensorId pool_clip(TensorId seen) {
    const TensorId token = one_token(f_, seen, "vision_model.class_token");
    return f_.linear(f_.layer_norm(token, "vision_model.post_layernorm"), "visual_projection",
                     {c_.projection, false});
  }

  /// Multi-head attention of one learned query, and an MLP.
  TensorId pool_siglip(TensorId seen) {
    const Tower& t = c_.image;
    const TensorId x = f_.layer_norm(seen, "vision_model.post_layernorm");
    if (!c_.pooling_head) return one_token(f_, x, "vision_model.first_token");
    const std::string p = "vision_model.head.";
    const int64_t batch = f_.request().batch;
    const TensorId probe = f_.op("copy",
                                 {f_.op("expand", {f_.weight(p + "probe", {1, 1, t.hidden_dim})},
                                        p + "probe", {{"shape", Shape{batch, 1, t.hidden_dim}}})},
                                 p + "probe");
    const int64_t head_dim = t.hidden_dim / t.heads;
    const Layers::Split one = f_.outputs(head_dim, {t.heads});
    const Layers::Split two = f_.outputs(head_dim, {t.heads, t.heads});
    const TensorId q = f_.linear(probe, p + "attention.q", {t.hidden_dim, true, one});
    const TensorId kv = f_.linear(x, p + "attention.kv", {2 * t.hidden_dim, true, two});
    const auto part = [&](const char* name) {
      return f_.split_heads(f_.slice(kv, t.hidden_dim, p + name), t.heads);
    };
    const TensorId k = part("attention.k"), v = part("attention.v");
    const TensorId context = f_.attention(f_.split_heads(q, t.heads), k, v, p + "attention", {});
    const TensorId out = f_.linear(context, p + "attention.out_proj",
                                   {t.hidden_dim, true, f_.inputs(head_dim, t.heads)});
    const TensorId mlp_out =
        f_.feed_forward(f_.layer_norm(out, p + "layernorm"), {.up = p + "mlp.fc1",
                                                              .act = p + "mlp.act",
                                                              .down = p + "mlp.fc2",
                                                              .activation = t.activation,
                                                              .ffn_dim = t.ffn_dim});
    return f_.view(f_.residual({out, mlp_out}, p + "residual"), {batch, t.hidden_dim});
  }

  TensorId unit(TensorId x, const std::string& name) {
    const TensorId squares = f_.op("integer_pow", {x}, name);
    const TensorId sum =
        f_.op("reduce_sum", {squares}, name, {{"shape", Shape{f_.request().batch, 1}}});
    return f_.op("div", {x, f_.op("sqrt", {sum}, name)}, name);
  }

  Graph& graph_;
  Layers f_;
  const PairConfig& c_;
};

Graph build_clip(const PairConfig& config, const GraphRequest& request) {
  Graph graph;
  Pair(graph, config, request).build();
  return graph;
}

void read_text(const JsonObject& text, Tower& t) {
  t = read_tower(text);
  t.tokens = text.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  t.vocab_size = text.integer({"vocab_size"}, 1, kLargestConfigSize);
}

/// The config of a tower, with defaults for the fields that it lacks.
Json completed(const JsonObject& json, const std::string& key, Json defaults) {
  defaults.update(json.object(key).json());
  return defaults;
}

Model pair_model(const PairConfig& config) {
  Model model = make_model(config, config.text.tokens, config.text.tokens, build_clip);
  model.has_fused_attention = true;
  return model;
}

}  // namespace

Model read_clip(const JsonObject& json) {
  PairConfig config;
  // transformers writes only the fields of the towers that differ from CLIPTextConfig and
  // CLIPVisionConfig.
  const Json vision_fields = completed(json, "vision_config",
                                       {{"hidden_size", 768},
                                        {"intermediate_size", 3072},
                                        {"num_hidden_layers", 12},
                                        {"num_attention_heads", 12},
                                        {"image_size", 224},
                                        {"patch_size", 32},
                                        {"hidden_act", "quick_gelu"}});
  const Json text_fields = completed(json, "text_config",
                                     {{"hidden_size", 512},
                                      {"intermediate_size", 2048},
                                      {"num_hidden_layers", 12},
                                      {"num_attention_heads", 8},
                                      {"max_position_embeddings", 77},
                                      {"vocab_size", 49408},
                                      {"hidden_act", "quick_gelu"}});
  const JsonObject vision(vision_fields, json.object("vision_config").where());
  config.image = read_tower(vision);
  config.image.embedding_norm = true;
  config.image.patch_bias = false;
  read_image(vision, config.image);
  read_text(JsonObject(text_fields, json.object("text_config").where()), config.text);
  config.projection = json.integer({"projection_dim"}, 1, kLargestConfigSize);
  return pair_model(config);
}

namespace {

/// The text tower alone, as pipelines of diffusers have it.
struct TextTower {
  Tower tower;
  int64_t projection = 0;  ///< 0: none (CLIPTextModel)
};

Graph build_text_tower(const TextTower& config, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  f.builder().begin_segment("text_model.embeddings", 1);
  const TensorId start = embed_text(f, config.tower, "text_model.");
  const TensorId mask = f.causal_mask(start, "text_model.causal_mask");
  const TensorId read = encode(f, config.tower, start, "text_model.layers", mask);
  f.builder().begin_segment("head", 1);
  const TensorId normal = f.layer_norm(read, "text_model.final_layer_norm");
  const TensorId last = one_token(f, normal, "text_model.end_token");
  graph.outputs = {normal, config.projection == 0
                               ? last
                               : f.linear(last, "text_projection", {config.projection, false})};
  return graph;
}

}  // namespace

Model read_clip_text(const JsonObject& json) {
  TextTower config;
  read_text(json, config.tower);
  if (class_name(json, "").ends_with("WithProjection"))
    config.projection = json.optional_integer({"projection_dim"}, 1, kLargestConfigSize)
                            .value_or(config.tower.hidden_dim);
  Model model = make_model(config, config.tower.tokens, config.tower.tokens, build_text_tower);
  model.has_fused_attention = true;
  return model;
}

Model read_siglip(const JsonObject& json) {
  PairConfig config;
  config.siglip = true;
  // The defaults of SiglipTextConfig and SiglipVisionConfig, and of their successors.
  const Json layers = {{"hidden_size", 768},
                       {"intermediate_size", 3072},
                       {"num_hidden_layers", 12},
                       {"num_attention_heads", 12},
                       {"hidden_act", "gelu_pytorch_tanh"}};
  Json image_defaults = layers, text_defaults = layers;
  image_defaults.update({{"image_size", 224}, {"patch_size", 16}, {"num_patches", 256}});
  text_defaults.update({{"max_position_embeddings", 64}, {"vocab_size", 32000}});
  const Json vision_fields = completed(json, "vision_config", image_defaults);
  const Json text_fields = completed(json, "text_config", text_defaults);
  const JsonObject vision(vision_fields, json.object("vision_config").where());
  const JsonObject text(text_fields, json.object("text_config").where());
  config.image = read_tower(vision);
  config.image.class_tokens = 0;
  config.pooling_head = vision.boolean("vision_use_head", true);
  config.flat_patches = json.string("model_type") == "siglip2";
  if (config.flat_patches) {
    Tower& t = config.image;
    constexpr int64_t kMostPatches = 1 << 20, kLargestPatch = 1 << 10;
    t.tokens = vision.integer({"num_patches"}, 1, kMostPatches);
    t.patch = vision.integer({"patch_size"}, 1, kLargestPatch);
    t.channels = vision.optional_integer({"num_channels"}, 1, kLargestPatch).value_or(3);
  } else {
    read_image(vision, config.image);
  }
  read_text(text, config.text);
  config.projection = text.optional_integer({"projection_size"}, 1, kLargestConfigSize)
                          .value_or(config.text.hidden_dim);
  if (config.projection != config.image.hidden_dim)
    text.fail(
        "projection_size",
        fmt::format("expected {}, the 'hidden_size' of 'vision_config', with which the text is "
                    "multiplied; found {}",
                    config.image.hidden_dim, config.projection));
  return pair_model(config);
}

}  // namespace tilecast
