// Vision transformers and CLIP (transformers/models/vit/modeling_vit.py, clip/modeling_clip.py).

#include <fmt/format.h>

#include <algorithm>

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct Tower {
  int64_t hidden_dim, heads, layers, ffn_dim;
  std::string activation;
  int64_t tokens = 0;  ///< length of a sequence: patches and the class token, or text tokens
  int64_t image = 0, patch = 0, channels = 0;
  int64_t vocab_size = 0;  ///< text only
  bool qkv_bias = true;
  bool embedding_norm = false;  ///< CLIP's image tower has a norm after the embedding
};

Tower read_tower(const JsonObject& c) {
  Tower t{};
  t.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  t.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  head_dim_of(c, "hidden_size", t.hidden_dim, "num_attention_heads", t.heads);
  t.layers = c.integer({"num_hidden_layers"}, 1, 100000);
  t.ffn_dim = c.integer({"intermediate_size"}, 1, kLargestConfigSize);
  t.activation = c.optional_string({"hidden_act"}).value_or("gelu");
  check_activation(c, "hidden_act", t.activation);
  return t;
}

void read_image(const JsonObject& c, Tower& t) {
  constexpr int64_t kLargestImage = 1 << 16;
  t.image = c.integer({"image_size"}, 1, kLargestImage);
  t.patch = c.integer({"patch_size"}, 1, kLargestImage);
  t.channels = c.optional_integer({"num_channels"}, 1, kLargestImage).value_or(3);
  if (t.patch > t.image)
    c.fail("patch_size", fmt::format("{} is larger than the image ({})", t.patch, t.image));
  const int64_t side = t.image / t.patch;
  t.tokens = side * side + 1;
}

/// Causal if there is a mask.
TensorId attention(Layers& f, const Tower& t, TensorId x, const std::string& p, TensorId mask) {
  const int64_t head_dim = t.hidden_dim / t.heads;
  const auto project = [&](const char* name) {
    const Layers::Linear options = {t.hidden_dim, t.qkv_bias, f.outputs(head_dim, {t.heads})};
    return f.split_heads(f.linear(x, p + name, options), t.heads);
  };
  const TensorId q = project("q_proj"), k = project("k_proj"), v = project("v_proj");
  std::vector<Attribute> attributes = {{"softmax_fp32", 1}};
  std::vector<TensorId> masks;
  if (mask >= 0) {
    attributes.push_back({"causal", 1});
    masks.push_back(mask);
  }
  const TensorId context =
      f.attention(q, k, v, p + "attention", std::move(attributes), std::move(masks));
  return f.linear(context, p + "out_proj", {t.hidden_dim, true, f.inputs(head_dim, t.heads)});
}

/// Pre-norm transformer layers.
TensorId encode(Layers& f, const Tower& t, TensorId start, const std::string& name,
                TensorId mask = -1) {
  GraphBuilder& b = f.builder();
  b.begin_segment(name, t.layers);
  const std::string p = name + ".0.";
  const TensorId attn_out =
      attention(f, t, f.layer_norm(start, p + "layer_norm1"), p + "attn.", mask);
  const TensorId hidden = f.op("add", {start, attn_out}, p + "attn.residual");
  const TensorId mlp_out =
      f.feed_forward(f.layer_norm(hidden, p + "layer_norm2"), {.up = p + "mlp.fc1",
                                                               .act = p + "mlp.act",
                                                               .down = p + "mlp.fc2",
                                                               .activation = t.activation,
                                                               .ffn_dim = t.ffn_dim});
  const TensorId end = f.op("add", {hidden, mlp_out}, p + "mlp.residual");
  b.carry(start, end);
  return end;
}

/// Patch embedding by a convolution, with the class token in front and positions added.
TensorId embed_image(Layers& f, const Tower& t, const std::string& p) {
  GraphBuilder& b = f.builder();
  const int64_t batch = f.request().batch;
  const TensorId pixels =
      b.input("pixel_values", {batch, t.channels, t.image, t.image}, f.request().dtype);
  std::vector<TensorId> operands = {
      pixels, f.weight(p + "patch.weight", {t.hidden_dim, t.channels, t.patch, t.patch})};
  if (!t.embedding_norm) operands.push_back(f.weight(p + "patch.bias", {t.hidden_dim}));
  const TensorId patches = f.op("conv2d", std::move(operands), p + "patch", {{"stride", t.patch}});
  const TensorId flat = f.view(patches, {batch, t.hidden_dim, t.tokens - 1});
  const TensorId rows = f.transpose(flat, {0, 2, 1});
  const TensorId first = f.op("expand", {f.weight(p + "class_token", {1, 1, t.hidden_dim})},
                              p + "class_token", {{"shape", Shape{batch, 1, t.hidden_dim}}});
  const TensorId all = f.op("cat", {first, rows}, p + "cat", {{"dim", 1}});
  const TensorId sum = f.op("add", {all, f.weight(p + "positions", {1, t.tokens, t.hidden_dim})},
                            p + "add_positions");
  return t.embedding_norm ? f.layer_norm(sum, p + "pre_layernorm") : sum;
}

