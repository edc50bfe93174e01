// Calibrations of any content are read whole or refused with an Error that is not a bug.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/predictor.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tilecast::Device device = tilecast::find_device("L40S");
  static tilecast::Weights weights = tilecast::load_weights("");
  static const std::vector<tilecast::Kernel> kernels = tilecast::kernels_of_sizes(
      "softmax", tilecast::DType::kFp32, {{"rows", 512}, {"columns", 512}});
  try {
    weights.calibration =
        tilecast::parse_calibration({reinterpret_cast<const char*>(data), size}, "c");
    std::vector<tilecast::KernelTime> times(kernels.size());
    tilecast::make_learned_predictor(weights)->predict(kernels, device, {}, times);
    if (!std::isfinite(times[0].seconds)) std::abort();
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
