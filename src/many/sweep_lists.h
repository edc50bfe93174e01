#pragma once

// The lists of a sweep's file, and their combinations.

#include <string>
#include <vector>

#include "base/json.h"
#include "many/job_table.h"

namespace tilecast {

/// One list: models, devices, an option or a parameter of a description.
struct SweepAxis {
  JobColumn::Kind kind = JobColumn::Kind::kOption;
  std::string name;
  std::vector<std::string> values;
  /// A parameter that decides what fits, but not how long a layer takes under a mapping.
  bool keeps_times = false;
};

class SweepLists {
 public:
  /// Throws Error{kInput} for lists that no sweep can have, and what reading a model, a device or
  /// an option throws.
  explicit SweepLists(const JsonObject& file);
  SweepLists(const SweepLists&) = delete;
  SweepLists& operator=(const SweepLists&) = delete;

  /// The number of combinations.
  size_t size() const { return size_; }
  /// The combination that runs at a place: those that share times follow each other.
  size_t index_at(size_t place) const;
  /// They point to the values of the lists.
  std::vector<JobColumn> columns() const;
  /// The values of a combination as cells of a line, which end in a comma.
  std::string cells(size_t index) const;
  const std::vector<SweepAxis>& axes() const { return axes_; }

 private:
  void check_values();
  void check_device(SweepAxis& axis, size_t axis_stride) const;
  /// Of axis `a`, the index of a combination's value.
  size_t value_at(size_t a, size_t index) const {
    return index / strides_[a] % axes_[a].values.size();
  }
  /// The device of a combination, with the parameters of an accelerator.
  AcceleratorRef accelerator_at(size_t index) const;

  std::vector<SweepAxis> axes_;
  std::vector<size_t> strides_;  ///< by axis: combinations between two values
  size_t size_ = 0;
};

}  // namespace tilecast
