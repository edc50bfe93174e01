// Reads the vision tower of a multimodal config. Where it leaves out a field, the value is that of
// transformers' config class (models/*/configuration_*.py); processors: image_processing_*.py.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "importers/huggingface/layers.h"
#include "importers/huggingface/vision_tower.h"

namespace tilecast {
namespace {

using Merge = VisionConfig::Merge;
using TowerNorm = VisionConfig::Norm;
using TowerPositions = VisionConfig::Positions;
using Resize = VisionConfig::Resize;

// Limits of fields: a larger number is a typing mistake. Products of several stay below 2^63.
constexpr int64_t kMostLayers = 10'000, kLargestWidth = 1 << 20, kLargestTowerImage = 1 << 14;

/// The fields of a tower as in the config, before defaults.
struct Fields {
  JsonObject tower;
  const JsonObject& outer;
  int64_t text_dim;  ///< width of the language model

  int64_t width(const std::string& key) const { return tower.integer({key}, 1, kLargestWidth); }
  int64_t side(const std::string& key) const { return tower.integer({key}, 1, kLargestTowerImage); }
};

void read_layers(const Fields& f, VisionConfig& c, const std::string& hidden,
                 const std::string& heads, const std::string& layers) {
  c.hidden_dim = f.width(hidden);
  c.heads = f.width(heads);
  c.head_dim = f.tower.has("head_dim") ? f.width("head_dim")
                                       : head_dim_of(f.tower, hidden, c.hidden_dim, heads, c.heads);
  c.layers = f.tower.integer({layers}, 1, kMostLayers);
  const char* key = f.tower.has("hidden_act") ? "hidden_act" : "hidden_activation";
  c.activation = f.tower.optional_string({key}).value_or("gelu_pytorch_tanh");
  check_activation(f.tower, key, c.activation);
}

/// The fields of a vision transformer with transformers' usual names.
void read_vit(const Fields& f, VisionConfig& c) {
  read_layers(f, c, "hidden_size", "num_attention_heads", "num_hidden_layers");
  c.ffn_dim = f.width("intermediate_size");
  c.patch = f.side("patch_size");
  c.channels = f.side("num_channels");
  c.image = f.side("image_size");
}

/// Tokens of an image of a fixed size; throws if tokens do not divide it.
void check_grid(const JsonObject& json, const std::string& key, const VisionConfig& c) {
  if (c.image < c.token_side() || c.image % c.token_side() != 0)
    json.fail(key, fmt::format("an image of {} pixels is not a whole number of tokens of {} x {}",
                               c.image, c.token_side(), c.token_side()));
}

/// Numbers of layers.
std::vector<int64_t> layer_list(const Fields& f, const VisionConfig& c, const std::string& key) {
  return f.tower.has(key) && !f.tower.json()[key].empty() ? integers(f.tower, key, 0, c.layers - 1)
                                                          : std::vector<int64_t>();
}

// Qwen2-VL, 2.5 and 3, and Qwen3.5: images of any size, patches in pairs of frames.
void read_qwen(const Fields& f, VisionConfig& c, const std::string& hidden) {
  read_layers(f, c, hidden, "num_heads", "depth");
  c.patch = f.side("patch_size");
  c.channels =
      f.tower.optional_integer({"in_channels", "in_chans"}, 1, kLargestTowerImage).value_or(3);
  c.frames = f.side("temporal_patch_size");
  c.side_merged = f.side("spatial_merge_size");
  c.merge_dim = c.hidden_dim * c.side_merged * c.side_merged;
  c.whole_image = false;
  c.rotary = true;
}

void read_qwen2(const Fields& f, VisionConfig& c) {
  read_qwen(f, c, "embed_dim");
  c.ffn_dim =
      static_cast<int64_t>(static_cast<double>(c.hidden_dim) * factor(f.tower, "mlp_ratio", 4));
  c.out_dim = f.width("hidden_size");
  c.patch_bias = false;
}

void read_qwen2_5(const Fields& f, VisionConfig& c) {
  read_qwen(f, c, "hidden_size");
  c.ffn_dim = f.width("intermediate_size");
  c.out_dim = f.width("out_hidden_size");
  c.norm = TowerNorm::kRms;
  c.gated_mlp = true;
  c.patch_bias = false;
  // Whole tokens, as Qwen2_5_VLVisionTransformer cuts them.
  c.window = f.side("window_size") / c.token_side() * c.side_merged;
  if (c.window == 0)
    f.tower.fail("window_size", fmt::format("expected {} pixels or more", c.token_side()));
  c.full_layers = layer_list(f, c, "fullatt_block_indexes");
}

void read_qwen3(const Fields& f, VisionConfig& c) {
  read_qwen(f, c, "hidden_size");
  c.ffn_dim = f.width("intermediate_size");
  c.out_dim = f.width("out_hidden_size");
  c.positions = TowerPositions::kInterpolated;
  c.position_rows = f.tower.integer({"num_position_embeddings"}, 1, kLargestConfigSize);
  c.taps = layer_list(f, c, "deepstack_visual_indexes");
}

// Published configs have transformers' names with a prefix.
void read_kimi(const Fields& f, VisionConfig& c) {
  const auto either = [&](const std::string& name) {
    return f.tower.has("vt_" + name) ? "vt_" + name : name;
  };
  read_layers(f, c, either("hidden_size"), either("num_attention_heads"),
              either("num_hidden_layers"));
  c.ffn_dim = f.width(either("intermediate_size"));
  c.patch = f.side("patch_size");
  const std::vector<int64_t> merged = integers(f.tower, "merge_kernel_size", 1, kLargestTowerImage);
  if (merged.size() != 2 || merged[0] != merged[1])
    f.tower.fail("merge_kernel_size", "expected two equal numbers");
  c.side_merged = merged[0];
  const auto rows = [&](const std::string& name) {
    return f.side(f.tower.has("init_" + name) ? "init_" + name : name);
  };
  c.positions = TowerPositions::kInterpolated;
  c.position_rows = rows("pos_emb_height") * rows("pos_emb_width");
  c.rotary = c.final_norm = true;
  c.merge_dim = c.hidden_dim * c.side_merged * c.side_merged;
  c.out_dim = f.text_dim;
  c.resize = Resize::kUp;
}

// SigLIP; all images have one size.
void read_gemma3(const Fields& f, VisionConfig& c) {
  read_vit(f, c);
  const int64_t tokens =
      f.outer.optional_integer({"mm_tokens_per_image"}, 1, kLargestConfigSize).value_or(256);
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
  c.side_merged = std::max<int64_t>(1, c.image / c.patch / side);
  if (side * side != tokens || c.image / c.patch != c.side_merged * side)
    f.outer.fail("mm_tokens_per_image",
                 fmt::format("{} tokens do not divide the {} x {} patches of an image", tokens,
                             c.image / c.patch, c.image / c.patch));
  c.positions = TowerPositions::kTable;
  c.final_norm = true;
  c.pooling_head = f.tower.boolean("vision_use_head", true);
  c.merge = Merge::kPool;
  c.out_dim = f.text_dim;
  c.resize = Resize::kFixed;
  c.image = c.image / c.patch * c.patch;
}

// The processor scales each image to as many patches as give the most tokens.
void read_gemma4(const Fields& f, VisionConfig& c) {
  read_layers(f, c, "hidden_size", "num_attention_heads", "num_hidden_layers");
  if (f.width("num_key_value_heads") != c.heads)
    f.tower.fail("num_key_value_heads", "expected as many as 'num_attention_heads'");
  c.ffn_dim = f.width("intermediate_size");
  c.patch = f.side("patch_size");
  c.side_merged = f.side("pooling_kernel_size");
  c.position_rows = f.tower.integer({"position_embedding_size"}, 1, kLargestConfigSize);
  c.positions = TowerPositions::kAxes;
  c.norm = TowerNorm::kRms;
  c.gated_mlp = c.post_norms = c.qk_norm = c.rotary = true;
  c.bias = f.tower.boolean("attention_bias", false);
  c.whole_image = c.patch_bias = c.merge_norm_weight = false;
  c.merge = Merge::kPool;
  c.out_dim = f.text_dim;
  c.resize = Resize::kFixed;
  const int64_t tokens =
      f.outer.optional_integer({"vision_soft_tokens_per_image"}, 1, kLargestWidth).value_or(280);
  // Gemma4ImageProcessor, get_aspect_ratio_preserving_size: a multiple of a token's pixels.
  c.image = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens))) * c.token_side();
}

