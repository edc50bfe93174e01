#include <gtest/gtest.h>

#include "schema/csv.h"
#include "schema/fields.h"
#include "schema/json.h"

namespace tilecast {
namespace {

struct Part {
  int64_t count = 2;
  std::vector<std::pair<std::string, double>> shares = {{"b", 0.5}, {"a", 1}};

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Part", "A part.");
    field("count", "", "how many", &Part::count);
    field("shares", "", "by name", &Part::shares);
  }
};

struct Whole {
  std::string name = "x \"y\"";
  double time_s = 1e-5;
  std::optional<int64_t> limit;
  std::optional<Part> part = Part{};
  std::vector<Part> parts;
  std::pair<int64_t, int64_t> tile = {128, 64};

  double twice_s() const { return 2 * time_s; }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Whole", "A whole.");
    field("name", "", "its name", &Whole::name);
    field("time_s", "s", "its time", &Whole::time_s);
    field("twice_s", "s", "computed", &Whole::twice_s);
    field("limit", "", "null: none", &Whole::limit);
    field.if_set("absent", "", "left out", [](const Whole& w) { return w.limit; });
    field.flat(&Whole::part);
    field("parts", "", "a list", &Whole::parts);
    field("tile", "", "two numbers", &Whole::tile);
    field("words", "", "computed texts",
          [](const Whole&) { return std::vector<std::string>{"one", "two"}; });
  }
};

TEST(Schema, JsonHasKeysInOrderAndLeavesOutWhatIsNotSet) {
  EXPECT_EQ(to_json(Whole{}), R"({
 "count": 2,
 "limit": null,
 "name": "x \"y\"",
 "parts": [],
 "shares": {
  "a": 1.0,
  "b": 0.5
 },
 "tile": [
  128,
  64
 ],
 "time_s": 1e-05,
 "twice_s": 2e-05,
 "words": [
  "one",
  "two"
 ]
}
)");
}

TEST(Schema, AnAbsentPartHasNoKeys) {
  Whole whole;
  whole.part.reset();
  const std::string json = to_json(whole);
  EXPECT_EQ(json.find("count"), std::string::npos);
  EXPECT_EQ(json.find("shares"), std::string::npos);
}

TEST(Schema, CsvHasAColumnForEachScalarAndEachName) {
  EXPECT_EQ(to_csv(std::vector<Whole>{{}}),
            "name,time_s,twice_s,limit,absent,count,b,a,tile,words\n"
            "\"x \"\"y\"\"\",1e-05,2e-05,,,2,0.5,1,128x64,one two\n");
}

}  // namespace
}  // namespace tilecast
