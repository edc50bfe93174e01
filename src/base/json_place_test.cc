#include "base/json_place.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tilecast {
namespace {

JsonStep key(const char* name) { return {.key = name}; }
JsonStep item(size_t index) { return {.key = "", .index = index, .is_key = false}; }

std::string place(const std::string& text, const std::vector<JsonStep>& steps) {
  return json_place(text, steps);
}

TEST(JsonPlace, IsThatOfTheValue) {
  const std::string text = "{\"a\": [1, {\"b\": \"]}\\\"\"}],\n  \"c\\u0064\": [ [], 7 ]}";
  EXPECT_EQ(place(text, {}), "1:1");
  EXPECT_EQ(place(text, {key("a"), item(0)}), "1:8");
  EXPECT_EQ(place(text, {key("a"), item(1), key("b")}), "1:17");
  EXPECT_EQ(place(text, {key("cd"), item(1)}), "2:20");
}

TEST(JsonPlace, OfWhatIsMissingIsThatOfItsParent) {
  EXPECT_EQ(place("\n {\"a\": 1}", {key("b")}), "2:2");
  EXPECT_EQ(place("{\"a\": [1]}", {key("a"), item(3)}), "1:7");
  EXPECT_EQ(place("", {key("a")}), "1:1");
}

}  // namespace
}  // namespace tilecast