// Tiles of one size; neighbours are merged by a pixel shuffle.
void read_llama4(const Fields& f, VisionConfig& c) {
  read_vit(f, c);
  const double ratio = f.tower.number("pixel_shuffle_ratio");
  if (!(ratio > 0.01 && ratio <= 1) || std::round(1 / ratio) != 1 / ratio)
    f.tower.fail("pixel_shuffle_ratio", "expected 1 divided by a whole number up to 100");
  c.side_merged = static_cast<int64_t>(1 / ratio);
  check_grid(f.tower, "image_size", c);
  c.merge_dim = f.width("projector_input_dim");
  for (const char* key : {"projector_output_dim", "vision_output_dim"}) {
    if (f.width(key) != c.merge_dim)
      f.tower.fail(key, fmt::format("expected {}, the 'projector_input_dim'; found {}", c.merge_dim,
                                    f.width(key)));
  }
  if (const int64_t wide = c.hidden_dim * c.side_merged * c.side_merged; wide != c.ffn_dim)
    f.tower.fail(
        "intermediate_size",
        fmt::format("expected {}, the width of merged patches; found {}", wide, c.ffn_dim));
  c.class_token = c.embedding_norm = c.final_norm = c.rotary = true;
  c.patch_bias = false;
  c.positions = TowerPositions::kTable;
  c.merge = Merge::kShuffle;
  c.out_dim = f.text_dim;
  c.resize = Resize::kTiles;
  c.most_tiles = 16;  // max_patches of Llama4ImageProcessor
}

