#include "importers/clean_names.h"

#include <algorithm>

#include "base/text.h"

namespace tilecast {
namespace {

/// Module names of published models have up to 90 characters; a call of a traced operator that is
/// shown has fewer.
constexpr size_t kLongestGraphName = 200;

bool is_plain_text(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

void clean(std::string& name) {
  if (name.size() > kLongestGraphName || !is_plain_text(name))
    name = shown_name(name, kLongestGraphName);
}

}  // namespace

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
