#include "train/calibration_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "devices/registry.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Whether a row's name means the device. A file of the user's own has an id that is not bundled.
bool means(const Device& device, const std::string& gpu, const std::string& name) {
  if (name == gpu || is_named(device, name)) return true;
  try {
    return find_device(name).id == device.id;
  } catch (const Error&) {
    return false;
  }
}

std::string counted(const std::map<std::string, size_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(fmt::format("{} ({})", name.empty() ? "no GPU" : shown_name(name), count));
  return join(parts, ", ");
}

/// Leaves only the device's rows, all under the one name that finds it.
void keep_own_rows(MeasurementSet& set, const std::string& path, const Device& device,
                   const std::string& gpu, std::vector<std::string>& report) {
  std::map<std::string, bool> own;
  std::map<std::string, size_t> others;
  std::vector<KernelMeasurement> kept;
  for (KernelMeasurement& m : set.kernels) {
    const auto [known, fresh] = own.emplace(m.gpu, false);
    if (fresh) known->second = means(device, gpu, m.gpu);
    if (known->second) {
      m.gpu = gpu;
      kept.push_back(std::move(m));
    } else {
      others[m.gpu] += 1;
    }
  }
  if (kept.empty() && !others.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: its rows are of {}, none is of {}, which --gpu names",
                            printable(path), counted(others), device.id));
  if (!others.empty())
    report.push_back(fmt::format("left out {}: rows of {}, which is not {}", printable(path),
                                 counted(others), device.id));
  set.kernels = std::move(kept);
}

}  // namespace

std::vector<KernelMeasurement> read_candidates(const std::string& path, const Device& device,
                                               const std::string& gpu) {
  MeasurementSet set = read_measurements(path, Untimed::kKeep);
  if (set.kernels.empty())
    throw Error(
        ErrorKind::kInput,
        fmt::format("{} holds no kernel{}{}; expected a CSV with the columns gpu, op, dtype "
                    "and sizes ('tilecast calibrate --suggest' writes one)",
                    printable(path), set.unmatched.empty() ? "" : ": ", join(set.unmatched, "; ")));
  std::vector<std::string> report;
  keep_own_rows(set, path, device, gpu, report);
  return std::move(set.kernels);
}

CalibrationData read_calibration_data(const std::vector<std::string>& paths, const Device& device,
                                      const std::string& gpu, const Weights& weights,
                                      std::vector<MeasurementSet> read) {
  std::vector<MeasurementSet> sets = std::move(read);
  CalibrationData result;
  for (const std::string& path : paths) {
    MeasurementSet set = read_measurements(path);
    if (set.kernels.empty())
      throw Error(
          ErrorKind::kInput,
          fmt::format("{} holds no measured kernel{}{}; expected a CSV with the columns gpu, op, "
                      "dtype, latency_s and sizes ('tilecast calibrate --suggest' writes one)",
                      printable(path), set.unmatched.empty() ? "" : ": ",
                      join(set.unmatched, "; ")));
    keep_own_rows(set, path, device, gpu, result.report);
    sets.push_back(std::move(set));
  }
  const TrainingData data = prepare_training_data(sets, {}, &weights);
  result.rows = data.rows;
  result.report.insert(result.report.end(), data.report.begin(), data.report.end());
  return result;
}

}  // namespace tilecast
