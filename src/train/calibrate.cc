#include "train/calibrate.h"

#include "base/file.h"
#include "devices/registry.h"
#include "train/calibration_data.h"
#include "train/calibration_fit.h"

namespace tilecast {

CalibrateResult calibrate(const CalibrateOptions& options) { return calibrate_with(options, {}); }

CalibrateResult calibrate_with(const CalibrateOptions& options, std::vector<MeasurementSet> read) {
  const Device device = find_device(options.gpu);
  const Weights weights = load_weights(options.weights_folder);
  const CalibrationData data =
      read_calibration_data(options.measurements, device, options.gpu, weights, std::move(read));
  const Calibration calibration = fit_calibration(weights, device, data.rows);
  write_file(options.output, serialize_calibration(calibration));
  CalibrateResult result{.gpu = calibration.gpu, .kinds = {}, .warnings = device.warnings};
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const KindCalibration& model = calibration.models[n];
    result.kinds.push_back({std::string(kernel_kind_name(static_cast<KernelKind>(n))), model.rows,
                            model.error_before_percent, model.error_after_percent});
  }
  result.warnings.insert(result.warnings.end(), data.report.begin(), data.report.end());
  return result;
}

}  // namespace tilecast
