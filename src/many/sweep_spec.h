#pragma once

// The points of a sweep, as its file states them:
//
// {"model": ["llama-3-8b"], "gpu": ["H100", "A100"], "rate": {"from": 1, "to": 8, "step": 0.5},
//  "zip": [{"tp": [1, 2, 4], "batch": [8, 16, 32]}],
//  "draw": [{"count": 100, "seed": 7, "method": "latin_hypercube",
//            "columns": {"parameters": {"memory_bytes_per_s": {"from": 1e12, "to": 8e12}}}}],
//  "where": ["tp * 8 <= batch"]}
//
// Goals: any number of points without a list of them; point i is made without those before it, so
// that parts of a sweep can run on different machines; the same file has the same points anywhere.
// Non-goals: which points to look at next, given results (a search).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/expression.h"
#include "many/job_table.h"
#include "many/sweep_values.h"

namespace tilecast {

/// Models, devices, an option, or a number of the device.
struct SweepColumn {
  JobColumn::Kind kind = JobColumn::Kind::kOption;
  std::string name;                   ///< as the file has it
  const OptionDef* option = nullptr;  ///< of an option
  std::string unit;                   ///< of its text: "tokens"; "": none
  SweepValues values;
  size_t dimension = 0;
  uint64_t seed = 0;  ///< of a column that is drawn
  /// A parameter that decides what fits, but not how long a layer takes under a mapping.
  bool keeps_times = false;

  /// The name in a table of jobs: "model", "kv-dtype", "memory_bytes_per_s".
  const std::string& job_name() const { return option == nullptr ? name : option->name; }
};

/// Columns that advance together; all combinations of the dimensions' values are points.
struct SweepDimension {
  enum class Kind : uint8_t { kList, kRandom, kLatinHypercube };
  Kind kind = Kind::kList;
  size_t size = 0;
  size_t stride = 1;  ///< points between two of its values
};

class SweepSpec {
 public:
  /// The most points of a spec, those included that its conditions refuse.
  static constexpr double kMostPoints = 1e9;

  /// Throws Error{kInput}, with line and column, for a spec that no sweep can have, and for names
  /// of models, devices and options that do not exist.
  SweepSpec(std::string text, std::string where);
  SweepSpec(const SweepSpec&) = delete;
  SweepSpec& operator=(const SweepSpec&) = delete;

  /// The number of points, those included that the conditions refuse.
  size_t size() const { return size_; }
  const std::vector<SweepColumn>& columns() const { return columns_; }
  /// Equal for specs of the same content, however it is laid out.
  uint64_t hash() const { return hash_; }
  /// Whether the conditions, if there are any, hold.
  bool accepts(size_t index) const;
  bool has_conditions() const { return !conditions_.empty(); }
  /// The point that runs at a place: those that share times follow each other.
  size_t index_at(size_t place) const;

  /// The value of a point. A word that is no number has none.
  double number_at(const SweepColumn& column, size_t index) const;
  std::string text_at(const SweepColumn& column, size_t index) const;
  /// Equal for equal values of a column.
  uint64_t code_at(const SweepColumn& column, size_t index) const;

  /// Rows are points. They refer to this.
  std::vector<JobColumn> job_columns() const;
  /// A table of these points: a column with the values of each.
  std::vector<OptionColumn> option_columns(const std::vector<size_t>& points) const;

 private:
  friend class SweepSpecReader;
  struct Condition {
    BoundExpression expression;
    std::vector<size_t> columns;  ///< whose numbers it takes, in its order
  };
  /// A value's index; of a range that has none, its share of the way from one end to the other.
  struct Pick {
    size_t index = 0;
    std::optional<double> share;
  };
  Pick pick(const SweepColumn& column, size_t index) const;

  std::vector<SweepColumn> columns_;
  std::vector<SweepDimension> dimensions_;
  std::vector<Condition> conditions_;
  size_t size_ = 0;
  uint64_t hash_ = 0;
};

/// The spec in a file.
std::unique_ptr<const SweepSpec> read_sweep_spec(const std::string& path);

}  // namespace tilecast
