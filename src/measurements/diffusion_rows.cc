#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "measurements/layouts.h"

// Batches of images and videos of diffusion pipelines (docs/reference/measurements.md): each row
// becomes the options of a forecast.

namespace tilecast {
namespace {

/// Pipelines that are bundled, by the repository of their weights.
constexpr std::pair<std::string_view, const char*> kPipelineNames[] = {
    {"Efficient-Large-Model/SANA1.5_1.6B_1024px_diffusers", "sana1.5-1.6b"},
    {"Efficient-Large-Model/SANA1.5_4.8B_1024px_diffusers", "sana1.5-4.8b"},
    {"PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", "pixart-sigma"},
    {"Tencent-Hunyuan/HunyuanDiT-v1.2-Diffusers", "hunyuandit-v1.2"},
    {"black-forest-labs/FLUX.1-dev", "flux.1-dev"},
    {"stabilityai/stable-diffusion-3.5-medium", "sd3.5-medium"},
    {"stabilityai/stable-diffusion-3.5-large", "sd3.5-large"},
    {"Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "wan2.1-t2v-1.3b"},
    {"Wan-AI/Wan2.1-T2V-14B-Diffusers", "wan2.1-t2v-14b"},
    {"hunyuanvideo-community/HunyuanVideo", "hunyuanvideo"},
    {"zai-org/CogVideoX-2b", "cogvideox-2b"},
    {"zai-org/CogVideoX1.5-5B", "cogvideox1.5-5b"}};

void read_batches(const CsvTable& table, Collector& collector) {
  const auto text = [&](size_t row, std::string_view column) -> const std::string& {
    return table.rows[row][table.require_column(column)];
  };
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::string& id = text(row, "model_id");
    const auto* const found = std::find_if(std::begin(kPipelineNames), std::end(kPipelineNames),
                                           [&](const auto& entry) { return entry.first == id; });
    if (found == std::end(kPipelineNames)) {
      collector.skip(table.where, fmt::format("no bundled pipeline is '{}'", shown_name(id)));
      continue;
    }
    if (text(row, "weight_precision") != "bfloat16") {
      collector.skip(table.where, fmt::format("weights in '{}' are not forecast",
                                              shown_name(text(row, "weight_precision"))));
      continue;
    }
    ModelMeasurement m;
    m.gpu = text(row, "gpu");
    m.model = found->second;
    m.mode = "inference";
    m.batch = table.integer(row, table.require_column("batch"));
    m.dtype = "bf16";
    m.measured_s = table.number(row, table.require_column("batch_latency_s"));
    m.source = table.where;
    m.option = text(row, "gpus") == "1" ? "1 GPU" : text(row, "gpus") + " GPUs";
    // xDiT 0.4.5 (2025) calls FlashAttention 2, as PyTorch before 2.10 does.
    m.options = {{"dtype", "bf16"},
                 {"software-version", "2.8"},
                 {"batch", text(row, "batch")},
                 {"steps", text(row, "steps")},
                 {"height", text(row, "height")},
                 {"width", text(row, "width")},
                 {"ulysses-degree", text(row, "ulysses_degree")},
                 {"ring-degree", text(row, "ring_degree")}};
    for (const char* of_video : {"frames", "fps"}) {
      if (!text(row, of_video).empty()) m.options.emplace_back(of_video, text(row, of_video));
    }
    collector.add_model(std::move(m));
  }
}

}  // namespace

extern const LayoutDef kDiffusionLayout;

const LayoutDef kDiffusionLayout = {
    "diffusion",
    {"model_id", "ulysses_degree", "ring_degree", "steps", "batch_latency_s"},
    read_batches};

}  // namespace tilecast
