#pragma once

#include <cstdint>

#include "base/json.h"

namespace tilecast {

/// The vision tower of Qwen2.5-VL 7B as published, beside a language model of 1024 columns.
/// `wide_layers`: those that attend to the whole image.
inline Json qwen2_5_tower(int64_t layers = 32, const Json& wide_layers = {7, 15, 23, 31}) {
  return {{"depth", layers},        {"hidden_act", "silu"},
          {"hidden_size", 1280},    {"intermediate_size", 3420},
          {"num_heads", 16},        {"in_chans", 3},
          {"patch_size", 14},       {"spatial_merge_size", 2},
          {"window_size", 112},     {"fullatt_block_indexes", wide_layers},
          {"out_hidden_size", 1024}};
}

}  // namespace tilecast
