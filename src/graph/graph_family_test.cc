#include "graph/graph_family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace tilecast {
namespace {

/// One node, whose output and attributes have a size of the batch.
Graph graph_of(int64_t size, const std::string& name = "node") {
  Graph graph;
  graph.tensors = {{.name = "w", .shape = {8, 8}, .kind = TensorKind::kWeight},
                   {.name = "y", .shape = {size, 8}}};
  graph.nodes = {
      {.name = name,
       .inputs = {0},
       .outputs = {1},
       .attributes = {
           {"count", int64_t{size}}, {"shape", std::vector<int64_t>{2, size}}, {"scale", 0.5}}}};
  graph.segments = {{.name = "all", .node_count = 1}};
  graph.outputs = {1};
  return graph;
}

using BytesOfBatch = std::function<int64_t(int64_t)>;

std::optional<GraphFamily> family_of(const BytesOfBatch& size, int64_t first, int64_t last) {
  const Graph low = graph_of(size(first)), next = graph_of(size(first + 1)),
              high = graph_of(size(last));
  return GraphFamily::find({first, first + 1, last}, {&low, &next, &high});
}

TEST(GraphFamily, SizesFollowTheBatch) {
  const BytesOfBatch size = [](int64_t batch) { return 12 * batch + 5; };
  const std::optional<GraphFamily> family = family_of(size, 3, 40);
  ASSERT_TRUE(family);
  Graph graph = graph_of(size(40));
  for (int64_t batch = 3; batch <= 40; ++batch) {
    family->set_batch(graph, batch);
    EXPECT_EQ(graph, graph_of(size(batch))) << batch;
  }
}

// Whatever sizes are found to be linear are so for each batch in the range.
TEST(GraphFamily, LimitsAndRoundedSizesAreSeen) {
  const auto up = [](int64_t x, int64_t unit) { return (x + unit - 1) / unit; };
  const std::pair<const char*, BytesOfBatch> sizes[] = {
      {"minimum", [](int64_t b) { return std::min<int64_t>(7 * b, 100); }},
      {"maximum", [](int64_t b) { return std::max<int64_t>(3 * b, 64); }},
      {"square", [](int64_t b) { return b * b; }},
      {"multiple of 64", [&](int64_t b) { return 64 * up(b, 64); }},
      {"padded rows", [&](int64_t b) { return 16 * up(10 * b, 16); }},
      {"share", [&](int64_t b) { return up(512 * b, 60); }},
      {"half", [](int64_t b) { return b / 2; }},
      {"even share", [&](int64_t b) { return up(512 * b, 64); }},
      {"constant", [](int64_t) { return int64_t{6}; }}};
  int found = 0;
  for (const auto& [name, size] : sizes) {
    for (int64_t first = 1; first < 70; ++first) {
      for (int64_t last = first + 2; last < 140; ++last) {
        const std::optional<GraphFamily> family = family_of(size, first, last);
        if (!family) continue;
        ++found;
        Graph graph = graph_of(size(first));
        for (int64_t batch = first; batch <= last; batch += 1 + (last - first) / 7) {
          family->set_batch(graph, batch);
          ASSERT_EQ(graph.tensors[1].shape[0], size(batch))
              << name << ", batch " << batch << " of " << first << " to " << last;
        }
      }
    }
  }
  EXPECT_GT(found, 1000);
  EXPECT_FALSE(family_of(sizes[0].second, 1, 40));
  EXPECT_FALSE(family_of(sizes[1].second, 1, 40));
  EXPECT_FALSE(family_of(sizes[2].second, 1, 40));
  EXPECT_FALSE(family_of(sizes[3].second, 1, 128));
}

TEST(GraphFamily, OtherDifferencesAreNoFamily) {
  const Graph low = graph_of(1), next = graph_of(2), high = graph_of(9);
  const auto with = [&](const Graph& last) {
    return GraphFamily::find({1, 2, 9}, {&low, &next, &last});
  };
  EXPECT_TRUE(with(high));
  EXPECT_FALSE(with(graph_of(9, "other")));
  Graph other = high;
  other.nodes[0].attributes.pop_back();
  EXPECT_FALSE(with(other));
  other = high;
  other.nodes[0].attributes[2].value = 0.25;
  EXPECT_FALSE(with(other));
  other = high;
  other.nodes[0].attributes[1].value = std::vector<int64_t>{2};
  EXPECT_FALSE(with(other));
  other = high;
  other.tensors[1].shape.push_back(1);
  EXPECT_FALSE(with(other));
  other = high;
  other.tensors.emplace_back();
  EXPECT_FALSE(with(other));
  other = high;
  other.segments[0].repeat = 2;
  EXPECT_FALSE(with(other));
  EXPECT_FALSE(GraphFamily::find({1, 3, 9}, {&low, &next, &high})) << "no neighbours";
}

}  // namespace
}  // namespace tilecast
