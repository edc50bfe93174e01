#include "sim/prompt_images.h"

#include <gtest/gtest.h>

namespace tilecast {
namespace {

/// Two images of 100 tokens at 0, 50 tokens, an answer of 30, then one image and 20 tokens.
struct Example {
  ServingLoad load;
  RequestSpec request;
  Example() {
    load.image_tokens = 100;
    load.parts = {{1, 250, 2}, {2, 30}, {3, 120, 1}};
    request.prompt = 400;
    request.part_count = 3;
    request.images = 1;
  }
};

TEST(PromptImages, EndWithTheirLastToken) {
  const Example e;
  const auto ended = [&](int64_t from, int64_t to) {
    return images_ended(e.load, e.request, from, to);
  };
  EXPECT_EQ(ended(0, 400), 3);
  EXPECT_EQ(ended(0, 99), 0);
  EXPECT_EQ(ended(0, 100), 1);
  EXPECT_EQ(ended(100, 200), 1);
  EXPECT_EQ(ended(200, 379), 0);
  EXPECT_EQ(ended(379, 380), 1);
  RequestSpec plain{.prompt = 500, .images = 4};
  EXPECT_EQ(images_ended(e.load, plain, 150, 450), 3);
}

TEST(PromptImages, ArePartlyComputed) {
  const Example e;
  for (const int64_t at : {1, 99, 101, 199, 281, 379})
    EXPECT_TRUE(is_within_image(e.load, e.request, at)) << at;
  for (const int64_t at : {0, 100, 200, 250, 280, 380, 400})
    EXPECT_FALSE(is_within_image(e.load, e.request, at)) << at;
}

TEST(PromptImages, EndAStepWithoutRoom) {
  const Example e;
  const auto taken = [&](ImageTokens wanted, int64_t from, bool starts) {
    const ImageTokens t = with_room(e.load, e.request, wanted, from, starts);
    return std::pair(t.tokens, t.images);
  };
  EXPECT_EQ(taken({400, 3}, 0, true), std::pair(int64_t{400}, int64_t{3}));
  EXPECT_EQ(taken({400, 2}, 0, true), std::pair(int64_t{280}, int64_t{2}));
  EXPECT_EQ(taken({400, 1}, 0, true), std::pair(int64_t{100}, int64_t{1}));
  EXPECT_EQ(taken({400, 0}, 0, true), std::pair(int64_t{0}, int64_t{0}));
  // The second image is encoded where an earlier step has computed its beginning, and not where
  // that came from the prefix cache.
  EXPECT_EQ(taken({250, 1}, 150, false), std::pair(int64_t{250}, int64_t{1}));
  EXPECT_EQ(taken({250, 1}, 150, true), std::pair(int64_t{130}, int64_t{1}));
  EXPECT_EQ(taken({250, 0}, 150, true), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(taken({80, 0}, 200, true), std::pair(int64_t{80}, int64_t{0}));
  EXPECT_EQ(taken({20, 0}, 380, false), std::pair(int64_t{20}, int64_t{0}));
}

}  // namespace
}  // namespace tilecast
