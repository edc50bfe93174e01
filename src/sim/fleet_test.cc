// Several servers, data-parallel ranks, pipelines, prefill pools and drafts.

#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving.h"
#include "test_support.h"

namespace tilecast {
namespace {

double tokens_of(const ServingBatch& batch) {
  double tokens = static_cast<double>(batch.decoding);
  for (const PromptChunk& p : batch.prompts) tokens += static_cast<double>(p.tokens);
  return tokens;
}

/// 10 ms a step, 0.1 ms for each token of the rank with the most, and a little for its context.
double busiest_s(std::span<const ServingBatch> ranks) {
  double tokens = 0, context = 0;
  for (const ServingBatch& batch : ranks) {
    tokens = std::max(tokens, tokens_of(batch));
    context = std::max(context, batch.decode_context * static_cast<double>(batch.decoding));
  }
  return 10e-3 + 1e-4 * tokens + 1e-7 * context;
}

ServingStepTimes stages(int64_t count) {
  return [count](auto ranks, auto& stage_s) {
    stage_s.assign(static_cast<size_t>(count), busiest_s(ranks) / static_cast<double>(count));
  };
}

/// The same for all steps.
ServingStepTimes always(const std::vector<double>& seconds) {
  return [seconds](auto, auto& stage_s) { stage_s = seconds; };
}

ServerPool pool_of(Software software, int64_t servers = 1) {
  return {.servers = servers,
          .limits = {.software = software, .max_num_seqs = 32, .cache_blocks = 1 << 14},
          .step_s = stages(1)};
}

ServingLoad poisson(double rate, int64_t requests = 300) {
  return {.requests = draw_requests({.requests = requests,
                                     .rate = rate,
                                     .prompt_low = 50,
                                     .prompt_high = 400,
                                     .output_low = 5,
                                     .output_high = 90})};
}

ServingLoad clients(int64_t count, int64_t requests = 300) {
  ServingLoad load = poisson(0, requests);
  load.concurrency = count;
  return load;
}

const Software kSchedulers[] = {software_of("vllm"), software_of("sglang"), software_of("trtllm")};

void expect_same(const ServingResult& a, const ServingResult& b) {
  ASSERT_EQ(a.requests.size(), b.requests.size());
  for (size_t i = 0; i < a.requests.size(); ++i) {
    EXPECT_EQ(a.requests[i].sent_s, b.requests[i].sent_s) << i;
    EXPECT_EQ(a.requests[i].first_s, b.requests[i].first_s) << i;
    EXPECT_EQ(a.requests[i].last_s, b.requests[i].last_s) << i;
  }
  EXPECT_EQ(a.all.requests_per_s, b.all.requests_per_s);
  EXPECT_EQ(a.mean_batch, b.mean_batch);
  EXPECT_EQ(a.busy_share, b.busy_share);
  EXPECT_EQ(a.cache_use, b.cache_use);
  EXPECT_EQ(a.most_in_flight, b.most_in_flight);
}

TEST(Fleet, OneReplicaBehindARouterIsTheServer) {
  for (const Software software : kSchedulers) {
    for (const ServingLoad& load : {poisson(4), clients(12)}) {
      Fleet fleet{.pool = pool_of(software)};
      const ServingResult alone = simulate_serving(
          load, fleet.pool.limits,
          [](const ServingBatch& batch) { return busiest_s(std::span(&batch, 1)); });
      for (const Router router : {Router::kRoundRobin, Router::kLeastLoaded}) {
        fleet.router = router;
        expect_same(simulate_fleet(load, fleet), alone);
      }
    }
  }
}

TEST(Fleet, TwoReplicasInTurnAreTwoServersWithHalfOfTheLoad) {
  const ServingLoad load = poisson(6);
  Fleet fleet{.pool = pool_of(software_of("vllm"), 2), .router = Router::kRoundRobin};
  fleet.pool.limits.longest_jump = 1;  // arrivals at other servers end a jump too
  const ServingResult both = simulate_fleet(load, fleet);
  for (const size_t which : {0, 1}) {
    ServingLoad half;
    for (size_t i = which; i < load.requests.size(); i += 2)
      half.requests.push_back(load.requests[i]);
    Fleet single{.pool = pool_of(software_of("vllm"))};
    single.pool.limits.longest_jump = 1;
    const ServingResult one = simulate_fleet(half, single);
    for (size_t i = 0; i < one.requests.size(); ++i) {
      EXPECT_EQ(one.requests[i].first_s, both.requests[2 * i + which].first_s);
      EXPECT_EQ(one.requests[i].last_s, both.requests[2 * i + which].last_s);
    }
  }
}

TEST(Fleet, MoreReplicasAreNeverSlower) {
  const ServingLoad load = clients(48);
  double before = 1e9;
  for (const int64_t servers : {1, 2, 4}) {
    const ServingResult r = simulate_fleet(load, {.pool = pool_of(software_of("vllm"), servers)});
    EXPECT_LT(r.all.e2e.mean_s, before) << servers;
    before = r.all.e2e.mean_s;
  }
}

/// The first token comes from the prefill pool alone; the decode pool alone gets each request when
/// the prefill pool has ended with it.
TEST(Fleet, WithAnInfiniteLinkSeparatePoolsAreThePoolsAlone) {
  for (const Software software : kSchedulers) {
    const ServingLoad load = poisson(5);
    Fleet fleet{.pool = pool_of(software, 2), .prefill = pool_of(software, 2)};
    fleet.transfer_s = [](int64_t) { return 0.0; };
    fleet.pool.limits.longest_jump = 1;  // what another pool does ends a jump too
    const ServingResult both = simulate_fleet(load, fleet);

    ServingLoad prompts = load;
    for (RequestSpec& r : prompts.requests) r.output = 1;
    const ServingResult first = simulate_fleet(prompts, {.pool = pool_of(software, 2)});
    for (size_t i = 0; i < load.requests.size(); ++i)
      EXPECT_EQ(both.requests[i].first_s, first.requests[i].first_s) << i;

    // Prompts that take no time, arriving when their prefill has ended.
    Fleet decode{.pool = pool_of(software, 2), .prefill = pool_of(software, 1)};
    decode.pool.limits.longest_jump = 1;
    decode.prefill->limits.max_num_seqs = 1 << 20;
    decode.prefill->limits.max_num_batched_tokens = 1 << 30;
    decode.prefill->limits.cache_blocks = 1 << 30;
    decode.prefill->step_s = always({0});
    decode.transfer_s = [](int64_t) { return 0.0; };
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < first.requests.size(); ++i)
      order.emplace_back(first.requests[i].last_s, i);
    std::sort(order.begin(), order.end());
    ServingLoad rest;
    for (const auto& [at, i] : order) {
      rest.requests.push_back(load.requests[i]);
      rest.requests.back().arrival_s = at;
    }
    const ServingResult second = simulate_fleet(rest, decode);
    for (size_t k = 0; k < order.size(); ++k) {
      const double expected = second.requests[k].last_s;
      EXPECT_NEAR(both.requests[order[k].second].last_s, expected, 1e-9 * expected) << k;
    }
  }
}

TEST(Fleet, ASlowerLinkDelaysAllTokensButTheFirst) {
  Fleet fleet{.pool = pool_of(software_of("vllm")), .prefill = pool_of(software_of("vllm"))};
  const ServingLoad load = poisson(2);
  double before = 0;
  for (const double seconds : {0.0, 0.05, 0.3}) {
    fleet.transfer_s = [&](int64_t) { return seconds; };
    const ServingResult r = simulate_fleet(load, fleet);
    EXPECT_GT(r.all.e2e.mean_s, before);
    EXPECT_GE(r.mean_transfer_s, seconds);
    before = r.all.e2e.mean_s;
  }
}

TEST(Fleet, CachesThatArriveJoinTheNextDecodeStep) {
  for (const Software software : kSchedulers) {
    Fleet fleet{.pool = pool_of(software), .prefill = pool_of(software, 3)};
    fleet.transfer_s = [](int64_t) { return 0.0; };
    fleet.pool.limits.longest_jump = 1;
    int64_t steps = 0;
    fleet.pool.step_s = [&](auto ranks, auto& stage_s) {
      EXPECT_TRUE(ranks[0].prompts.empty());
      steps += 1;
      stage_s = {1.0};
    };
    const ServingLoad load{.requests = {{0, 100, 11}, {2.5, 100, 11}, {4.5, 100, 11}}};
    simulate_fleet(load, fleet);
    EXPECT_EQ(steps, 15) << static_cast<int>(software);  // 10 of the first, then 2 and 3 more
  }
}

TEST(Fleet, AnswersOfOneTokenStayInThePrefillPool) {
  Fleet fleet{.pool = pool_of(software_of("vllm")), .prefill = pool_of(software_of("vllm"))};
  fleet.transfer_s = [](int64_t) { return 1e6; };
  ServingLoad load = poisson(2, 20);
  for (RequestSpec& r : load.requests) r.output = 1;
  EXPECT_LT(simulate_fleet(load, fleet).all.e2e.p99_s, 1);
}

/// Runs of steps without a look at the requests (DecodeRun) are left out if no two steps are alike.
/// Where a step's time does not depend on the context, both ways are the same but for rounding.
/// Returns the preemptions.
int64_t expect_runs_are_single_steps(Fleet fleet, const ServingLoad& load) {
  const ServingResult runs = simulate_fleet(load, fleet);
  fleet.pool.limits.longest_jump = 1;
  if (fleet.prefill) fleet.prefill->limits.longest_jump = 1;
  const ServingResult single = simulate_fleet(load, fleet);
  EXPECT_EQ(runs.requests.size(), single.requests.size());
  for (size_t i = 0; i < runs.requests.size(); ++i) {
    EXPECT_NEAR(runs.requests[i].first_s, single.requests[i].first_s, 1e-9);
    EXPECT_NEAR(runs.requests[i].last_s, single.requests[i].last_s, 1e-9);
  }
  // The blocks of a jump are taken to come evenly.
  EXPECT_NEAR(runs.cache_use, single.cache_use, 1e-3);
  EXPECT_NEAR(runs.mean_batch, single.mean_batch, 1e-9);
  EXPECT_EQ(runs.preemptions, single.preemptions);
  return runs.preemptions;
}

/// Seconds of a rank, with a part for each token.
double tokens_s(std::span<const ServingBatch> ranks) {
  double tokens = 0;
  for (const ServingBatch& batch : ranks) tokens = std::max(tokens, tokens_of(batch));
  return 1e-3 * std::sqrt(37 + tokens);
}

TEST(Fleet, StepsWithoutALookAtTheRequestsAreTheSame) {
  int64_t preemptions = 0;
  for (const Software software : {software_of("vllm"), software_of("trtllm")}) {
    for (const int64_t dp : {1, 2}) {
      for (const int64_t blocks : {60, 150, 2000}) {
        for (const bool pools : {false, true}) {
          Fleet fleet;
          fleet.pool = pool_of(software, 3);
          fleet.pool.step_s = [](auto ranks, auto& stage_s) { stage_s = {tokens_s(ranks)}; };
          fleet.pool.limits.block_tokens = default_block_tokens(software);
          fleet.pool.limits.cache_blocks = blocks;
          fleet.pool.limits.dp = dp;
          if (pools) {
            fleet.prefill = fleet.pool;
            fleet.prefill->servers = 2;
            fleet.transfer_s = [](int64_t prompt) { return 1e-5 * static_cast<double>(prompt); };
          }
          preemptions += expect_runs_are_single_steps(fleet, clients(40));
        }
      }
    }
  }
  EXPECT_GT(preemptions, 0);
}

TEST(Fleet, GoodputIsNeverAboveThroughput) {
  for (const double rate : {1.0, 4.0, 20.0}) {
    Fleet fleet{.pool = pool_of(software_of("vllm"), 2)};
    const ServingResult r = simulate_fleet(poisson(rate), fleet);
    for (const double limit : {1e-3, 0.02, 0.1, 1e3}) {
      EXPECT_LE(goodput(r, limit, limit), r.all.requests_per_s * (1 + 1e-12));
      EXPECT_LE(goodput(r, limit, std::nullopt), r.all.requests_per_s * (1 + 1e-12));
    }
    EXPECT_DOUBLE_EQ(goodput(r, 1e9, 1e9), r.all.requests_per_s);
  }
}

TEST(DataParallelRanks, EachHasItsSequencesAndTheBusiestDecidesTheStep) {
  ServerPool pool = pool_of(software_of("vllm"));
  pool.limits.dp = 2;
  std::vector<std::array<int64_t, 2>> steps;
  pool.step_s = [&](auto ranks, auto& stage_s) {
    EXPECT_EQ(ranks.size(), 2U);
    steps.push_back(
        {static_cast<int64_t>(tokens_of(ranks[0])), static_cast<int64_t>(tokens_of(ranks[1]))});
    stage_s = {1.0};
  };
  pool.limits.longest_jump = 1;
  // Three requests: the first and the third on rank 0.
  const ServingLoad load{.requests = {{0, 10, 3}, {0, 20, 3}, {0, 5, 3}}};
  simulate_fleet(load, {.pool = pool});
  EXPECT_EQ(steps, (std::vector<std::array<int64_t, 2>>{{15, 20}, {2, 1}, {2, 1}}));
}

TEST(DataParallelRanks, HaveCachesOfTheirOwn) {
  ServerPool pool = pool_of(software_of("vllm"));
  pool.limits.dp = 4;
  pool.limits.cache_blocks = 8;  // 128 tokens of each rank
  const ServingLoad load{.requests = std::vector<RequestSpec>(4, {0, 100, 20})};
  EXPECT_EQ(simulate_fleet(load, {.pool = pool}).preemptions, 0);
  pool.limits.dp = 1;
  const ServingResult one = simulate_fleet(load, {.pool = pool});
  EXPECT_GT(one.all.ttft.p99_s, 0.1);  // they wait for each other
}

TEST(Pipeline, KeepsAsManyBatchesInFlightAsItHasStages) {
  // Stages of 1 s: one sequence alone takes a token every 4 s, four take one a second together.
  ServerPool pool = pool_of(software_of("vllm"));
  pool.limits.pp = 4;
  pool.step_s = always({1, 1, 1, 1});
  const ServingLoad one{.requests = {{0, 1, 11}}};
  EXPECT_DOUBLE_EQ(simulate_fleet(one, {.pool = pool}).requests[0].last_s, 44);
  const ServingLoad four{.requests = std::vector<RequestSpec>(4, {0, 1, 11})};
  const ServingResult r = simulate_fleet(four, {.pool = pool});
  EXPECT_DOUBLE_EQ(r.requests[0].last_s, 44);
  EXPECT_DOUBLE_EQ(r.requests[3].last_s, 47);
  EXPECT_NEAR(r.busy_share, 44.0 / 47, 1e-12);
}

TEST(Pipeline, SharesTheCacheAndNeverGetsStuck) {
  for (const Software software : kSchedulers) {
    ServerPool pool = pool_of(software);
    pool.limits.pp = 4;
    pool.limits.block_tokens = default_block_tokens(software);
    pool.limits.cache_blocks = 640 / pool.limits.block_tokens;  // one long request and a bit
    pool.step_s = stages(4);
    const ServingResult r = simulate_fleet(clients(16, 100), {.pool = pool});
    EXPECT_EQ(r.all.requests, 100);
    for (const RequestTimes& t : r.requests) EXPECT_GT(t.last_s, t.sent_s);
  }
}

/// Batches take turns, share the cache, and get requests while their steps run.
TEST(Pipeline, StepsWithoutALookAtTheRequestsAreTheSame) {
  int64_t preemptions = 0;
  for (const Software software :
       {software_of("vllm"), software_of("trtllm"), software_of("sglang")}) {
    for (const int64_t dp : {1, 2}) {
      for (const int64_t tokens : {1600, 3000, 32000}) {
        for (const bool open : {false, true}) {
          Fleet fleet;
          fleet.pool = pool_of(software, 2);
          fleet.pool.step_s = [](auto ranks, auto& stage_s) {
            stage_s = {tokens_s(ranks), 0.9 * tokens_s(ranks), tokens_s(ranks)};
          };
          fleet.pool.limits.block_tokens = default_block_tokens(software);
          fleet.pool.limits.cache_blocks = tokens / fleet.pool.limits.block_tokens;
          fleet.pool.limits.dp = dp;
          fleet.pool.limits.pp = 3;
          preemptions += expect_runs_are_single_steps(fleet, open ? poisson(8) : clients(40));
        }
      }
    }
  }
  EXPECT_GT(preemptions, 0);
}

TEST(Pipeline, TheSlowestStageLimitsTheThroughput) {
  ServerPool pool = pool_of(software_of("vllm"));
  pool.limits.pp = 2;
  pool.step_s = always({1, 3});
  const ServingResult r =
      simulate_fleet({.requests = std::vector<RequestSpec>(2, {0, 1, 101})}, {.pool = pool});
  // Two batches of one sequence take turns on the stage of 3 s.
  EXPECT_NEAR(r.all.output_tokens_per_s, 1 / 3.0, 0.01);
}

TEST(Drafts, WriteSeveralTokensAStep) {
  ServerPool pool = pool_of(software_of("vllm"));
  pool.step_s = always({1});
  const ServingLoad load{.requests = {{0, 10, 101}}};
  EXPECT_DOUBLE_EQ(simulate_fleet(load, {.pool = pool}).requests[0].last_s, 101);
  pool.limits.tokens_per_step = 2.5;
  EXPECT_DOUBLE_EQ(simulate_fleet(load, {.pool = pool}).requests[0].last_s, 41);
  pool.limits.longest_jump = 1;
  EXPECT_DOUBLE_EQ(simulate_fleet(load, {.pool = pool}).requests[0].last_s, 41);
}

}  // namespace
}  // namespace tilecast