/// The class token of each sequence, [b, hidden_dim].
TensorId first_token(Layers& f, TensorId x, const std::string& name) {
  const Shape shape = f.builder().graph().tensor(x).shape;
  return f.op("gather_rows", {f.view(x, {shape[0] * shape[1], shape[2]})}, name,
              {{"rows", shape[0]}});
}

struct VitConfig {
  Tower tower;
  int64_t labels = 0;  ///< number of classes; 0: a pooler instead of a classifier
};

Graph build_vit(const VitConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  f.builder().begin_segment("embeddings", 1);
  const TensorId start = embed_image(f, c.tower, "embeddings.");
  const TensorId end = encode(f, c.tower, start, "encoder.layer");
  f.builder().begin_segment("head", 1);
  const TensorId token = first_token(f, f.layer_norm(end, "layernorm"), "class_token");
  graph.outputs = {
      c.labels > 0
          ? f.linear(token, "classifier", {c.labels})
          : f.op("tanh", {f.linear(token, "pooler.dense", {c.tower.hidden_dim})}, "pooler")};
  return graph;
}

struct ClipConfig {
  Tower image, text;
  int64_t projection;
};

/// Both towers and the products of their embeddings; one text for each image.
Graph build_clip(const ClipConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  GraphBuilder& b = f.builder();
  b.begin_segment("vision_model.embeddings", 1);
  const TensorId pixels = embed_image(f, c.image, "vision_model.embeddings.");
  const TensorId seen = encode(f, c.image, pixels, "vision_model.layers");
  b.begin_segment("text_model.embeddings", 1);
  const TensorId pooled =
      f.layer_norm(first_token(f, seen, "vision_model.class_token"), "vision_model.post_layernorm");
  const TensorId image = f.linear(pooled, "visual_projection", {c.projection, false});
  const int64_t s = request.seq;
  const TensorId token_embeds = f.embedding(
      f.vocabulary_table("text_model.token_embedding", c.text.vocab_size, c.text.hidden_dim),
      f.ids("input_ids", {request.batch, s}), "text_model.token_embedding");
  const TensorId position_embeds =
      f.embedding(f.weight("text_model.position_embedding", {c.text.tokens, c.text.hidden_dim}),
                  f.ids("position_ids", {1, s}), "text_model.position_embedding");
  const TensorId start = f.op("add", {token_embeds, position_embeds}, "text_model.add_positions");
  const TensorId mask = f.causal_mask(start, "text_model.causal_mask");
  const TensorId read = encode(f, c.text, start, "text_model.layers", mask);
  b.begin_segment("head", 1);
  const TensorId last =
      first_token(f, f.layer_norm(read, "text_model.final_layer_norm"), "text_model.end_token");
  const TensorId text = f.linear(last, "text_projection", {c.projection, false});
  const auto unit = [&](TensorId x, const std::string& name) {
    const TensorId squares = f.op("integer_pow", {x}, name);
    const TensorId sum = f.op("reduce_sum", {squares}, name, {{"shape", Shape{request.batch, 1}}});
    return f.op("div", {x, f.op("sqrt", {sum}, name)}, name);
  };
  const TensorId logits = f.op("matmul", {unit(text, "text_norm"), unit(image, "image_norm")},
                               "logits", {{"transpose_b", 1}});
  const TensorId scale = f.weight("logit_scale", {1});
  graph.outputs = {f.op("mul", {logits, f.op("exp", {scale}, "logit_scale")}, "logits.scale")};
  return graph;
}

}  // namespace

Model read_vit(const JsonObject& json) {
  VitConfig config;
  config.tower = read_tower(json);
  config.tower.qkv_bias = json.boolean("qkv_bias", true);
  read_image(json, config.tower);
  if (json.has("architectures") && !json.strings("architectures").empty() &&
      json.strings("architectures")[0] == "ViTForImageClassification") {
    const Json labels = json.json().value("id2label", Json::object());
    config.labels = std::max<int64_t>(
        2, json.optional_integer({"num_labels"}, 1, kLargestConfigSize)
               .value_or(labels.is_object() ? static_cast<int64_t>(labels.size()) : 0));
  }
  Model model = make_model(config, config.tower.tokens, std::nullopt, build_vit);
  model.fixed_seq = true;
  model.has_fused_attention = true;
  return model;
}

Model read_clip(const JsonObject& json) {
  ClipConfig config;
  const JsonObject vision = json.object("vision_config"), text = json.object("text_config");
  config.image = read_tower(vision);
  read_image(vision, config.image);
  config.image.embedding_norm = true;
  config.text = read_tower(text);
  config.text.tokens = text.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  config.text.vocab_size = text.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.projection = json.integer({"projection_dim"}, 1, kLargestConfigSize);
  Model model = make_model(config, config.text.tokens, config.text.tokens, build_clip);
  model.has_fused_attention = true;
  return model;
}

}  // namespace tilecast
