#pragma once

// The job table: rows of options in, results out, whatever the scenario. Tables of forecasts and
// sweeps are such tables; they differ in where their rows come from and what they keep of a result.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenario/scenario.h"
#include "tilecast/search.h"

namespace tilecast {

/// A column: "model", "gpu", the name of an option, or of a number of the device: a parameter of an
/// accelerator, or what device_numbers.h lists of a GPU.
struct JobColumn {
  enum class Kind : uint8_t { kModel, kGpu, kOption, kParameter };
  Kind kind = Kind::kOption;
  std::string name;
  const std::vector<std::string>* words = nullptr;  ///< the values; not null for models and devices
  /// Of a row the index of its word, or OptionColumn::kNotGiven.
  std::function<int32_t(size_t row)> code = nullptr;
  /// In place of words: the value of a row.
  std::function<std::string(size_t row)> computed = nullptr;

  /// nullopt: not given.
  std::optional<std::string> text(size_t row) const {
    if (computed) return computed(row);
    const int32_t index = code(row);
    if (index == OptionColumn::kNotGiven) return std::nullopt;
    return (*words)[static_cast<size_t>(index)];
  }
};

/// A result, or why there is none.
struct JobResult {
  std::optional<Result> result;
  std::string error;
};

/// What the rows of a thread, or of all, share; may be null. See Inquiry.
struct JobShared {
  BatchPasses* passes = nullptr;
  SharedLayers* layers = nullptr;
};

/// Answers one inquiry; what it throws is the error of its row.
JobResult run_job(const Inquiry& inquiry);

class JobTable {
 public:
  /// `forecaster` and what the columns point to must outlive the table.
  JobTable(const Forecaster& forecaster, std::vector<JobColumn> columns);

  /// Reads models and devices. One that cannot be read is the error of its rows.
  void load(const ManyOptions& options);

  /// Answers a row without a search for what would fit. Any number of threads may call it.
  JobResult run(size_t row, const JobShared& shared) const;

 private:
  /// What could be loaded, or why not.
  template <typename T>
  struct Loaded {
    std::optional<T> value;
    std::string error;
  };
  template <typename T>
  static Loaded<T> try_load(const std::string& word,
                            const std::function<T(const std::string&)>& load);
  template <typename T>
  static const T& value_of(const std::vector<Loaded<T>>& loaded, const JobColumn* column,
                           size_t row, const char* name);
  std::vector<std::pair<std::string, double>> parameters_of(size_t row) const;
  DeviceRef device_of(size_t row, const Request& request) const;
  std::vector<GivenOption> options_of(size_t row) const;

  const Forecaster& forecaster_;
  std::vector<JobColumn> columns_;
  const JobColumn *model_ = nullptr, *gpu_ = nullptr;
  std::vector<Loaded<ModelRef>> models_;  // by word
  std::vector<Loaded<DeviceRef>> devices_;
};

/// A parameter's value. Throws Error{kInput} if the text is no number.
double parameter_value(const std::string& text, const std::string& parameter);

}  // namespace tilecast
