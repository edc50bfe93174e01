#pragma once

#include <optional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "measurements/measurements.h"
#include "predict/features.h"
#include "predict/weights.h"

namespace tilecast {

/// One row to learn from: a kernel's own time on a known device.
struct TrainingRow {
  Kernel kernel;
  Conditions conditions;
  size_t device = 0;  ///< index into TrainingData::devices
  /// Index into TrainingData::at_clocks, for a row whose conditions state a clock.
  std::optional<size_t> at_clock;
  size_t group = 0;    ///< index into TrainingData::groups
  double seconds = 0;  ///< call overhead taken off
  float weight = 1;
  std::string algorithm;  ///< see KernelMeasurement
  bool assumed = false;   ///< `seconds` is not measured: no error is computed of the row
};

/// Rows that share GPU, operator and file: taken on one day on one card.
struct RowGroup {
  size_t device = 0;
  std::string op;
  std::string source;
  double call_overhead_s = 0;
  size_t count = 0;
};

struct TrainingData {
  std::vector<Device> devices;
  /// Devices at the clocks of rows that were measured at another one than the boost clock.
  std::vector<Device> at_clocks;
  std::vector<RowGroup> groups;
  std::vector<TrainingRow> rows;
  LawConstants laws = bundled_laws();
  std::vector<std::string> report;  ///< what was left out or changed, and why
  uint64_t hash = 0;                ///< of all rows, for provenance

  /// The device as it ran when the row was measured: for bounds and features.
  const Device& running(const TrainingRow& row) const {
    return row.at_clock ? at_clocks[*row.at_clock] : devices[row.device];
  }
  /// The law's time of a row.
  double law_s(const TrainingRow& row) const;
};

/// Resolves GPUs, takes the host's call overhead off single calls, reconciles files of one card
/// that contradict each other. `exclude` are GPU ids or aliases. A few rows may all be far above
/// their overhead; where weights are `known`, it is at most what their machines show.
TrainingData prepare_training_data(const std::vector<MeasurementSet>& sets,
                                   const std::vector<std::string>& exclude,
                                   const Weights* known = nullptr,
                                   const LawConstants& laws = bundled_laws());

}  // namespace tilecast
