#include "graph/graph.h"

#include <gtest/gtest.h>

#include "test_support.h"

namespace tilecast {
namespace {

TEST(DTypes, NamesRoundTrip) {
  for (const std::string& name : dtype_names()) EXPECT_EQ(dtype_name(*find_dtype(name)), name);
  EXPECT_FALSE(find_dtype("fp7"));
  EXPECT_ERROR(parse_dtype("fp7", "x"), kInput, "unknown dtype 'fp7'; known: fp32");
}

TEST(GraphTest, ParametersCountEveryRepetition) {
  Graph graph;
  graph.segments.push_back({.name = "layers", .repeat = 12});
  graph.tensors.push_back(
      {.name = "w", .shape = {3, 4}, .kind = TensorKind::kWeight, .segment = 0});
  graph.tensors.push_back({.name = "e", .shape = {5}, .kind = TensorKind::kWeight});
  EXPECT_EQ(graph.parameter_count(), 12 * 12 + 5);
}

TEST(GraphTest, SizesBeyond64BitsAreRefused) {
  EXPECT_ERROR(element_count({int64_t{1} << 31, int64_t{1} << 31, 4}), kInput, "64 bits");
}

TEST(Role, HasAWordOfItsOwn) {
  for (const RoleInfo& info : roles()) {
    EXPECT_EQ(find_role(info.word), info.role) << info.word;
    EXPECT_EQ(role_word(info.role), info.word);
    EXPECT_FALSE(info.bearers.empty()) << info.word;
  }
  EXPECT_EQ(role_word(Role::kNone), "");
  EXPECT_TRUE(role_fits_op(Role::kNone, "relu"));
  EXPECT_FALSE(role_fits_op(Role::kReceived, "relu"));
}

}  // namespace
}  // namespace tilecast
