#include "scenario/generation/served_images.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "passes/passes.h"
#include "tilecast/error.h"

namespace tilecast {

std::optional<VisionTower::Image> image_of(const Model& model, const Request& request) {
  if (request.images == 0) return std::nullopt;
  if (!model.vision)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: `images` {}: '{}' has no vision tower that is forecast; leave "
                            "`images` out, or give a config.json with a 'vision_config' of a known "
                            "family",
                            model.name, request.images, model.family));
  if (model.vision->out_dim != model.vision->text_dim)
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: `images` {}: the vision tower's tokens have a width of {}, those of "
                    "the text, which they replace, of {}; correct the config's "
                    "'vision_config' or its hidden_size",
                    model.name, request.images, model.vision->out_dim, model.vision->text_dim));
  return model.vision->image(request.image_size.value_or(model.vision->default_side));
}

Request with_image_tokens(const Request& request, const Model& model) {
  Request whole = request;
  const std::optional<VisionTower::Image> image = image_of(model, request);
  if (!image) return whole;
  const int64_t tokens = checked_multiply(request.images, image->tokens);
  whole.prompt = checked_add(whole.prompt, tokens);
  if (whole.load.max_prompt > 0) whole.load.max_prompt = checked_add(whole.load.max_prompt, tokens);
  for (TraceRequest& r : whole.load.trace) r.prompt = checked_add(r.prompt, tokens);
  return whole;
}

TowerSteps::TowerSteps(const Model& model, const Request& request, DType dtype)
    : model_(model), request_(request), dtype_(dtype), image_(image_of(model, request)) {
  // Weights do not depend on the size of images.
  const Graph whole = modules(1, model.vision->image(1));
  parameters_ = whole.parameter_count();
  weights_bytes_ = tilecast::weights_bytes(shard(whole, ranks()));
}

Graph TowerSteps::modules(int64_t images, const VisionTower::Image& image) const {
  return model_.vision->build({.batch = images, .seq = 1, .dtype = dtype_}, image);
}

int64_t TowerSteps::ranks() const {
  const int64_t tp = request_.execution.tp;
  return model_.vision->heads % tp == 0 && model_.vision->ffn_dim % tp == 0 ? tp : 1;
}

Graph TowerSteps::graph(int64_t images) const {
  return decompose(shard(modules(images, *image_), ranks()), {.fused_attention = true});
}

int64_t TowerSteps::most_together() const {
  const int64_t budget = request_.execution.max_num_batched_tokens;
  return std::max<int64_t>(1, budget / std::max<int64_t>(1, image_->tokens));
}

std::vector<std::pair<int64_t, int64_t>> TowerSteps::runs(int64_t images) const {
  const int64_t at_once = together(images);
  std::vector<std::pair<int64_t, int64_t>> runs = {{at_once, images / at_once}};
  if (images % at_once > 0) runs.emplace_back(images % at_once, 1);
  return runs;
}

int64_t TowerSteps::activations_bytes(int64_t images) const {
  if (!image_) return 0;
  const MemoryByPurpose plan = memory_by_purpose(graph(together(images)));
  return checked_add(plan.activations_bytes, plan.inputs_bytes);
}

int64_t TowerSteps::embeddings_bytes() const {
  const Graph one = modules(1, *image_);
  int64_t bytes = 0;
  for (const TensorId id : one.outputs) bytes = checked_add(bytes, tensor_bytes(one.tensor(id)));
  return bytes;
}

}  // namespace tilecast
