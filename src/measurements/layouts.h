#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/csv.h"
#include "measurements/measurements.h"
#include "ops/sizes.h"

namespace tilecast {

/// The fields of a measurement other than its kernel.
struct RowFacts {
  std::string gpu;
  double seconds = 0;
  Protocol protocol = Protocol::kBackToBack;
  std::optional<Tile> tile;
  Software software{};
  Caches caches = Caches::kCold;
  std::optional<double> clock_hz;  ///< see Conditions
  bool half_sums = false;          ///< see Conditions
  bool scalar_rows = false;        ///< see Conditions
  std::string algorithm;           ///< see KernelMeasurement
  std::string label;               ///< name of its group in tables of errors; "": its operator
  std::string label_note;          ///< appended to the label
};

/// Where a measurement stands, for messages.
struct CsvRow {
  const CsvTable& table;
  size_t index;
};

/// Collects the measurements that the readers of layouts find.
class Collector {
 public:
  Collector(MeasurementSet& set, Untimed untimed) : set_(set), untimed_(untimed) {}

  bool keeps_untimed() const { return untimed_ == Untimed::kKeep; }

  /// Sets the file of the rows that are added from now on.
  void start_source(const std::string& path);
  /// Throws Error{kInput} that names the row for sizes that the operator does not take. Skips times
  /// that are not above 0, but for one of 0 where untimed rows are kept.
  void add_kernel(const CsvRow& row, std::string_view op, DType dtype, const SizeList& sizes,
                  RowFacts facts);
  /// Skips times that are not above 0.
  void add_collective(const CsvTable& table, CollectiveMeasurement measurement);
  void add_model(ModelMeasurement measurement);
  /// Lists a row that cannot be used; equal lines are listed once with their number.
  void skip(const std::string& what, const std::string& why);

 private:
  struct Skipped {
    size_t index;  ///< into MeasurementSet::unmatched
    size_t rows;
  };
  MeasurementSet& set_;
  const Untimed untimed_;
  std::map<std::string, Skipped> skipped_;  ///< by line
  size_t source_ = 0;
};

/// One CSV layout: recognized by its columns.
struct LayoutDef {
  std::string_view name;
  std::vector<std::string_view> columns;  ///< a file with all of these columns has this layout
  void (*read)(const CsvTable& table, Collector& collector);
};

/// A whole-model label of the neusight data set: label/<GPU>/<model>-<inf|train>-….json. Files with
/// other names (e.g. configs) are skipped.
void read_neusight_label(const std::filesystem::path& path, Collector& collector);

}  // namespace tilecast
