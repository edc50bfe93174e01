#pragma once

// The rows of a sweep's file: the values of a point, then its results. CSV, or a JSON object in
// each line.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "many/job_table.h"
#include "many/resumable_lines.h"
#include "many/sweep_spec.h"

namespace tilecast {

/// A result that rows have.
struct SweepField {
  enum class Better : uint8_t { kNeither, kLess, kMore };
  std::string_view name, unit;
  Better better = Better::kNeither;
  std::string_view other_name;  ///< of a field of the front: "time"
};

/// All of them; the last one is the error.
std::span<const SweepField> sweep_fields();

/// Throws Error{kInput} for a path whose ending names another format than rows have.
void check_sweep_output(const std::string& path);

class SweepRows {
 public:
  /// JSON for a path that ends in ".jsonl", else CSV. `spec` must outlive it.
  SweepRows(const std::string& path, const SweepSpec& spec);

  ResumableLines::Format format() const;
  /// What a line has behind its begin.
  std::string results(const JobResult& job) const;
  /// Of a line the texts of `header()`; empty where there is no value.
  std::vector<std::string> cells(const std::string& line) const;
  /// "index", the columns of the spec, the results.
  const std::vector<std::string>& header() const { return header_; }

 private:
  std::string csv_begin(size_t point) const;
  std::string json_begin(size_t point) const;

  const SweepSpec& spec_;
  bool json_ = false;
  std::vector<std::string> header_;
};

}  // namespace tilecast
