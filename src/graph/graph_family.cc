#include "graph/graph_family.h"

#include <utility>
#include <variant>

namespace tilecast {

std::vector<GraphFamily::Place> GraphFamily::places_of(const Graph& graph) {
  std::vector<Place> places;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    for (size_t i = 0; i < graph.tensors[t].shape.size(); ++i)
      places.push_back({.tensor = static_cast<int32_t>(t), .index = static_cast<int32_t>(i)});
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<Attribute>& attributes = graph.nodes[n].attributes;
    for (size_t a = 0; a < attributes.size(); ++a) {
      Place place{.node = static_cast<int32_t>(n), .attribute = static_cast<int32_t>(a)};
      if (std::holds_alternative<int64_t>(attributes[a].value)) places.push_back(place);
      const auto* list = std::get_if<std::vector<int64_t>>(&attributes[a].value);
      for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
        place.index = static_cast<int32_t>(i);
        places.push_back(place);
      }
    }
  }
  return places;
}

int64_t& GraphFamily::at(Graph& graph, const Place& place) {
  if (place.tensor >= 0) return graph.tensor(place.tensor).shape[static_cast<size_t>(place.index)];
  Node& node = graph.nodes[static_cast<size_t>(place.node)];
  AttributeValue& value = node.attributes[static_cast<size_t>(place.attribute)].value;
  if (place.index < 0) return std::get<int64_t>(value);
  return std::get<std::vector<int64_t>>(value)[static_cast<size_t>(place.index)];
}

namespace {

/// Whether all places of one graph are there in the other.
bool same_form(const Graph& a, const Graph& b) {
  if (a.tensors.size() != b.tensors.size() || a.nodes.size() != b.nodes.size()) return false;
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    if (a.tensors[t].shape.size() != b.tensors[t].shape.size()) return false;
  }
  for (size_t n = 0; n < a.nodes.size(); ++n) {
    const std::vector<Attribute>&x = a.nodes[n].attributes, &y = b.nodes[n].attributes;
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i].value.index() != y[i].value.index()) return false;
      const auto* list = std::get_if<std::vector<int64_t>>(&x[i].value);
      if (list != nullptr && list->size() != std::get<std::vector<int64_t>>(y[i].value).size())
        return false;
    }
  }
  return true;
}

}  // namespace

std::optional<GraphFamily> GraphFamily::find(const Batches& batches,
                                             const std::array<const Graph*, 3>& graphs) {
  Graph first = *graphs[0], second = *graphs[1], last = *graphs[2];
  if (!same_form(first, second) || !same_form(first, last)) return std::nullopt;
  GraphFamily family;
  family.batches_ = batches;
  if (batches[1] - batches[0] != 1) return std::nullopt;
  const int64_t range = batches[2] - batches[0];
  for (const Place& place : places_of(first)) {
    const int64_t low = at(first, place);
    int64_t &next = at(second, place), &high = at(last, place);
    const int64_t step = next - low;
    if ((high - low) % range != 0 || (high - low) / range != step) return std::nullopt;
    if (step != 0) family.sizes_.push_back({place, low, step});
    next = high = low;
  }
  // All that is no size is the same: names, operators, dtypes, what reads what.
  if (second != first || last != first) return std::nullopt;
  return family;
}

void GraphFamily::set_batch(Graph& graph, int64_t batch) const {
  for (const Size& size : sizes_)
    at(graph, size.place) = size.first + (batch - batches_.front()) * size.step;
}

}  // namespace tilecast
