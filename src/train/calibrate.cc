#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/rng.h"
#include "devices/registry.h"
#include "tilecast/train.h"
#include "train/calibration_data.h"
#include "train/calibration_fit.h"

namespace tilecast {

CalibrateResult calibrate(const CalibrateOptions& options) {
  const Device device = find_device(options.gpu);
  const Weights weights = load_weights(options.weights_folder);
  const CalibrationData data =
      read_calibration_data(options.measurements, device, options.gpu, weights);
  const Calibration calibration = fit_calibration(weights, device, data.rows);
  write_file(options.output, serialize_calibration(calibration));
  CalibrateResult result{.gpu = calibration.gpu, .kinds = {}, .warnings = device.warnings};
  for (size_t n = 0; n < kNetCount; ++n) {
    const CalibrationNet& net = calibration.nets[n];
    result.kinds.push_back({std::string(net_name(static_cast<NetKind>(n))), net.rows,
                            net.error_before_percent, net.error_after_percent});
  }
  result.warnings.insert(result.warnings.end(), data.report.begin(), data.report.end());
  return result;
}

std::string suggest_kernels(const std::string& gpu, size_t count) {
  const Device device = find_device(gpu);
  Rng rng(1);
  // Log-uniform, in steps of 64 above 64: the sizes that models have.
  const auto size = [&](double low, double high) {
    const double x = low * std::pow(high / low, rng.uniform());
    const auto rounded = static_cast<int64_t>(x);
    return x < 64 ? rounded : (rounded + 32) / 64 * 64;
  };
  std::string csv = "gpu,op,dtype,batch,m,n,k,latency_s\n";
  for (size_t i = 0; i < count; ++i) {
    const auto line = [&](std::string_view op, int64_t batch, int64_t m, int64_t n, int64_t k) {
      csv += fmt::format("{},{},fp32,{},{},{},{},\n", device.id, op, batch, m, n, k);
    };
    switch (i % 10) {
      case 0:
      case 1:
      case 2:
      case 3:
        line("linear", 1, size(16, 16384), size(64, 16384), size(64, 16384));
        break;
      case 4:
      case 5:
      case 6:
        line("matmul", size(2, 256), size(64, 2048), size(64, 2048), size(32, 2048));
        break;
      case 7:
        line("add", 1, size(16, 16384), size(64, 8192), 1);
        break;
      case 8:
        line("softmax", 1, size(256, 65536), size(64, 4096), 1);
        break;
      default:
        line("layer_norm", 1, size(256, 65536), size(64, 8192), 1);
    }
  }
  return csv;
}

}  // namespace tilecast
