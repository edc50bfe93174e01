// Vision transformers (transformers/models/vit, deit, beit, dinov2, dinov2_with_registers). They
// differ in the tokens beside the patches, in positions, and in what follows the last layer.

#include <fmt/format.h>

#include <algorithm>

#include "importers/huggingface/convnet.h"
#include "importers/huggingface/fields.h"
#include "importers/huggingface/tower.h"

namespace tilecast {
namespace {

/// Tokens that a classifier, or the output without one, reads.
enum class Pooling : uint8_t {
  kFirst,         ///< the class token
  kFirstAndMean,  ///< the class token beside the mean of the patches
  kMean,          ///< a norm of the mean of the patches
};

struct VitConfig {
  Tower tower;
  Pooling pooling = Pooling::kFirst;
  bool dense_pooler = true;  ///< without a classifier: a linear layer and tanh
  bool last_norm = true;
  int64_t labels = 0;    ///< number of classes; 0: no classifier
  bool teacher = false;  ///< DeiT: a second classifier, on the distillation token
};

void read_dinov2(const JsonObject& c, VitConfig& config, bool registers) {
  Tower& t = config.tower;
  config.pooling = Pooling::kFirstAndMean;
  config.dense_pooler = t.softmax_fp32 = false;
  t.mask_token = registers || c.boolean("use_mask_token", true);
  t.layer_scale = true;
  constexpr int64_t kMostRegisters = 1000;
  if (registers)
    t.registers = c.optional_integer({"num_register_tokens"}, 0, kMostRegisters).value_or(4);
  t.swiglu = c.boolean("use_swiglu_ffn", false);
  // Two thirds, rounded up to a multiple of 8 (Dinov2SwiGLUFFN).
  if (t.swiglu)
    t.ffn_dim = (static_cast<int64_t>(static_cast<double>(t.ffn_dim) * 2 / 3) + 7) / 8 * 8;
}

void read_beit(const JsonObject& c, VitConfig& config) {
  Tower& t = config.tower;
  config.dense_pooler = false;
  if (c.boolean("use_mean_pooling", true)) {
    config.pooling = Pooling::kMean;
    config.last_norm = false;
  }
  t.key_bias = false;
  t.mask_token = c.boolean("use_mask_token", false);
  t.positions = c.boolean("use_absolute_position_embeddings", false);
  t.relative_bias = c.boolean("use_relative_position_bias", false);
  t.shared_relative_bias = c.boolean("use_shared_relative_position_bias", false);
  t.layer_scale = !c.has("layer_scale_init_value") || c.number("layer_scale_init_value") > 0;
}

VitConfig vision_config(const JsonObject& c) {
  VitConfig config;
  config.tower = read_tower(c);
  config.tower.qkv_bias = c.boolean("qkv_bias", true);
  const std::string type = c.string("model_type");
  if (type == "deit") {
    config.tower.class_tokens = 2;
    config.teacher = class_name(c, "") == "DeiTForImageClassificationWithTeacher";
  }
  if (type == "beit") read_beit(c, config);
  if (type.starts_with("dinov2")) read_dinov2(c, config, type != "dinov2");
  read_image(c, config.tower);
  config.labels = config.teacher ? label_count(c) : image_classes(c);
  return config;
}

/// The mean of the patches, [b, hidden_dim].
TensorId mean_of_patches(Layers& f, const Tower& t, TensorId x) {
  const TensorId patches = f.op("slice", {x}, "patch_tokens", {{"dim", 1}, {"count", t.patches()}});
  return f.mean_of_rows(patches, "mean");
}

TensorId pool(Layers& f, const VitConfig& c, TensorId x) {
  if (c.pooling == Pooling::kMean)
    return f.layer_norm(mean_of_patches(f, c.tower, x), "pooler.layernorm");
  const TensorId token = one_token(f, x, "class_token");
  if (c.pooling == Pooling::kFirst || c.labels == 0) return token;
  return f.op("cat", {token, mean_of_patches(f, c.tower, x)}, "pooled", {{"dim", 1}});
}

Graph build_vision(const VitConfig& c, const GraphRequest& request) {
  Graph graph;
  Layers f(graph, request);
  f.builder().begin_segment("embeddings", 1);
  const TensorId start = embed_image(f, c.tower, "embeddings.");
  TensorId x = encode(f, c.tower, start, "encoder.layer");
  f.builder().begin_segment("head", 1);
  if (c.last_norm) x = f.layer_norm(x, "layernorm");
  const TensorId pooled = pool(f, c, x);
  if (c.labels > 0) {
    graph.outputs = {f.linear(pooled, "classifier", {c.labels})};
    if (c.teacher)
      graph.outputs.push_back(
          f.linear(one_token(f, x, "distillation_token"), "distillation_classifier", {c.labels}));
    return graph;
  }
  graph.outputs = {
      c.dense_pooler
          ? f.op("tanh", {f.linear(pooled, "pooler.dense", {c.tower.hidden_dim})}, "pooler")
          : pooled};
  return graph;
}

}  // namespace

Model read_vit(const JsonObject& json) {
  const VitConfig config = vision_config(json);
  Model model = make_image_model(config, build_vision, config.tower.tokens);
  // Fused kernels add no biases.
  model.has_fused_attention = !config.tower.relative_bias && !config.tower.shared_relative_bias;
  return model;
}

}  // namespace tilecast
