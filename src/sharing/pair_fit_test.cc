#include "sharing/pair_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace tilecast {
namespace {

double random_in(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

/// Jobs with effects of their own, and all their pairs as the law and these effects have them.
struct Planted {
  std::vector<double> slowed, slows;
  std::vector<size_t> models;
  std::vector<PairRow> rows;
};

Planted planted(size_t jobs, uint64_t seed) {
  Rng rng(seed);
  Planted p;
  for (size_t i = 0; i < jobs; ++i) {
    p.slowed.push_back(random_in(rng, -0.5, 0.5));
    p.slows.push_back(random_in(rng, -0.5, 0.5));
    p.models.push_back(i / 2);
  }
  for (size_t i = 0; i < jobs; ++i) {
    for (size_t j = 0; j < jobs; ++j) {
      const double law = random_in(rng, 0.3, 0.8);
      p.rows.push_back({i, j, law, with_pair_effects(law, p.slowed[i] + p.slows[j])});
    }
  }
  return p;
}

TEST(PairFit, FindsPlantedEffects) {
  const Planted p = planted(8, 1);
  const PairFit fit = fit_pairs(p.rows, p.models);
  for (const PairRow& row : p.rows)
    EXPECT_NEAR(fitted_speed(fit, row), row.measured, 0.02 * row.measured)
        << row.job << " beside " << row.partner;
  // A constant may move from all that are slowed to all that slow.
  for (size_t i = 1; i < p.models.size(); ++i) {
    EXPECT_NEAR(fit.jobs[i].slowed_log - fit.jobs[0].slowed_log, p.slowed[i] - p.slowed[0], 0.1);
    EXPECT_NEAR(fit.jobs[i].slows_log - fit.jobs[0].slows_log, p.slows[i] - p.slows[0], 0.1);
  }
  EXPECT_LT(fit.spread_log, 0.05);
}

TEST(PairFit, WithoutPairsIsTheLaw) {
  const std::vector<size_t> models = {0, 0, 1};
  const PairFit fit = fit_pairs({}, models);
  ASSERT_EQ(fit.jobs.size(), 3u);
  for (const PairFit::Effect& effect : fit.jobs) {
    EXPECT_FALSE(effect.known);
    EXPECT_EQ(effect.slowed_log, 0);
    EXPECT_EQ(effect.slows_log, 0);
  }
  EXPECT_EQ(fitted_speed(fit, {0, 2, 0.7, 1}), 0.7);
}

TEST(PairFit, OrderOfRowsDoesNotMatter) {
  Planted p = planted(6, 2);
  const PairFit fit = fit_pairs(p.rows, p.models);
  std::reverse(p.rows.begin(), p.rows.end());
  std::rotate(p.rows.begin(), p.rows.begin() + 7, p.rows.end());
  const PairFit again = fit_pairs(p.rows, p.models);
  EXPECT_EQ(fit.spread_log, again.spread_log);
  for (size_t i = 0; i < fit.jobs.size(); ++i) {
    EXPECT_EQ(fit.jobs[i].slowed_log, again.jobs[i].slowed_log);
    EXPECT_EQ(fit.jobs[i].slows_log, again.jobs[i].slows_log);
  }
}

TEST(PairFit, AModelsOtherBatchesLearnFromIt) {
  // Job 1 has no pair; job 0, of the same model, is slowed more than the law says.
  const std::vector<size_t> models = {0, 0, 1, 2};
  const std::vector<PairRow> rows = {{0, 2, 0.6, 0.4}, {0, 2, 0.7, 0.5}};
  const PairFit fit = fit_pairs(rows, models);
  EXPECT_TRUE(fit.jobs[1].known);
  EXPECT_GT(fit.jobs[1].slowed_log, 0.1);
  EXPECT_LT(fit.jobs[1].slowed_log, fit.jobs[0].slowed_log);
  EXPECT_FALSE(fit.jobs[3].known);
}

TEST(PairFit, OneWildRowMovesLittle) {
  Planted p = planted(8, 3);
  const PairFit fit = fit_pairs(p.rows, p.models);
  p.rows[9].measured = 1e-6;
  const PairFit wild = fit_pairs(p.rows, p.models);
  for (const PairRow& row : p.rows)
    EXPECT_NEAR(fitted_speed(wild, row), fitted_speed(fit, row), 0.12);
}

TEST(PairFit, RowsThatAreLeftOutAreNotSeen) {
  Planted p = planted(6, 4);
  const std::vector<LeftOutRow> by_pair = leave_out_pairs(p.rows, p.models);
  const std::vector<LeftOutRow> by_job = leave_out_jobs(p.rows, p.models, 2, 1);
  EXPECT_EQ(by_pair.size(), p.rows.size());
  // A job keeps 2 of its 6 partners: 4 are left out in both directions, itself in one.
  EXPECT_GE(by_job.size(), 6u * 7u);
  EXPECT_LE(by_job.size(), 6u * 8u);
  // What is measured of a pair does not change its own forecast.
  const size_t changed = 2;  // job 0 beside job 2
  p.rows[changed].measured = 0.1;
  for (const LeftOutRow& before : by_pair) {
    if (before.row != changed) continue;
    for (const LeftOutRow& after : leave_out_pairs(p.rows, p.models)) {
      if (after.row != changed) continue;
      EXPECT_EQ(after.speed, before.speed);
    }
  }
  EXPECT_EQ(leave_out_pairs(p.rows, p.models, 3).size(), p.rows.size());
  EXPECT_TRUE(leave_out_pairs({}, p.models).empty());
}

TEST(PairFit, SpeedsStayAtMostThatAlone) {
  const std::vector<size_t> models = {0, 1};
  const std::vector<PairRow> rows = {{0, 1, 1.0, 0.5}, {1, 0, 0.9, 1.7}, {0, 0, 1e-3, 1e-9}};
  const PairFit fit = fit_pairs(rows, models);
  for (const PairRow& row : rows) {
    EXPECT_LE(fitted_speed(fit, row), 1);
    EXPECT_GT(fitted_speed(fit, row), 0);
  }
  EXPECT_TRUE(std::isfinite(fit.spread_log));
}

}  // namespace
}  // namespace tilecast
