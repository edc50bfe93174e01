// The search for a way to serve against forecasts of single servers.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/rng.h"
#include "base/text.h"
#include "request/access.h"
#include "serving_query.h"
#include "software/software.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

TEST(ServingPlan, EncodeWorkersAreNotSearched) {
  ServingQuery query = query_of({"H100"});
  query.request.deployment.encode.workers = 1;
  EXPECT_ERROR(plan_serving(forecaster(), load_model_ref("llama-3-8b"), query), kUnsupported,
               "do not search for `encode-workers`");
}

TEST(ServingPlan, CandidatesAreThoseOfForecasts) {
  const ModelRef model = load_model_ref("llama-3-8b");
  const ServingQuery query = query_of({"H100", "L40S"});
  const ServingPlan plan = plan_serving(forecaster(), model, query);
  ASSERT_GT(plan.meeting, 5u);
  for (size_t i = 0; i < plan.simulated; i += 3) {
    const ServingCandidate& c = plan.candidates[i];
    const GenerationForecast f = forecast_generation(
        forecaster(), model, query.hardware[c.hardware].gpu, request_of(plan, c));
    const ServerMetrics& part = f.serving->steady_or_all();
    EXPECT_EQ(c.tpot_s, part.tpot.p99.value);
    // Servers with a pool of prefill workers are forecast together, others one for all.
    const double replicas = c.prefill_workers > 0 ? 1 : static_cast<double>(c.replicas);
    EXPECT_DOUBLE_EQ(c.gpu_tokens_per_s * static_cast<double>(plan.gpus),
                     part.output_tokens_per_s * replicas);
    EXPECT_EQ(c.meets, c.ttft_s <= 0.5 && c.tpot_s <= 0.02);
    EXPECT_LE(c.gpus(), plan.gpus);
  }
}

/// The options that a plan prints for a row give its numbers when they are given to a forecast.
TEST(ServingPlan, RowsAreForecastsWithTheirOptions) {
  struct Asked {
    const char *model, *software;
    std::vector<std::string> gpus;
    Percentile percentile;
  };
  const Asked plans[] = {{"llama-3-8b", "vllm", {"H100", "L40S"}, Percentile::kP99},
                         {"llama-3.1-8b", "sglang", {"H200"}, Percentile::kMedian},
                         {"deepseek-v2-lite", "trtllm", {"H100"}, Percentile::kMean}};
  for (const Asked& asked : plans) {
    const ModelRef model = load_model_ref(asked.model);
    ServingQuery query = query_of(asked.gpus);
    query.percentile = asked.percentile;
    query.request.execution.software = software_of(asked.software);
    query.space.concurrency = {4, 64};
    const ServingPlan plan = plan_serving(forecaster(), model, query);
    ASSERT_GT(plan.meeting, 1u) << asked.model;
    for (size_t i = 0; i < std::min<size_t>(6, plan.simulated); ++i) {
      const ServingCandidate& c = plan.candidates[i];
      std::vector<GivenOption> given = {
          {"prompt", "1024"}, {"output", "64"}, {"software", asked.software}};
      const std::string options = options_text(plan, c);
      const std::vector<std::string> words = split(options, ' ');
      for (size_t w = 0; w + 1 < words.size(); w += 2)
        given.push_back({words[w].substr(2), words[w + 1]});
      ASSERT_EQ(given[3].name, "gpu");
      const GpuRef gpu = load_gpu_ref(given[3].text);
      given.erase(given.begin() + 3);
      const GenerationForecast f =
          forecast_generation(forecaster(), model, gpu, make_request(given));
      const ServerMetrics& part = f.serving->steady_or_all();
      const auto of = [&](const Distribution& d) {
        return asked.percentile == Percentile::kMean     ? d.mean.value
               : asked.percentile == Percentile::kMedian ? d.median.value
                                                         : d.p99.value;
      };
      EXPECT_EQ(c.ttft_s, of(part.ttft)) << options;
      EXPECT_EQ(c.tpot_s, of(part.tpot)) << options;
      const double replicas = c.prefill_workers > 0 ? 1 : static_cast<double>(c.replicas);
      EXPECT_DOUBLE_EQ(c.requests_per_s, part.requests_per_s * replicas) << options;
      EXPECT_EQ(c.peak_bytes, f.memory.peak_bytes) << options;
    }
  }
}

