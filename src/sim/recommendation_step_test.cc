#include "sim/recommendation_step.h"

#include <gtest/gtest.h>

#include <string_view>

namespace tilecast {
namespace {

/// Milliseconds, so that sums are easy to check.
RecommendationStep two_ranks() {
  return {.tables_forward_s = {3, 5},
          .tables_backward_s = {6, 8},
          .bottom_forward_s = 2,
          .top_forward_s = 4,
          .top_backward_s = 7,
          .bottom_backward_s = 3,
          .optimizer_s = 1,
          .exchange_s = 6,
          .exchange_gradients_s = 6,
          .buckets = {{5, 2}, {9, 4}}};
}

TEST(RecommendationStep, ExchangesRunBesideTheBottomMlp) {
  // Forward: the slowest tables (5), the exchange (6, longer than the bottom MLP), top (4): 15.
  // Backward: top (7) to 22; the bucket that is ready at 20 is reduced until 22; the exchange runs
  // to 28, the bottom MLP to 25; the bucket ready at 24 from 28 to 32; tables of rank 1 to 36.
  const RecommendationTimes times = simulate_recommendation(two_ranks());
  EXPECT_DOUBLE_EQ(times.forward_s, 15);
  EXPECT_DOUBLE_EQ(times.backward_s, 21);
  EXPECT_DOUBLE_EQ(times.optimizer_s, 1);
  EXPECT_DOUBLE_EQ(times.seconds, 37);
  EXPECT_DOUBLE_EQ(times.compute_s, 5 + 2 + 4 + 7 + 3 + 8 + 1);
  EXPECT_DOUBLE_EQ(times.communication_s, 6 + 6 + 2 + 4);
  EXPECT_DOUBLE_EQ(times.exposed_s, 7);
}

TEST(RecommendationStep, PartsSayWhenTheyRun) {
  RecommendationStep step = two_ranks();
  step.exchange_ids_s = 4;
  const RecommendationTimes times = simulate_recommendation(step);
  const auto part = [&](std::string_view name) {
    for (const RecommendationPart& p : times.parts) {
      if (p.name == name) return p;
    }
    ADD_FAILURE() << name;
    return RecommendationPart{};
  };
  const RecommendationPart ids = part("exchange of the next batch's ids");
  EXPECT_TRUE(ids.on_links);
  EXPECT_DOUBLE_EQ(ids.start_s, 11);
  EXPECT_DOUBLE_EQ(ids.end_s, 15);
  const RecommendationPart reduced = part("all-reduces of the MLPs");
  EXPECT_DOUBLE_EQ(reduced.seconds, 2 + 4);
  EXPECT_DOUBLE_EQ(reduced.start_s, 20);
  EXPECT_DOUBLE_EQ(reduced.end_s, 32);
  double communication = 0, last = 0;
  for (const RecommendationPart& p : times.parts) {
    if (p.on_links) communication += p.seconds;
    EXPECT_LE(last, p.start_s);
    last = p.start_s;
  }
  EXPECT_DOUBLE_EQ(communication, times.communication_s);
}

TEST(RecommendationStep, IdsOfTheNextBatchDelayOtherExchangesAlone) {
  RecommendationStep step = two_ranks();
  const RecommendationTimes before = simulate_recommendation(step);
  step.exchange_ids_s = 4;  // from 11 to 15, beside the top MLP: nothing else is sent then
  const RecommendationTimes hidden = simulate_recommendation(step);
  EXPECT_DOUBLE_EQ(hidden.seconds, before.seconds);
  EXPECT_DOUBLE_EQ(hidden.compute_s, before.compute_s);
  EXPECT_DOUBLE_EQ(hidden.communication_s, before.communication_s + 4);
  step.exchange_ids_s = 10;  // until 21: the bucket that is ready at 20 and all after it wait
  EXPECT_DOUBLE_EQ(simulate_recommendation(step).seconds, before.seconds + 1);
}

TEST(RecommendationStep, WithoutCommunicationIsTheSlowestRank) {
  RecommendationStep step = two_ranks();
  step.exchange_s = step.exchange_gradients_s = 0;
  step.buckets.clear();
  const RecommendationTimes times = simulate_recommendation(step);
  EXPECT_DOUBLE_EQ(times.seconds, times.compute_s);
  EXPECT_DOUBLE_EQ(times.exposed_s, 0);
}

TEST(RecommendationStep, ReplicatedTablesAreReducedAfterTheirBackwardPass) {
  RecommendationStep step = two_ranks();
  const double before = simulate_recommendation(step).seconds;
  step.reduce_tables_s = 2;
  EXPECT_DOUBLE_EQ(simulate_recommendation(step).seconds, before + 2);
}

}  // namespace
}  // namespace tilecast
