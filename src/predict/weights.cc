#include "predict/weights.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/file.h"
#include "tilecast/error.h"

namespace tilecast {

bool DeviceResidual::covers(const Combination& combination) const {
  return !tells_combinations() ||
         std::find(measured.begin(), measured.end(), combination) != measured.end();
}

const Forest* DeviceResidual::forest_of(Software software) const {
  // Its own, else the nearest: PyTorch, vLLM and SGLang share cuBLAS, FlashAttention and Triton, on
  // AMD devices rocBLAS; TensorRT-LLM has its own kernels.
  for (const Software near : {software, Software::kVllm, Software::kSglang, Software::kPyTorch,
                              Software::kRocBlas, Software::kTensorRtLlm, Software::kPipeWeave}) {
    for (const SoftwareForest& f : forests) {
      if (f.software == near) return &f.forest;
    }
  }
  return nullptr;
}

const TileTree* Weights::tiles_of(std::string_view vendor) const {
  for (const TileTree& tree : tiles) {
    if (tree.library == vendor) return &tree;
  }
  return tiles.empty() ? nullptr : &tiles.front();
}

Weights load_weights(const std::filesystem::path& folder) {
  if (!folder.empty()) {
    const std::filesystem::path path = folder / kWeightsFile;
    return parse_weights(read_file(path), path.string());
  }
  const std::vector<EmbeddedFile> files = embedded_files("weights/" + std::string(kWeightsFile));
  if (files.empty())
    throw Error(ErrorKind::kNotFound, "this build holds no weights; give a folder with `weights`");
  return parse_weights(files.front().content, "embedded weights", Checksum::kTrust);
}

}  // namespace tilecast
