#include "scenario/generation/common_prompts.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "scenario/generation/offered_load.h"
#include "sim/prefix_pieces.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// Tokens that one cache of any size finds, with blocks of one token.
int64_t found_tokens(const std::vector<TraceRequest>& rows, const Load& asked = {}) {
  ServingLoad load;
  add_common_prompts(load, rows, {.load = asked});
  return most_hit_tokens(load, PrefixPieces(load, 1), 1);
}

TEST(CommonPrompts, HashesAreEqualBlocksAfterEqualBeginnings) {
  const auto row = [](int64_t prompt, std::vector<int64_t> ids) {
    return TraceRequest{.prompt = prompt, .output = 4, .hash_ids = std::move(ids)};
  };
  EXPECT_EQ(found_tokens({row(1100, {1, 2, 3}), row(1200, {1, 2, 4})}), 1024);
  EXPECT_EQ(found_tokens({row(1100, {1, 2, 3}), row(1200, {5, 2, 3})}), 0);
  // The last block is shorter: it equals blocks of its length. One token is computed.
  EXPECT_EQ(found_tokens({row(1100, {1, 2, 3}), row(1100, {1, 2, 3})}), 1099);
  EXPECT_EQ(found_tokens({row(1100, {1, 2, 3}), row(1101, {1, 2, 3})}), 1024);
  // What has no number is the request's own.
  EXPECT_EQ(found_tokens({row(1100, {1}), row(1100, {1})}), 512);
  Load small;
  small.hash_block_size = 16;
  EXPECT_EQ(found_tokens({row(48, {1, 2, 3}), row(48, {1, 2, 4})}, small), 32);
}

TEST(CommonPrompts, ATurnBeginsWithTheOneBefore) {
  const auto turn = [](int64_t prompt, int64_t output) {
    return TraceRequest{.prompt = prompt, .output = output, .session = 0, .follows = true};
  };
  // Of an answer the last token is not computed before the next turn.
  EXPECT_EQ(found_tokens({turn(100, 20), turn(150, 20)}), 119);
  EXPECT_EQ(found_tokens({turn(100, 20), turn(150, 20), turn(200, 5)}), 119 + 169);
  // Too short for the answer too, and for the prompt.
  EXPECT_EQ(found_tokens({turn(100, 20), turn(110, 20)}), 100);
  EXPECT_EQ(found_tokens({turn(100, 20), turn(90, 20)}), 0);
  TraceRequest other = turn(150, 20);
  other.session = 1;
  EXPECT_EQ(found_tokens({turn(100, 20), other}), 0);
}

TEST(CommonPrompts, RequestsOfDifferentAdaptersHaveNothingInCommon) {
  const auto row = [](std::optional<int64_t> adapter) {
    return TraceRequest{.prompt = 512, .output = 4, .hash_ids = {1}, .adapter = adapter};
  };
  EXPECT_EQ(found_tokens({row(1), row(1)}), 511);
  EXPECT_EQ(found_tokens({row(1), row(2)}), 0);
  EXPECT_EQ(found_tokens({row(1), row({})}), 0);
  const auto turn = [](int64_t prompt, int64_t adapter) {
    return TraceRequest{
        .prompt = prompt, .output = 20, .session = 0, .follows = true, .adapter = adapter};
  };
  EXPECT_EQ(found_tokens({turn(100, 1), turn(150, 1)}), 119);
  EXPECT_EQ(found_tokens({turn(100, 1), turn(150, 2)}), 0);
}

TEST(CommonPrompts, AConversationKeepsItsAdapter) {
  Request request{.kind = RequestKind::kServe, .prompt = 100, .output = 10};
  request.load.rate = 4;
  request.load.requests = 300;
  const std::vector<RequestSpec> plain = make_load(request).requests;
  request.lora_rank = 16;
  request.adapters.count = 5;
  const std::vector<RequestSpec> single = make_load(request).requests;
  std::set<int64_t> adapters;
  for (size_t i = 0; i < single.size(); ++i) {
    EXPECT_EQ(single[i].arrival_s, plain[i].arrival_s) << "the rest of the load stays";
    EXPECT_EQ(single[i].prompt, plain[i].prompt);
    adapters.insert(single[i].adapter.value());
  }
  EXPECT_EQ(adapters.size(), 5U);
  request.load.session_turns = 3;
  const std::vector<RequestSpec> turns = make_load(request).requests;
  for (const RequestSpec& r : turns) {
    if (r.next) {
      EXPECT_EQ(turns[*r.next].adapter, r.adapter);
    }
  }
}