/// vLLM does not start where its cache holds no sequence of the model's longest length: the plan
/// limits it to what is asked for.
TEST(ServingPlan, ServersThatNeedALimitOfTheLengthGetIt) {
  ServingQuery query = query_of({"L4"});
  query.ttft_s = query.tpot_s = query.request.load.ttft_s = query.request.load.tpot_s = {};
  query.gpus = 1;
  query.space.dtypes = {"bf16"};
  query.space.concurrency = {4};
  for (const char* const software : {"vllm", "sglang"}) {
    query.request.execution.software = software_of(software);
    const ServingPlan plan = plan_serving(forecaster(), load_model_ref("llama-3.1-8b"), query);
    ASSERT_EQ(plan.simulated, 1u) << software;
    const ServingCandidate& c = plan.candidates.front();
    const bool limited = std::string(software) == "vllm";
    EXPECT_EQ(c.max_model_len, limited ? std::optional<int64_t>(1088) : std::nullopt) << software;
    EXPECT_EQ(options_text(plan, c).find(" --max-model-len 1088 ") != std::string::npos, limited);
    EXPECT_EQ(launch_lines(plan)[0].command.find(" --max-model-len 1088 ") != std::string::npos,
              limited);
  }
}

/// The commands of servers are words of data/software with the candidate's values.
TEST(ServingPlan, LaunchLinesHaveTheOptionsOfTheFirst) {
  ServingPlan plan{.model = "mixtral-8x7b", .software = "vllm"};
  plan.meeting = 1;
  plan.used.load.max_num_seqs = 100;
  plan.used.execution.max_num_batched_tokens = 4096;
  plan.used.execution.gpu_memory_utilization = 0.85;
  plan.candidates = {{.tp = 2, .pp = 3, .dp = 4, .ep = 8, .dtype = "fp8", .kv_dtype = "fp8"}};
  const auto line = [&](const char* software) {
    plan.software = software;
    const std::vector<LaunchLine> lines = launch_lines(plan);
    return lines.empty() ? LaunchLine{} : lines.front();
  };
  EXPECT_EQ(line("vllm").command,
            "vllm serve mixtral-8x7b --tensor-parallel-size 2 --pipeline-parallel-size 3 "
            "--data-parallel-size 4 --enable-expert-parallel --quantization fp8 --kv-cache-dtype "
            "fp8 --max-num-seqs 100 --max-num-batched-tokens 4096 --gpu-memory-utilization 0.85");
  EXPECT_EQ(line("vllm").without, "");
  EXPECT_EQ(line("sglang").command,
            "python -m sglang.launch_server --model-path mixtral-8x7b --tp-size 8 --pp-size 3 "
            "--dp-size 4 --enable-dp-attention --ep-size 8 --quantization fp8 --kv-cache-dtype "
            "fp8_e4m3 --max-running-requests 100 --chunked-prefill-size 4096 "
            "--mem-fraction-static 0.85");
  EXPECT_EQ(line("trtllm").command,
            "trtllm-serve mixtral-8x7b --tp_size 2 --pp_size 3 --ep_size 8 --max_batch_size 100 "
            "--max_num_tokens 4096 --kv_cache_free_gpu_memory_fraction 0.85");
  EXPECT_EQ(line("trtllm").without, "--dp 4 --dtype fp8 --kv-dtype fp8");
  EXPECT_EQ(line("pytorch").command, "");
  plan.candidates.front() = {.all2all = All2All::kDeepEp, .dtype = "bf16"};
  EXPECT_NE(line("vllm").command.find("--all2all-backend deepep_low_latency --dtype bfloat16 "),
            std::string::npos);
  EXPECT_EQ(line("trtllm").without, "--all2all-backend deepep");
}

