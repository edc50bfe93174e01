#include "accelerator/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/number.h"
#include "base/text.h"

namespace tilecast::accelerator {
namespace {

size_t dim_index(char name, const std::string& where) {
  const size_t index = kDimNames.find(name);
  if (index == std::string_view::npos)
    fail_input(where, fmt::format("unknown dimension '{}'; expected one of n, k, c, p, q, r, s",
                                  shown_name(std::string_view(&name, 1))));
  return index;
}

void read_tile(std::string_view text, Sizes& tile, const std::string& where) {
  std::string named;
  for (const std::string& part : split(text, ',')) {
    if (part.empty()) fail_input(where, "an empty size in 'tile='");
    const auto size = parse_number<int64_t>(part.substr(1));
    if (!size)
      fail_input(where, fmt::format("expected a dimension and a size as in k64, found '{}'",
                                    shown_name(part)));
    if (named.find(part[0]) != std::string::npos)
      fail_input(where, fmt::format("'tile={}' names '{}' twice", shown_name(text), part[0]));
    named += part[0];
    tile[dim_index(part[0], where)] = *size;
  }
}

}  // namespace

std::string_view layer_kind_name(LayerKind kind) {
  static constexpr std::array<std::string_view, 4> names = {"product", "depthwise", "pooling",
                                                            "elementwise"};
  return names[static_cast<size_t>(kind)];
}

bool Layer::uses(Operand operand, Dim dim) const {
  if (kind != LayerKind::kProduct && dim == Dim::kC) return false;
  switch (operand) {
    case Operand::kInput:
      return kind == LayerKind::kProduct ? dim != Dim::kK : true;
    case Operand::kWeight:
      if (kind == LayerKind::kPooling || kind == LayerKind::kElementwise) return false;
      return dim == Dim::kK || dim == Dim::kC || dim == Dim::kR || dim == Dim::kS;
    case Operand::kOutput:
      return dim == Dim::kN || dim == Dim::kK || dim == Dim::kP || dim == Dim::kQ;
  }
  return false;
}

int64_t Layer::macs() const {
  int64_t product = 1;
  for (const int64_t size : sizes) product = checked_multiply(product, size);
  return product;
}

int64_t Layer::input_extent(int64_t outputs, int64_t window) const {
  return window >= stride ? (outputs - 1) * stride + window : outputs * window;
}

int64_t Layer::elements(Operand operand, const Sizes& block) const {
  int64_t count = 1;
  for (size_t i = 0; i < kDimCount; ++i) {
    const auto dim = static_cast<Dim>(i);
    const bool spatial = dim == Dim::kP || dim == Dim::kQ || dim == Dim::kR || dim == Dim::kS;
    if (uses(operand, dim) && !(operand == Operand::kInput && spatial)) count *= block[i];
  }
  if (operand != Operand::kInput) return count;
  return count * input_extent(size_of(block, Dim::kP), size_of(block, Dim::kR)) *
         input_extent(size_of(block, Dim::kQ), size_of(block, Dim::kS)) * inputs;
}

std::string layer_sizes_text(const Layer& layer) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < kDimCount; ++i)
    if (layer.sizes[i] > 1) parts.push_back(fmt::format("{} {}", kDimNames[i], layer.sizes[i]));
  if (layer.stride > 1) parts.push_back(fmt::format("stride {}", layer.stride));
  if (layer.inputs > 1) parts.push_back(fmt::format("inputs {}", layer.inputs));
  if (layer.pool_elements > 1)
    parts.push_back(fmt::format("pool {} stride {}", layer.pool_elements, layer.pool_stride));
  return join(parts, ", ");
}

void check_covers(const Mapping& mapping, const Layer& layer, const std::string& where) {
  std::array<int, kDimCount> named{};
  for (const char name : mapping.order)
    if (++named[dim_index(name, where)] > 1)
      fail_input(where,
                 fmt::format("the order '{}' names '{}' twice", shown_name(mapping.order), name));
  for (size_t i = 0; i < kDimCount; ++i) {
    const int64_t size = layer.sizes[i], tile = mapping.tile[i];
    if (tile < 1 || tile > size)
      fail_input(where,
                 fmt::format("the tile has {}{}; expected a size from 1 to {}, that of the layer",
                             kDimNames[i], tile, size));
    if (tile < size && named[i] == 0)
      fail_input(where,
                 fmt::format("the mapping does not cover the layer: {} of {} {} are computed; add "
                             "'{}' to the order '{}'",
                             tile, size, kDimNames[i], kDimNames[i], mapping.order));
  }
}

Mapping parse_mapping(std::string_view text, const Layer& layer, const std::string& where) {
  Mapping mapping{.order = {}, .tile = layer.sizes};
  std::array<bool, 2> seen{};
  for (const std::string& part : split(trim(text), ' ')) {
    if (part.empty()) continue;
    for (const char* field : {"order=", "tile="})
      if (part.starts_with(field) && std::exchange(seen[field[0] == 't'], true))
        fail_input(where, fmt::format("'{}' is given twice", field));
    if (part.starts_with("order=")) {
      mapping.order = part.substr(6);
    } else if (part.starts_with("tile=")) {
      read_tile(std::string_view(part).substr(5), mapping.tile, where);
    } else {
      fail_input(where,
                 fmt::format("expected 'order=…' or 'tile=…', found '{}'", shown_name(part)));
    }
  }
  check_covers(mapping, layer, where);
  return mapping;
}

std::string mapping_text(const Mapping& mapping, const Layer& layer) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < kDimCount; ++i)
    if (layer.sizes[i] > 1) parts.push_back(fmt::format("{}{}", kDimNames[i], mapping.tile[i]));
  return fmt::format("order={} tile={}", mapping.order, join(parts, ","));
}

}  // namespace tilecast::accelerator
