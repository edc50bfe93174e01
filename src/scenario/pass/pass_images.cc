#include "scenario/pass/pass_images.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "ops/builder.h"
#include "ops/joined_graphs.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "scenario/generation/served_images.h"

namespace tilecast {
namespace {

Graph run_tower(const Model& model, const Request& request, DType dtype) {
  return model.vision->build(
      {.batch = checked_multiply(request.batch, request.images), .seq = 1, .dtype = dtype},
      *image_of(model, request));
}

/// The tower's tokens replace the text tokens that stand for them, before the first layer
/// (`inputs_embeds.masked_scatter` in transformers). Qwen3-VL adds DeepStack's outputs after its
/// first layers; here they are written before the first one too.
Graph join_graphs(const Graph& tower, const Graph& text) {
  JoinedGraphs joined;
  const std::vector<TensorId> seen = joined.add(tower, nullptr);
  bool written = false;
  const auto write = [&](const Segment& segment, std::vector<TensorId>& now) {
    if (written || segment.carries.empty()) return;
    written = true;
    TensorId& start = now[static_cast<size_t>(segment.carries.front().initial)];
    GraphBuilder& b = joined.builder();
    for (const TensorId output : tower.outputs) {
      const TensorId copied = b.op("copy", {start}, "vision.write_tokens");
      start =
          b.op("scatter_rows", {copied, seen[static_cast<size_t>(output)]}, "vision.write_tokens");
    }
  };
  const std::vector<TensorId> now = joined.add(text, write);
  Graph graph = joined.done();
  graph.name = text.name;
  for (const TensorId id : text.outputs) graph.outputs.push_back(now[static_cast<size_t>(id)]);
  return graph;
}

/// Weights of repeated layers are one tensor, since no node reads them.
void store_weights(const Graph& tower, Graph& graph) {
  GraphBuilder b(graph);
  for (const Tensor& tensor : tower.tensors) {
    if (tensor.kind != TensorKind::kWeight) continue;
    const int64_t count =
        checked_multiply(element_count(tensor.shape), tower.repeat_of(tensor.segment));
    b.tensor({.name = tensor.name,
              .shape = {count},
              .dtype = tensor.dtype,
              .kind = TensorKind::kWeight,
              .frozen = true});
  }
}

}  // namespace

int64_t image_tokens(const Model& model, const Request& request) {
  const std::optional<VisionTower::Image> image = image_of(model, request);
  return image ? checked_multiply(request.images, image->tokens) : 0;
}

Graph with_tower(Graph text, const Model& model, const Request& request, DType dtype) {
  if (!model.vision) return text;
  if (request.images == 0) {
    store_weights(
        model.vision->build({.batch = 1, .seq = 1, .dtype = dtype}, model.vision->image(1)), text);
    return text;
  }
  Graph graph = join_graphs(run_tower(model, request, dtype), text);
  validate_if_debug(graph);
  return graph;
}

std::vector<std::string> tower_remarks(const Model& model, const Request& request) {
  if (!model.vision) return {};
  if (const std::optional<VisionTower::Image> image = image_of(model, request))
    return {fmt::format(
        "images of {0} x {0} pixels: {1}, with {2} tokens beside the {3} of each sequence",
        image->side, format_integer(request.images), format_integer(image_tokens(model, request)),
        format_integer(*request.seq))};
  return {fmt::format(
      "without images (--images) the vision tower does not run: its weights are in memory{}",
      request.mode == Mode::kTraining ? ", but have no gradients and no optimizer states" : "")};
}

}  // namespace tilecast