/// No name in braces is left, whatever a file of data/software has.
TEST(ServingPlan, LaunchLinesOfAllServersAreComplete) {
  for (const std::string& software : server_software_names()) {
    ServingPlan plan{.model = "m", .software = software};
    plan.meeting = 1;
    plan.used.load.max_num_seqs = 100;
    plan.used.execution.gpu_memory_utilization = 0.85;
    plan.candidates = {{.tp = 2,
                        .pp = 3,
                        .dp = 4,
                        .ep = 8,
                        .all2all = All2All::kDeepEp,
                        .dtype = "fp8",
                        .kv_dtype = "fp8"}};
    const std::vector<LaunchLine> lines = launch_lines(plan);
    ASSERT_EQ(lines.size(), 1u) << software;
    EXPECT_EQ(lines[0].command.find_first_of("{}"), std::string::npos) << lines[0].command;
  }
}

/// Listed candidates have the intervals and warnings of their forecasts; each kind of GPU warns.
TEST(ServingPlan, ListedRowsHaveIntervalsAndKindsWarn) {
  const ModelRef model = load_model_ref("llama-3-8b");
  const ServingQuery query = query_of({"H100", "MI300X"});
  const ServingPlan plan = plan_serving(forecaster(), model, query);
  ASSERT_GE(plan.layouts, 3u);
  for (size_t i = 0; i < std::min(ServingPlan::kListed, plan.layouts); ++i) {
    const ServingCandidate& c = plan.candidates[i];
    ASSERT_TRUE(c.intervals);
    EXPECT_LE(c.intervals->tpot.low, c.tpot_s);
    EXPECT_GE(c.intervals->tpot.high, c.tpot_s);
    EXPECT_LT(c.intervals->gpu_tokens_per_s.low, c.gpu_tokens_per_s);
    EXPECT_GT(c.intervals->gpu_tokens_per_s.high, c.gpu_tokens_per_s);
    const GenerationForecast f = forecast_generation(
        forecaster(), model, query.hardware[c.hardware].gpu, request_of(plan, c));
    const ServerMetrics& part = f.serving->steady_or_all();
    EXPECT_EQ(c.intervals->ttft.low, part.ttft.p99.low);
    EXPECT_EQ(c.intervals->tpot.high, part.tpot.p99.high);
    EXPECT_EQ(c.intervals->gpu_tokens_per_s.low,
              c.gpu_tokens_per_s * part.e2e.mean.value / part.e2e.mean.high);
    EXPECT_EQ(plan.limits_are_certain(*c.intervals),
              c.intervals->ttft.high <= 0.5 && c.intervals->tpot.high <= 0.02);
  }
  ASSERT_EQ(plan.warnings.size(), 2u);
  const auto best = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                 [](const ServingCandidate& c) { return c.hardware == 1; });
  ASSERT_TRUE(best != plan.candidates.end() && best->intervals);
  EXPECT_TRUE(best->intervals->extrapolated);
  EXPECT_TRUE(std::any_of(plan.warnings[1].begin(), plan.warnings[1].end(),
                          [](const Warning& w) { return w.code == WarningCode::kExtrapolated; }));
}

/// A reason about another option than the GPU is not that of another GPU.
TEST(ServingPlan, AlternativesKeepTheGpu) {
  const ModelRef model = load_model_ref("llama-3-8b");
  ServingQuery query = query_of({"H100", "B200"});
  query.has_prices = true;
  query.hardware[0].price.price_per_gpu_hour = 2.5;
  query.hardware[1].price.price_per_gpu_hour = 5;
  const ServingPlan plan = plan_serving(forecaster(), model, query);
  EXPECT_TRUE(plan.ranks_by_cost());
  size_t others = 0;
  for (const PlanAlternative& a : plan.alternatives) {
    const ServingCandidate& c = plan.candidates[a.candidate];
    EXPECT_EQ(c.hardware == plan.candidates.front().hardware, a.option != "gpu") << a.option;
    if (c.meets) {
      EXPECT_GE(
          plan.cost_of_million_tokens(c),
          plan.cost_of_million_tokens(plan.candidates.front()) * (1 - ServingPlan::kTieRatio));
    }
    others += a.option == "gpu" ? 0 : 1;
  }
  EXPECT_GT(others, 2u);
}

