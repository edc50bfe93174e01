#include "tuning/tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace tilecast::tuning {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 28;

}  // namespace

Tensors::Tensors(const WeightsContainer& container, const std::string& where) : where_(where) {
  std::string_view rest = container.payload;
  const JsonObject header(container.header, where);
  if (!header.has("tensors") || !header.json()["tensors"].is_array())
    unusable_weights(where, "it lists no tensors");
  for (const Json& item : header.json()["tensors"]) {
    const JsonObject entry(item, where + ": tensors");
    const std::string name = entry.string("name");
    const auto rows = static_cast<size_t>(entry.integer({"rows"}, 1, kMostElements));
    const auto columns = static_cast<size_t>(
        entry.integer({"columns"}, 1, kMostElements / static_cast<int64_t>(rows)));
    const size_t bytes = rows * columns * sizeof(float);
    if (rest.size() < bytes) unusable_weights(where, "tensor '" + name + "' is truncated");
    Tensor tensor{rows, columns, {}};
    if (reinterpret_cast<uintptr_t>(rest.data()) % alignof(float) == 0) {
      tensor.values = {reinterpret_cast<const float*>(rest.data()), rows * columns};
    } else {
      // As in text that was read from a file, whose header ends anywhere.
      copies_.push_back(std::make_unique<std::vector<float>>(rows * columns));
      std::memcpy(copies_.back()->data(), rest.data(), bytes);
      tensor.values = *copies_.back();
    }
    for (const float value : tensor.values)
      if (!std::isfinite(value)) unusable_weights(where, "tensor '" + name + "' is not finite");
    if (!tensors_.emplace(name, tensor).second)
      unusable_weights(where, "tensor '" + name + "' is there twice");
    rest.remove_prefix(bytes);
  }
  if (!rest.empty()) unusable_weights(where, fmt::format("{} bytes too many", rest.size()));
}

Tensor Tensors::get(const std::string& name, size_t rows, size_t columns) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) unusable_weights(where_, "tensor '" + name + "' is missing");
  const Tensor& tensor = it->second;
  if ((rows != 0 && tensor.rows != rows) || tensor.columns != columns)
    unusable_weights(where_, fmt::format("tensor '{}' is {} x {}; expected {} x {}", name,
                                         tensor.rows, tensor.columns, rows, columns));
  return tensor;
}

}  // namespace tilecast::tuning
