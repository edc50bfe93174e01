#include "importers/clean_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace tilecast {
namespace {

/// Module names of published models have up to 90 characters; a call of a traced operator that is
/// shown has fewer.
constexpr size_t kLongestGraphName = 200;

bool is_plain_text(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// FNV-1a.
uint32_t number_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

void clean(std::string& name) { name = clean_name(std::move(name)); }

}  // namespace

std::string clean_name(std::string name) {
  if (name.size() <= kLongestGraphName && is_plain_text(name)) return name;
  std::string_view left = name;
  left.remove_prefix(std::min(left.size(), 4 * kLongestGraphName));  // a character has 4 bytes
  std::string shown = shown_name(name, kLongestGraphName);
  if (left.empty() && shown == printable(name)) return shown;
  const std::string number = fmt::format("#{:08x}", number_of(name));
  return shown_name(name, kLongestGraphName - number.size()) + number;
}

void clean_names(Graph& graph) {
  clean(graph.name);
  for (Tensor& tensor : graph.tensors) clean(tensor.name);
  for (Segment& segment : graph.segments) clean(segment.name);
  for (Node& node : graph.nodes) {
    clean(node.name);
    // Warnings show texts of attributes; others are read, however long they are.
    for (Attribute& attribute : node.attributes) {
      auto* text = std::get_if<std::string>(&attribute.value);
      if (text != nullptr && !is_plain_text(*text)) *text = printable(*text);
    }
  }
}

}  // namespace tilecast
