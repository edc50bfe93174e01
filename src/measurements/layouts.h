#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/csv.h"
#include "measurements/measurements.h"
#include "ops/sizes.h"

namespace tilecast {

/// What a measurement row says beside its kernel.
struct RowFacts {
  std::string gpu;
  double seconds = 0;
  Protocol protocol = Protocol::kBackToBack;
  std::optional<Tile> tile;
  Software software = Software::kPyTorch;
  bool warm = false;       ///< see Caches
  std::string label;       ///< what the row counts under; "": its operator
  std::string label_note;  ///< goes behind it
};

/// Where the layouts' readers put what they find.
class Collector {
 public:
  explicit Collector(MeasurementSet& set) : set_(set) {}

  /// Rows added from now on come from this file.
  void start_source(const std::string& path);
  void add_kernel(const CsvTable& table, std::string_view op, DType dtype, const SizeList& sizes,
                  RowFacts facts);
  void add_model(ModelMeasurement measurement);
  /// Lists what can't be used; alike lines once, with their number.
  void skip(const std::string& what, const std::string& why);

 private:
  struct Skipped {
    size_t index;  ///< into MeasurementSet::unmatched
    size_t rows;
  };
  MeasurementSet& set_;
  std::map<std::string, Skipped> skipped_;  ///< by line
  size_t source_ = 0;
};

/// One CSV layout: recognized by its columns.
struct LayoutDef {
  std::string_view name;
  std::vector<std::string_view> columns;  ///< a file with all of them is of this layout
  void (*read)(const CsvTable& table, Collector& collector);
};

/// A whole-model label of the neusight data set: label/<GPU>/<model>-<inf|train>-….json. Files of
/// other names (configs and the like) are passed over.
void read_neusight_label(const std::filesystem::path& path, Collector& collector);

}  // namespace tilecast
