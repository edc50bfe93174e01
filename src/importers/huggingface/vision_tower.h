#pragma once

// Vision towers beside language models: a transformer over the patches of images, and the layers
// that merge its patches into tokens of the prompt. One description covers all families
// (vision_tower_config.cc), and one function builds their graphs of modules (vision_tower.cc).

#include <string>
#include <vector>

#include "importers/model.h"

namespace tilecast {

struct VisionConfig {
  enum class Norm : uint8_t { kLayer, kRms };
  /// Positions that are added to the patches: a table with a row for each, rows that are
  /// interpolated from a table of another size, or a table for each of the two axes.
  enum class Positions : uint8_t { kNone, kTable, kInterpolated, kAxes };
  /// How patches become tokens.
  enum class Merge : uint8_t {
    kMerger,   ///< norm of each patch, neighbours side by side, two linear layers (Qwen-VL, Kimi)
    kPool,     ///< mean of neighbours, norm, a linear layer (Gemma)
    kShuffle,  ///< neighbours side by side, three linear layers (Llama 4)
    kPixtral,  ///< norm, neighbours side by side, three linear layers (Mistral 3)
  };
  /// How the processor resizes images.
  enum class Resize : uint8_t {
    kNearest,  ///< to the nearest multiple of a token's pixels
    kUp,       ///< to the next multiple, at most `image`
    kFixed,    ///< to `image`
    kTiles,    ///< tiles of `image`, as few as hold it, and one of the whole image
  };

  int64_t hidden_dim = 0, heads = 0, head_dim = 0, layers = 0, ffn_dim = 0;
  std::string activation;
  int64_t patch = 0, channels = 3;
  int64_t frames = 1;       ///< an image is repeated so often (Qwen-VL: videos come in pairs)
  bool whole_image = true;  ///< the tower cuts images into patches; else the processor does
  bool patch_bias = true;
  int64_t image = 0;       ///< side in pixels; 0: any
  int64_t most_tiles = 1;  ///< with Resize::kTiles
  int64_t position_rows = 0;
  bool class_token = false;
  Norm norm = Norm::kLayer;
  bool embedding_norm = false, final_norm = false, post_norms = false, qk_norm = false;
  bool rotary = false, bias = true, gated_mlp = false;
  Positions positions = Positions::kNone;
  /// Attention within windows of so many patches per side, but for the layers in `full_layers`;
  /// 0: none.
  int64_t window = 0;
  std::vector<int64_t> full_layers;
  std::vector<int64_t> taps;  ///< layers whose output is merged too (Qwen3-VL's DeepStack)
  bool pooling_head = false;  ///< SigLIP's, which is stored but has no work

  Merge merge = Merge::kMerger;
  int64_t side_merged = 1;  ///< patches of a token per side
  int64_t merge_dim = 0;    ///< width between the linear layers of a merge
  bool merge_bias = true;
  bool merge_norm_weight = true;
  int64_t out_dim = 0;  ///< of a token
  Resize resize = Resize::kNearest;

  int64_t token_side() const { return patch * side_merged; }  ///< pixels
};

VisionTower make_vision_tower(const VisionConfig& config);

/// The tower of a multimodal config whose language model has been read; nullopt if the family's
/// tower is not known. Throws Error{kInput} that names a field.
std::optional<VisionTower> read_vision_tower(const JsonObject& config, int64_t text_dim);

}  // namespace tilecast
