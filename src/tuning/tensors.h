#pragma once

// The matrices of a model of this folder, in the project's container (base/weights_container.h).
// The header lists them: {"tensors": [{"name": "a", "rows": 98, "columns": 192}]}; they follow each
// other in the payload, as floats, and are used where they lie.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/weights_container.h"

namespace tilecast::tuning {

struct Tensor {
  size_t rows = 0, columns = 0;
  std::span<const float> values;  ///< row after row

  const float* data() const { return values.data(); }
};

/// Immutable after reading. Views of the content that was read must not outlive it.
class Tensors {
 public:
  /// Throws Error{kInput} where header and payload do not fit.
  Tensors(const WeightsContainer& container, const std::string& where);

  /// Throws Error{kInput} where there is none of that name and size; 0 rows: any number.
  Tensor get(const std::string& name, size_t rows, size_t columns) const;

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::vector<std::unique_ptr<std::vector<float>>> copies_;
  std::string where_;
};

}  // namespace tilecast::tuning
