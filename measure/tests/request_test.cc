#include "../worker/request.h"

#include <gtest/gtest.h>

namespace tilecast::measure {
namespace {

TEST(KitRequests, ComeBackAsTheyWere) {
  const Fields fields{{"do", "time"}, {"m", "128"}, {"note", "a=b c"}};
  EXPECT_EQ(parse_fields(format_fields(fields)), fields);
  // A value can't break the line.
  EXPECT_EQ(parse_fields(format_fields({{"note", "a\tb\nc"}})), (Fields{{"note", "a b c"}}));
}

TEST(KitRequests, GiveCheckedValues) {
  const Request request(parse_fields("m=128\tscale=0.5\treuse=4:2:1\tcausal=1\tempty="));
  EXPECT_EQ(request.size("m"), 128);
  EXPECT_DOUBLE_EQ(request.number("scale", 0), 0.5);
  EXPECT_EQ(request.integers("reuse"), (std::vector<int64_t>{4, 2, 1}));
  EXPECT_TRUE(request.flag("causal"));
  EXPECT_EQ(request.integer("empty", 7), 7);
  EXPECT_THROW(request.size("n"), Unsupported);
}

TEST(KitRequests, NameWhatIsWrong) {
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Unsupported& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([] { parse_fields("m=1\tnonsense"); }), "expected key=value, found 'nonsense'");
  EXPECT_EQ(message([] { Request(Fields{{"m", "12x"}}).size("m"); }),
            "m: expected a number, found '12x'");
  EXPECT_EQ(message([] { Request(Fields{{"m", "0"}}).size("m"); }),
            "m: expected a size of at least 1");
}

}  // namespace
}  // namespace tilecast::measure