/// The rows of a table are layouts, the simplest of those that tie first.
TEST(ServingPlan, EachLayoutStandsOnceAndTheSimplestTieFirst) {
  const ServingPlan plan =
      plan_serving(forecaster(), load_model_ref("llama-3-8b"), query_of({"H100"}));
  const auto techniques = [](const ServingCandidate& c) {
    return (c.tp > 1) + (c.pp > 1) + (c.dp > 1) + (c.ep > 1) + (c.prefill_workers > 0);
  };
  ASSERT_GT(plan.layouts, 1u);
  ASSERT_LE(plan.layouts, plan.meeting);
  double most = 0;
  std::set<std::string> known;
  for (size_t i = 0; i < plan.layouts; ++i) {
    ServingCandidate c = plan.candidates[i];
    most = std::max(most, c.gpu_tokens_per_s);
    c.concurrency = 1;
    EXPECT_TRUE(known.insert(options_text(plan, c)).second) << i;
  }
  const ServingCandidate& first = plan.candidates.front();
  const double least = most * (1 - ServingPlan::kTieRatio);
  EXPECT_GE(first.gpu_tokens_per_s, least);
  for (size_t i = 0; i < plan.layouts; ++i)
    EXPECT_EQ(plan.candidates[i].ties, plan.candidates[i].gpu_tokens_per_s >= least) << i;
  for (size_t i = 1; i < plan.layouts; ++i) {
    if (plan.candidates[i].gpu_tokens_per_s < least) continue;
    EXPECT_GE(techniques(plan.candidates[i]), techniques(first)) << i;
  }
}

/// Tensor parallelism is simpler than copies of attention that share experts.
TEST(ServingPlan, TensorParallelismComesBeforeDataParallelAttentionThatTies) {
  ServingQuery query = query_of({"H100"});
  query.gpus = 2;
  query.request.output = 256;
  query.ttft_s = query.tpot_s = query.request.load.ttft_s = query.request.load.tpot_s = {};
  query.space = {.pp = {1}, .ep = {1}, .prefill_workers = {0}, .dtypes = {"fp8"}};
  const ServingPlan plan = plan_serving(forecaster(), load_model_ref("mixtral-8x7b"), query);
  const auto best_of = [&](int64_t tp, int64_t dp) {
    const auto found =
        std::find_if(plan.candidates.begin(), plan.candidates.end(),
                     [&](const ServingCandidate& c) { return c.tp == tp && c.dp == dp; });
    return found == plan.candidates.end() ? ServingCandidate{} : *found;
  };
  ASSERT_TRUE(best_of(1, 2).ties);
  ASSERT_TRUE(best_of(2, 1).ties);
  EXPECT_EQ(plan.candidates.front().tp, 2);
}

/// Layouts are prepared once for all loads, and share the times of their steps.
TEST(ServingPlan, CandidatesWithExpertsAreThoseOfForecasts) {
  const ModelRef model = load_model_ref("deepseek-v2-lite");
  ServingQuery query = query_of({"H100"});
  query.space.concurrency = {1, 6, 20};
  const ServingPlan plan = plan_serving(forecaster(), model, query);
  size_t pools = 0, exchanges = 0;
  for (size_t i = 0; i < plan.candidates.size(); i += 5) {
    const ServingCandidate& c = plan.candidates[i];
    if (c.fits && !c.simulated) continue;
    const GenerationForecast f = forecast_generation(
        forecaster(), model, query.hardware[c.hardware].gpu, request_of(plan, c));
    EXPECT_EQ(c.fits, f.memory.fits);
    EXPECT_EQ(c.peak_bytes, f.memory.peak_bytes);
    if (!c.fits) continue;
    const ServerMetrics& part = f.serving->steady_or_all();
    EXPECT_EQ(c.ttft_s, part.ttft.p99.value);
    EXPECT_EQ(c.mean_tpot_s, part.tpot.mean.value);
    pools += c.prefill_workers > 0 ? 1 : 0;
    exchanges += c.dp > 1 ? 1 : 0;
  }
  EXPECT_GT(pools, 3u);
  EXPECT_GT(exchanges, 3u);
}