// Pixtral.
void read_mistral3(const Fields& f, VisionConfig& c) {
  read_vit(f, c);
  c.side_merged =
      f.outer.optional_integer({"spatial_merge_size"}, 1, kLargestTowerImage).value_or(2);
  c.norm = TowerNorm::kRms;
  c.gated_mlp = c.rotary = c.embedding_norm = true;
  c.bias = c.patch_bias = false;
  c.merge = Merge::kPixtral;
  c.merge_dim = c.out_dim = f.text_dim;
  c.merge_bias = f.outer.boolean("multimodal_projector_bias", false);
  c.resize = Resize::kUp;
}

/// A family of multimodal models by the type of its config, and the defaults of its tower's fields.
struct TowerFamily {
  std::string_view model_type, defaults;
  void (*read)(const Fields&, VisionConfig&);
  /// Types of `vision_config` that are read; "": any.
  std::string_view tower_type = "";
};

constexpr std::string_view kQwen3Vl =
    R"({"depth": 27, "hidden_size": 1152, "hidden_act": "gelu_pytorch_tanh", "intermediate_size": 4304,
         "num_heads": 16, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
         "out_hidden_size": 3584, "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]})";
constexpr std::string_view kQwen3_5 =
    R"({"depth": 27, "hidden_size": 1152, "hidden_act": "gelu_pytorch_tanh", "intermediate_size": 4304,
         "num_heads": 16, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
         "out_hidden_size": 3584, "num_position_embeddings": 2304})";

constexpr TowerFamily kTowerFamilies[] = {
    {"qwen2_vl",
     R"({"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "hidden_act": "quick_gelu", "mlp_ratio": 4,
         "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2})",
     read_qwen2},
    {"qwen2_5_vl",
     R"({"depth": 32, "hidden_size": 3584, "hidden_act": "silu", "intermediate_size": 3420, "num_heads": 16,
         "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112,
         "out_hidden_size": 3584, "fullatt_block_indexes": [7, 15, 23, 31]})",
     read_qwen2_5},
    {"qwen3_vl", kQwen3Vl, read_qwen3},
    {"qwen3_vl_moe", kQwen3Vl, read_qwen3},
    {"qwen3_5", kQwen3_5, read_qwen3},
    {"qwen3_5_moe", kQwen3_5, read_qwen3},
    {"kimi_k25",
     R"({"hidden_size": 1152, "hidden_act": "gelu_pytorch_tanh", "intermediate_size": 4304,
         "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "merge_kernel_size": [2, 2],
         "pos_emb_height": 64, "pos_emb_width": 64})",
     read_kimi},
    // Image and patch as published: transformers' defaults do not give 256 tokens.
    {"gemma3",
     R"({"hidden_size": 768, "hidden_act": "gelu_pytorch_tanh", "intermediate_size": 3072,
         "num_attention_heads": 12, "num_hidden_layers": 12, "num_channels": 3, "image_size": 896,
         "patch_size": 14})",
     read_gemma3},
    {"gemma4",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 16,
         "num_key_value_heads": 12, "head_dim": 64, "patch_size": 16, "pooling_kernel_size": 3,
         "position_embedding_size": 10240})",
     read_gemma4},
    {"llama4",
     R"({"hidden_size": 768, "hidden_act": "gelu", "intermediate_size": 5632, "num_attention_heads": 16,
         "num_hidden_layers": 34, "num_channels": 3, "image_size": 448, "patch_size": 14,
         "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096, "projector_output_dim": 4096,
         "vision_output_dim": 7680})",
     read_llama4},
    {"mistral3",
     R"({"hidden_size": 1024, "hidden_act": "gelu", "intermediate_size": 4096, "num_attention_heads": 16,
         "num_hidden_layers": 24, "num_channels": 3, "image_size": 1540, "patch_size": 14})",
     read_mistral3, "pixtral"},
};

}  // namespace

std::optional<VisionTower> read_vision_tower(const JsonObject& config, int64_t text_dim) {
  const std::string type = config.optional_string({"model_type"}).value_or("");
  const auto* family =
      std::find_if(std::begin(kTowerFamilies), std::end(kTowerFamilies),
                   [&](const TowerFamily& known) { return known.model_type == type; });
  if (family == std::end(kTowerFamilies)) return std::nullopt;
  const JsonObject given = config.object("vision_config");
  if (given.json().empty()) return std::nullopt;
  if (!family->tower_type.empty() &&
      given.optional_string({"model_type"}).value_or("") != family->tower_type)
    return std::nullopt;
  Json fields = parse_json(family->defaults, "defaults");
  for (const auto& item : given.json().items()) {
    if (!item.value().is_null()) fields[item.key()] = item.value();
  }
  VisionConfig tower;
  family->read({JsonObject(fields, given.where()), config, text_dim}, tower);
  VisionTower made = make_vision_tower(tower);
  made.text_dim = text_dim;
  return made;
}

}  // namespace tilecast
