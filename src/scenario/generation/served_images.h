#pragma once

// The images of prompts: what the vision tower of a model does with them on one rank.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "memory/by_purpose.h"
#include "scenario/internal.h"
#include "tilecast/request.h"

namespace tilecast {

/// One image of the request, as the model's tower sees it; nullopt: the request has no images.
/// Throws Error{kUnsupported} if the model has no tower that is forecast.
std::optional<VisionTower::Image> image_of(const Model& model, const Request& request);

/// The request with prompts that include the tokens of their images. Throws as `image_of`, and
/// Error{kInput} if a prompt is too long to be counted.
Request with_image_tokens(const Request& request, const Model& model);

/// The tower on one rank.
class TowerSteps {
 public:
  /// The model must have a tower. `request` must outlive this object.
  TowerSteps(const Model& model, const Request& request, DType dtype);

  /// As it runs for `images` images at once: the operators of PyTorch with fused attention. Ranks
  /// divide it if they divide its heads and ffn_dim, else each has all of it (as in vLLM).
  Graph graph(int64_t images) const;
  int64_t parameters() const { return parameters_; }  ///< of the whole tower
  int64_t weights_bytes() const { return weights_bytes_; }

  /// How many images the tower gets at once, at most: as many as have `max-num-batched-tokens`
  /// tokens (vLLM's encoder budget), but one at least. There must be images.
  int64_t most_together() const;
  /// The same of `images` images.
  int64_t together(int64_t images) const { return std::min(most_together(), images); }
  /// The runs for so many images, one or more: images of a run, number of runs.
  std::vector<std::pair<int64_t, int64_t>> runs(int64_t images) const;
  /// Peak of activations with so many images; 0 where prompts have none.
  int64_t activations_bytes(int64_t images) const;
  /// Of an image, which replace its tokens in the prompt.
  int64_t embeddings_bytes() const;

 private:
  Graph modules(int64_t images, const VisionTower::Image& image) const;
  int64_t ranks() const;  ///< that divide the tower

  const Model& model_;
  const Request& request_;
  DType dtype_;
  std::optional<VisionTower::Image> image_;
  int64_t parameters_ = 0, weights_bytes_ = 0;
};

}  // namespace tilecast
