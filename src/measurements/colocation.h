#pragma once

// Measured jobs that share a GPU.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"

namespace tilecast {

/// One job's view of a pair, or the job alone. Of a job beside its own copy there is one row.
struct PairMeasurement {
  std::string series;   ///< "": the table has one
  std::string gpu;      ///< as spelled in the source
  std::string job;      ///< "ResNet-18 16": model and batch
  std::string partner;  ///< "": the job is alone
  double alone_steps_per_s = 0, partner_alone_steps_per_s = 0;
  double steps_per_s = 0, partner_steps_per_s = 0;  ///< of a pair; 0 and 0: it did not run
  size_t line = 0;                                  ///< of the file

  bool is_alone() const { return partner.empty(); }
  bool ran() const { return steps_per_s > 0 && partner_steps_per_s > 0; }
};

/// A step of a job on a slice of a GPU, which it has for itself.
struct SliceMeasurement {
  std::string gpu, slice, job;
  double step_s = 0;
  size_t line = 0;
};

/// Columns of Gavel's co-location tables: gpu, model, batch, alone_steps_s, partner_model,
/// partner_batch, packed_steps_s, partner_packed_steps_s; series where there are several.
bool is_pair_table(const CsvTable& table);
/// Throws Error{kInput} naming the line for speeds that are not numbers of at least 0, for a pair
/// of which one job ran, and for jobs alone of speed 0.
std::vector<PairMeasurement> read_pairs(const CsvTable& table);

/// Columns of MISO's tables of slices: gpu, slice, model, batch, median_s.
bool is_slice_table(const CsvTable& table);
std::vector<SliceMeasurement> read_slices(const CsvTable& table);

/// A pair of named jobs that was measured: relative speeds, or steps a second where speeds alone
/// are known. The columns: job, partner, relative_speed, partner_relative_speed; or job, partner,
/// steps_per_s, partner_steps_per_s.
struct NamedPair {
  std::string job, partner;
  bool relative = true;  ///< else the speeds are steps a second
  double speed = 0, partner_speed = 0;
  size_t line = 0;
};
/// Throws Error{kInput} for a table without these columns, and for speeds that are not above 0.
std::vector<NamedPair> read_named_pairs(const CsvTable& table);

}  // namespace tilecast
