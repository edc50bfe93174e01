#pragma once

// Decoders of the autoencoders of diffusers: latents to images or videos. Encoders do not run, so
// they are left out.

#include <string_view>
#include <vector>

#include "base/json.h"
#include "graph/graph.h"

namespace tilecast {

/// What a decoder computes in one run: latents of a batch, or of one tile.
struct LatentTile {
  int64_t samples = 1, frames = 1, height = 1, width = 1;
  bool first = true;     ///< it has the first frame, which is not repeated
  bool chunked = false;  ///< other frames follow, which read those that it keeps
  bool operator==(const LatentTile&) const = default;
};
struct TileRuns {
  LatentTile tile;
  int64_t runs = 1;
};

struct LatentDecoderConfig {
  std::vector<int64_t> channels;  ///< of the blocks, in the order of the decoder
  std::vector<int64_t> layers;    ///< of each block
  std::vector<bool> grows_in_time, attends;
  int64_t latents = 4, groups = 32, out = 3, head_dim = 32;
  bool quant_conv = false, mid_attention = true;
  int64_t tile_height = 0, tile_width = 0;  ///< of diffusers' tiles, in latents
};

/// A class of autoencoders.
struct LatentDecoderDef {
  std::string_view class_name;
  int64_t time_factor = 1;  ///< frames of each latent frame after the first
  bool wide = false;        ///< published examples load it in fp32; its products are in TF32
  LatentDecoderConfig (*read)(const JsonObject& config);
  void (*build)(Graph&, const LatentDecoderConfig&, const LatentTile&, DType);
  /// The runs that decode `whole`: videos with tiles and slices (enable_tiling, enable_slicing).
  std::vector<TileRuns> (*runs)(const LatentDecoderConfig&, const LatentTile& whole);
};
const std::vector<LatentDecoderDef>& latent_decoders();
/// nullptr if no class of autoencoders has this name.
const LatentDecoderDef* find_latent_decoder(std::string_view class_name);

void build_kl_decoder(Graph&, const LatentDecoderConfig&, const LatentTile&, DType);
void build_dc_decoder(Graph&, const LatentDecoderConfig&, const LatentTile&, DType);
void build_wan_decoder(Graph&, const LatentDecoderConfig&, const LatentTile&, DType);
void build_cogvideox_decoder(Graph&, const LatentDecoderConfig&, const LatentTile&, DType);
void build_hunyuan_decoder(Graph&, const LatentDecoderConfig&, const LatentTile&, DType);

/// Pixels of a latent's side.
int64_t pixels_of_latent(const LatentDecoderConfig& config);

}  // namespace tilecast
