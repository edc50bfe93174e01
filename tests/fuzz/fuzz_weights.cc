// Weights of any content are read whole or refused with an Error that is not a bug.

#include <cstdint>
#include <string_view>

#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/predictor.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tilecast::Device device = tilecast::find_device("V100");
  static const std::vector<tilecast::Kernel> kernels = tilecast::kernels_of_sizes(
      "linear", tilecast::DType::kFp32, {{"m", 512}, {"n", 512}, {"k", 512}});
  try {
    const tilecast::Weights weights =
        tilecast::parse_weights({reinterpret_cast<const char*>(data), size}, "w");
    std::vector<tilecast::KernelTime> times(kernels.size());
    tilecast::make_learned_predictor(weights)->predict(kernels, device, {}, times);
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