TEST(CommonPrompts, DrawnSessionsGrowAndBeginWithOneOfTheSystemPrompts) {
  Request r{.kind = RequestKind::kServe, .prompt = 10, .output = 5};
  r.load.rate = 2;
  r.load.requests = 7;
  r.load.warmup_request_count = 0;
  r.load.session_turns = 3;
  r.load.session_turn_delay_s = 1.5;
  r.load.prefix_len = 100;
  r.load.num_prefixes = 2;
  const ServingLoad load = make_load(r);
  ASSERT_EQ(load.requests.size(), 7u);
  std::vector<int64_t> prompts;
  for (const RequestSpec& spec : load.requests) prompts.push_back(spec.prompt);
  EXPECT_EQ(prompts, (std::vector<int64_t>{110, 125, 140, 110, 125, 140, 110}));
  EXPECT_EQ(load.requests[0].next, 1u);
  EXPECT_EQ(load.requests[1].next, 2u);
  EXPECT_FALSE(load.requests[2].next);
  EXPECT_TRUE(load.requests[4].follows);
  EXPECT_EQ(load.requests[4].think_s, 1.5);
  const auto key = [&](size_t i) { return load.parts[load.requests[i].first_part].key; };
  EXPECT_NE(key(0), key(3));
  EXPECT_EQ(key(0), key(6));
  // Turns of one session, and the third session's system prompt. Conversations begin every 1.5 s.
  EXPECT_EQ(most_hit_tokens(load, PrefixPieces(load, 1), 1), 2 * (114 + 129) + 100);
  EXPECT_GT(load.requests[6].arrival_s, load.requests[3].arrival_s);
  // The same arrivals and lengths as without anything in common.
  Request plain = r;
  plain.load.prefix_len = 0;
  plain.load.num_prefixes = plain.load.session_turns = 1;
  r.load.session_turns = 1;
  const ServingLoad with = make_load(r), without = make_load(plain);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(with.requests[i].arrival_s, without.requests[i].arrival_s);
    EXPECT_EQ(with.requests[i].prompt, without.requests[i].prompt + 100);
  }
}

TEST(CommonPrompts, ConversationsWithARateHaveRequestsBeforeAndAfterThoseThatCount) {
  Request r{.kind = RequestKind::kServe, .prompt = 10, .output = 5};
  r.load.rate = 2;
  r.load.requests = 100;
  r.load.session_turns = 3;
  const ServingLoad warm = make_load(r);
  EXPECT_EQ(warm.counted, 100);
  EXPECT_EQ(warm.warmup, 5000);
  EXPECT_EQ(warm.requests.size(), 5202U);
  r.load.warmup_request_count = 41;
  const ServingLoad asked = make_load(r);
  EXPECT_EQ(asked.warmup, 41);
  EXPECT_TRUE(asked.warms_up_fully);
  EXPECT_EQ(asked.requests.size(), 243U) << "whole conversations";
  // Conversations begin at the same rate, also in each part of the time that is counted: 34 of
  // them.
  EXPECT_NEAR(asked.requests[240].arrival_s, 81 / (2.0 / 3), 3);
  for (const size_t part : {1, 2, 3, 20})
    EXPECT_NEAR(warm.requests[3 * (34 * part - 1)].arrival_s,
                static_cast<double>(34 * part) / (2.0 / 3), 1e-9);
  r.load.warmup_request_count = 0;
  EXPECT_EQ(make_load(r).counted, 0);
  EXPECT_EQ(make_load(r).requests.size(), 100U);
  r.load.warmup_request_count = {};
  r.load.rate = 0;
  r.load.concurrency = 4;
  EXPECT_EQ(make_load(r).counted, 0) << "clients have one conversation after the other";
}

TEST(CommonPrompts, EachTurnHasImagesOfItsOwn) {
  Request r{.kind = RequestKind::kServe, .prompt = 10 + 2 * 256, .output = 5, .images = 2};
  r.load.concurrency = 1;
  r.load.requests = 4;
  r.load.session_turns = 2;
  r.load.prefix_len = 50;
  const ServingLoad load = make_load(r, 256);
  EXPECT_EQ(load.image_tokens, 256);
  for (const RequestSpec& spec : load.requests) {
    EXPECT_EQ(spec.images, 2);
    int64_t images = 0;
    for (size_t i = 0; i < spec.part_count; ++i) images += load.parts[spec.first_part + i].images;
    EXPECT_EQ(images, spec.follows ? 4 : 2);
    EXPECT_EQ(load.parts[spec.first_part].images, 0) << "the system prompt";
  }
  // A turn of a trace that says little more has the images of the turns before it.
  r.load = {};
  r.load.trace = {{.prompt = 600, .output = 5, .session = 0, .follows = true},
                  {.prompt = 700, .output = 5, .session = 0, .follows = true}};
  const ServingLoad trace = make_load(r, 256);
  EXPECT_EQ(trace.requests[0].images, 2);
  EXPECT_EQ(trace.requests[1].images, 0);
  EXPECT_EQ(make_load(r).requests[0].images, 0);
}

}  // namespace
}  // namespace tilecast
