#include "predict/weights.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/file.h"
#include "tilecast/error.h"

namespace tilecast {

KernelClass class_of(const Device& device) {
  return {device.gpu().architecture, is_hbm(device.gpu().memory_type)};
}

bool MeasuredDevice::covers(const Combination& combination) const {
  return std::find(measured.begin(), measured.end(), combination) != measured.end();
}

bool ClassResidual::covers(const Combination& combination) const {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const MeasuredDevice& device) { return device.covers(combination); });
}

const SoftwareForest* ClassResidual::forest_of(Software software, bool libraries,
                                               bool apart) const {
  const auto own = [&](Software of) -> const SoftwareForest* {
    const auto found = std::find_if(forests.begin(), forests.end(),
                                    [of](const SoftwareForest& f) { return f.software == of; });
    return found == forests.end() ? nullptr : &*found;
  };
  if (const SoftwareForest* found = own(measured_kernels(software))) return found;
  // Else the nearest: PyTorch, vLLM and SGLang share cuBLAS, FlashAttention and Triton, on AMD
  // devices rocBLAS; TensorRT-LLM has its own kernels.
  for (const Software near : stand_ins()) {
    const SoftwareDef& def = software_def(near);
    if (!def.runs_models && !libraries) continue;
    if (apart && def.traits.has_row_blocks != traits_of(software).has_row_blocks) continue;
    if (const SoftwareForest* found = own(near)) return found;
  }
  return nullptr;
}

Weights load_weights(const std::filesystem::path& folder) {
  if (!folder.empty()) {
    const std::filesystem::path path = folder / kWeightsFile;
    Weights weights = parse_weights(read_file(path), path.string());
    weights.laws = load_laws(folder / "laws");
    return weights;
  }
  const std::vector<EmbeddedFile> files = embedded_files("weights/" + std::string(kWeightsFile));
  if (files.empty())
    throw Error(ErrorKind::kNotFound, "this build holds no weights; give a folder with `weights`");
  return parse_weights(files.front().content, "embedded weights", Checksum::kTrust);
}

}  // namespace tilecast
