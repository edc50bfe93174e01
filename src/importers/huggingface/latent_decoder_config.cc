// The classes of autoencoders, their configs and tiles (diffusers, models/autoencoders).

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "importers/huggingface/latent_decoder.h"

namespace tilecast {
namespace {

constexpr int64_t kMostBlocks = 16, kMostBlockLayers = 64;

int64_t whole(const JsonObject& c, const char* key, int64_t otherwise) {
  return c.optional_integer({key}, 1, kLargestConfigSize).value_or(otherwise);
}

/// `block_out_channels` from the largest image to the smallest; the decoder begins at the last.
LatentDecoderConfig read_blocks(const JsonObject& c, int64_t layers) {
  LatentDecoderConfig d;
  d.channels = integers(c, "block_out_channels", 1, kLargestConfigSize);
  if (d.channels.empty() || static_cast<int64_t>(d.channels.size()) > kMostBlocks)
    c.fail("block_out_channels", fmt::format("expected 1 to {} blocks", kMostBlocks));
  std::reverse(d.channels.begin(), d.channels.end());
  d.latents = c.integer({"latent_channels"}, 1, kLargestConfigSize);
  d.out = whole(c, "out_channels", 3);
  d.groups = whole(c, "norm_num_groups", 32);
  for (const int64_t channels : d.channels) {
    if (channels % d.groups != 0)
      c.fail("norm_num_groups",
             fmt::format("{} groups do not divide {} channels", d.groups, channels));
  }
  d.layers.assign(
      d.channels.size(),
      c.optional_integer({"layers_per_block"}, 1, kMostBlockLayers).value_or(layers) + 1);
  d.grows_in_time.assign(d.channels.size(), false);
  return d;
}

LatentDecoderConfig read_kl(const JsonObject& c) {
  LatentDecoderConfig d = read_blocks(c, 1);
  d.quant_conv = c.boolean("use_post_quant_conv", true);
  d.mid_attention = c.boolean("mid_block_add_attention", true);
  return d;
}

LatentDecoderConfig read_dc(const JsonObject& c) {
  LatentDecoderConfig d;
  d.channels = integers(c, "decoder_block_out_channels", 1, kLargestConfigSize);
  d.layers = integers_like(c, "decoder_layers_per_block", "decoder_block_out_channels",
                           d.channels.size(), kMostBlockLayers);
  const std::vector<std::string> types = c.strings("decoder_block_types");
  if (d.channels.empty() || types.size() != d.channels.size())
    c.fail("decoder_block_types", "expected as many as decoder_block_out_channels");
  for (const std::string& type : types) d.attends.push_back(type == "EfficientViTBlock");
  std::reverse(d.channels.begin(), d.channels.end());
  std::reverse(d.layers.begin(), d.layers.end());
  std::reverse(d.attends.begin(), d.attends.end());
  d.latents = c.integer({"latent_channels"}, 1, kLargestConfigSize);
  d.out = whole(c, "in_channels", 3);
  d.head_dim = whole(c, "attention_head_dim", 32);
  return d;
}

LatentDecoderConfig read_wan_decoder(const JsonObject& c) {
  // Wan 2.2 TI2V has both.
  if (c.boolean("is_residual", false))
    c.fail("is_residual", "decoders with residual blocks are not supported; expected false");
  if (c.has("patch_size"))
    c.fail("patch_size", "decoders of patches of pixels are not supported; expected none");
  LatentDecoderConfig d;
  const int64_t encoder_base = c.integer({"base_dim"}, 2, 1 << 16);
  const int64_t base = c.optional_integer({"decoder_base_dim"}, 2, 1 << 16).value_or(encoder_base);
  d.channels = integers(c, "dim_mult", 1, 1 << 10);
  if (d.channels.empty()) c.fail("dim_mult", "expected a number for each block");
  std::reverse(d.channels.begin(), d.channels.end());
  for (int64_t& channels : d.channels) channels *= base;
  d.layers.assign(d.channels.size(),
                  c.optional_integer({"num_res_blocks"}, 1, kMostBlockLayers).value_or(2) + 1);
  const Json& times = c.json()["temperal_downsample"];
  if (!times.is_array() || times.size() + 1 != d.channels.size())
    c.fail("temperal_downsample", "expected true or false for each block but one");
  for (auto it = times.rbegin(); it != times.rend(); ++it)
    d.grows_in_time.push_back(it->is_boolean() && it->get<bool>());
  d.latents = c.integer({"z_dim"}, 1, kLargestConfigSize);
  d.out = whole(c, "out_channels", 3);
  d.tile_height = d.tile_width = 32;  // tile_sample_min_height 256
  return d;
}

LatentDecoderConfig read_cogvideox_vae(const JsonObject& c) {
  LatentDecoderConfig d = read_blocks(c, 3);
  d.mid_attention = false;
  for (size_t i = 0; i < 2 && i < d.channels.size(); ++i) d.grows_in_time[i] = true;
  // Half of sample_height and sample_width.
  d.tile_height = whole(c, "sample_height", 480) / 16;
  d.tile_width = whole(c, "sample_width", 720) / 16;
  return d;
}

LatentDecoderConfig read_hunyuan_vae(const JsonObject& c) {
  LatentDecoderConfig d = read_blocks(c, 2);
  d.quant_conv = true;
  d.mid_attention = c.boolean("mid_block_add_attention", true);
  const size_t blocks = d.channels.size();
  for (size_t i = 0; i < blocks; ++i) d.grows_in_time[i] = i + 3 >= blocks && i + 1 < blocks;
  d.tile_height = d.tile_width = 32;  // tile_sample_min_height 256
  return d;
}

/// How many tiles have which length: they begin every `stride` and have `tile` at most.
std::map<int64_t, int64_t> tiles_of(int64_t length, int64_t tile, int64_t stride) {
  std::map<int64_t, int64_t> counts;
  for (int64_t at = 0; at < length; at += stride) ++counts[std::min(tile, length - at)];
  return counts;
}

struct Strides {
  int64_t height = 1, width = 1;
};

/// `times`: frames of a run, and how many runs have them.
std::vector<TileRuns> in_tiles(const LatentDecoderConfig& c, const LatentTile& whole_batch,
                               const Strides& strides, const std::vector<TileRuns>& times) {
  const bool tiled = whole_batch.height > c.tile_height || whole_batch.width > c.tile_width;
  const std::map<int64_t, int64_t> untiled_height = {{whole_batch.height, 1}},
                                   untiled_width = {{whole_batch.width, 1}};
  std::vector<TileRuns> all;
  for (const auto& [height, rows] :
       tiled ? tiles_of(whole_batch.height, c.tile_height, strides.height) : untiled_height) {
    for (const auto& [width, columns] :
         tiled ? tiles_of(whole_batch.width, c.tile_width, strides.width) : untiled_width) {
      for (const TileRuns& time : times)
        all.push_back({{1, time.tile.frames, height, width, time.tile.first},
                       checked_product({whole_batch.samples, rows, columns, time.runs})});
    }
  }
  return all;
}

std::vector<TileRuns> at_once(const LatentDecoderConfig&, const LatentTile& whole_batch) {
  return {{whole_batch, 1}};
}

std::vector<TileRuns> runs_of_wan(const LatentDecoderConfig& c, const LatentTile& all) {
  std::vector<TileRuns> times = {{{.frames = 1, .first = true}, 1}};
  if (all.frames > 1) times.push_back({{.frames = 1, .first = false}, all.frames - 1});
  constexpr int64_t kStride = 192 / 8;  // tile_sample_stride_height
  return in_tiles(c, all, {kStride, kStride}, times);
}

std::vector<TileRuns> runs_of_cogvideox(const LatentDecoderConfig& c, const LatentTile& all) {
  constexpr int64_t kFrames = 2;  // num_latent_frames_batch_size
  // The rest is in the first run.
  const int64_t chunks = std::max<int64_t>(1, all.frames / kFrames);
  std::vector<TileRuns> times = {{{.frames = std::min(all.frames, kFrames + all.frames % kFrames),
                                   .first = all.frames % kFrames != 0},
                                  1}};
  if (chunks > 1) times.push_back({{.frames = kFrames, .first = false}, chunks - 1});
  // tile_overlap_factor_height 1/6, tile_overlap_factor_width 1/5
  return in_tiles(
      c, all,
      {std::max<int64_t>(1, c.tile_height * 5 / 6), std::max<int64_t>(1, c.tile_width * 4 / 5)},
      times);
}

std::vector<TileRuns> runs_of_hunyuan(const LatentDecoderConfig& c, const LatentTile& all) {
  constexpr int64_t kFrames = 16 / 4, kEvery = 12 / 4, kStride = 192 / 8;
  std::vector<TileRuns> times;
  if (all.frames <= kFrames) {
    times.push_back({{.frames = all.frames}, 1});
  } else {
    for (const auto& [frames, runs] : tiles_of(all.frames, kFrames + 1, kEvery))
      times.push_back({{.frames = frames}, runs});
  }
  return in_tiles(c, all, {kStride, kStride}, times);
}

}  // namespace

const std::vector<LatentDecoderDef>& latent_decoders() {
  static const std::vector<LatentDecoderDef> table = {
      {"AutoencoderKL", 1, false, read_kl, build_kl_decoder, at_once},
      {"AutoencoderDC", 1, false, read_dc, build_dc_decoder, at_once},
      // The model cards of Wan2.1 load the autoencoder with torch_dtype=torch.float32.
      {"AutoencoderKLWan", 4, true, read_wan_decoder, build_wan_decoder, runs_of_wan},
      {"AutoencoderKLCogVideoX", 4, false, read_cogvideox_vae, build_cogvideox_decoder,
       runs_of_cogvideox},
      {"AutoencoderKLHunyuanVideo", 4, false, read_hunyuan_vae, build_hunyuan_decoder,
       runs_of_hunyuan}};
  return table;
}

const LatentDecoderDef* find_latent_decoder(std::string_view class_name) {
  const auto found =
      std::find_if(latent_decoders().begin(), latent_decoders().end(),
                   [&](const LatentDecoderDef& def) { return def.class_name == class_name; });
  return found == latent_decoders().end() ? nullptr : &*found;
}

int64_t pixels_of_latent(const LatentDecoderConfig& config) {
  return int64_t{1} << (config.channels.size() - 1);
}

}  // namespace tilecast