/// Candidates that are left out because less load misses a limit do miss one.
TEST(ServingPlan, LoadThatIsLeftOutMissesTheLimits) {
  const ModelRef model = load_model_ref("llama-3-8b");
  const ServingQuery query = query_of({"H100"});
  const ServingPlan plan = plan_serving(forecaster(), model, query);
  size_t left_out = 0;
  for (const ServingCandidate& c : plan.candidates) {
    if (c.simulated || !c.fits) continue;
    ++left_out;
    const GenerationForecast f = forecast_generation(
        forecaster(), model, query.hardware[c.hardware].gpu, request_of(plan, c));
    if (!f.memory.fits) continue;
    const ServerMetrics& part = f.serving->steady_or_all();
    EXPECT_TRUE(part.ttft.p99.value > 0.5 || part.tpot.p99.value > 0.02)
        << "tp " << c.tp << ", " << c.concurrency << " clients";
  }
  EXPECT_GT(left_out, 5u);
}

/// Without limits, all that was simulated meets them, and nothing else does.
TEST(ServingPlan, OnlySimulatedCandidatesMeet) {
  ServingQuery query = query_of({"H100"});
  query.ttft_s = query.tpot_s = query.request.load.ttft_s = query.request.load.tpot_s = {};
  query.request.prompt = 512;
  query.space.dtypes = {"bf16"};
  const ServingPlan plan = plan_serving(forecaster(), load_model_ref("llama-3-8b"), query);
  EXPECT_EQ(plan.meeting, plan.simulated);
  EXPECT_GT(plan.fitting, plan.simulated);
  for (const ServingCandidate& c : plan.candidates) {
    EXPECT_EQ(c.meets, c.simulated);
    EXPECT_EQ(c.gpu_tokens_per_s > 0, c.simulated);
  }
}

TEST(ServingPlan, NoneIsBetterThanTheFront) {
  const ServingPlan plan =
      plan_serving(forecaster(), load_model_ref("llama-3-8b"), query_of({"H100", "A100"}));
  ASSERT_GT(plan.front.size(), 3u);
  for (const size_t i : plan.front) {
    const ServingCandidate& on = plan.candidates[i];
    EXPECT_TRUE(on.meets);
    for (const ServingCandidate& c : plan.candidates) {
      if (!c.meets) continue;
      EXPECT_FALSE(c.user_tokens_per_s > on.user_tokens_per_s &&
                   c.gpu_tokens_per_s > on.gpu_tokens_per_s);
    }
  }
  for (size_t i = 1; i < plan.front.size(); ++i)
    EXPECT_GT(plan.candidates[plan.front[i]].user_tokens_per_s,
              plan.candidates[plan.front[i - 1]].user_tokens_per_s);
}

std::string text_of(const ServingPlan& plan, const ServingCandidate& c) {
  return fmt::format("{} tp {} pp {} dp {} ep {} {} {} + {} {} {}: {} {} {} {}",
                     plan.gpu_ids[c.hardware], c.tp, c.pp, c.dp, c.ep, choice_name(c.all2all),
                     c.replicas, c.prefill_workers, c.dtype, c.concurrency, c.ttft_s, c.tpot_s,
                     c.tokens_per_s, c.meets);
}

/// The part of a plan that a user reads: candidates that keep the limits (or all that were
/// simulated, if none does), the front, the reasons.
std::vector<std::string> answer_of(const ServingPlan& plan) {
  std::vector<std::string> lines;
  const size_t told = plan.meeting > 0 ? plan.meeting : plan.simulated;
  for (size_t i = 0; i < told; ++i) lines.push_back(text_of(plan, plan.candidates[i]));
  for (const size_t i : plan.front) lines.push_back("front " + text_of(plan, plan.candidates[i]));
  for (const PlanAlternative& a : plan.alternatives)
    lines.push_back(a.option + " " + a.value + " " + text_of(plan, plan.candidates[a.candidate]));
  return lines;
}

/// Plans of small random spaces: models, GPUs, lengths, limits (some that nothing meets),
/// percentiles, lists of loads.
TEST(ServingPlan, PruningKeepsTheAnswerOfTheFullSearch) {
  Rng rng(3);
  const auto one_of = [&](auto... values) {
    const std::array all = {values...};
    return all[rng.below(all.size())];
  };
  size_t pruned = 0, unmet = 0;
  for (int trial = 0; trial < 30; ++trial) {
    ServingQuery query = query_of({one_of("H100", "A100", "L40S"), one_of("H200", "A40")});
    const std::string model = trial % 5 == 0 ? "deepseek-v2-lite" : "llama-3.2-1b";
    query.gpus = one_of(2, 4);
    query.request.prompt = 100 + static_cast<int64_t>(rng.below(2000));
    query.request.output = 10 + static_cast<int64_t>(rng.below(100));
    query.ttft_s =
        rng.below(4) > 0 ? std::optional(0.02 * std::pow(30, rng.uniform())) : std::nullopt;
    query.tpot_s =
        rng.below(4) > 0 ? std::optional(0.001 * std::pow(20, rng.uniform())) : std::nullopt;
    query.request.load.ttft_s = query.ttft_s;
    query.request.load.tpot_s = query.tpot_s;
    query.percentile = one_of(Percentile::kMean, Percentile::kMedian, Percentile::kP99);
    if (trial % 3 == 0) query.space.concurrency = {2, 9, 40, 150};
    const ServingPlan quick = plan_serving(forecaster(), load_model_ref(model), query);
    query.full_search = true;
    const ServingPlan full = plan_serving(forecaster(), load_model_ref(model), query);
    EXPECT_EQ(full.pruned, 0u);
    EXPECT_EQ(quick.candidates.size(), full.candidates.size()) << trial;
    EXPECT_EQ(quick.simulated + quick.pruned, full.simulated) << trial;
    EXPECT_EQ(answer_of(quick), answer_of(full)) << trial;
    pruned += quick.pruned;
    unmet += quick.meeting == 0 ? 1 : 0;
  }
  EXPECT_GT(pruned, 100u);
  EXPECT_GT(unmet, 1u);
}

TEST(ServingPlan, LimitsThatNothingMeetsGiveTheNearestFirst) {
  ServingQuery query = query_of({"H100"});
  query.tpot_s = 1e-4;
  const ServingPlan plan = plan_serving(forecaster(), load_model_ref("llama-3-8b"), query);
  EXPECT_EQ(plan.meeting, 0u);
  for (size_t i = 1; i < plan.simulated; ++i)
    EXPECT_LE(plan.candidates[i - 1].excess, plan.candidates[i].excess);
  EXPECT_GT(plan.candidates.front().excess, 1);
}

TEST(ServingPlan, PricesDecideBetweenKindsOfGpus) {
  ServingQuery query = query_of({"H100", "L40S"});
  query.has_prices = true;
  query.hardware[0].price.price_per_gpu_hour = 1000;
  query.hardware[1].price.price_per_gpu_hour = 1;
  const ServingPlan plan = plan_serving(forecaster(), load_model_ref("llama-3-8b"), query);
  EXPECT_EQ(plan.candidates.front().hardware, 1u);
}

TEST(GpuPrices, AreANumberOrAList) {
  const std::vector<GpuRef> gpus = {load_gpu_ref("H100"), load_gpu_ref("A100")};
  const auto numbers = [&](const std::string& text) {
    std::vector<double> all;
    for (const GpuPrice& price : gpu_prices(text, gpus)) all.push_back(price.price_per_gpu_hour);
    return all;
  };
  EXPECT_EQ(numbers("2.5"), (std::vector<double>{2.5, 2.5}));
  EXPECT_EQ(numbers("A100=1,H100=3"), (std::vector<double>{3, 1}));
  EXPECT_THROW(gpu_prices("H100=3", gpus), Error);
  EXPECT_THROW(gpu_prices("H100=3,A100=-1", gpus), OptionError);
  EXPECT_THROW(gpu_prices("cheap", gpus), OptionError);
}

}  // namespace
}  // namespace tilecast
