// A server under load: limits, extremes and what must hold in between.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "scenario/generation/step_costs.h"
#include "software/software.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "text_requests.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

GenerationForecast forecast_server(const std::string& model, const std::string& gpu,
                                   Request options) {
  options.kind = RequestKind::kServe;
  return forecast_text(model, gpu, options);
}

TEST(Server, MoreLoadMeansLaterAnswers) {
  Request options{.prompt = 1024, .output = 128};
  options.load.rate = 1;
  const GenerationForecast calm = forecast_server("llama-3-8b", "H100", options);
  options.load.rate = 15;
  const GenerationForecast busy = forecast_server("llama-3-8b", "H100", options);
  ASSERT_TRUE(calm.serving && busy.serving && calm.serving->steady && busy.serving->steady);
  EXPECT_LT(calm.serving->steady->tpot.median.value, busy.serving->steady->tpot.median.value);
  EXPECT_LT(calm.serving->mean_batch, busy.serving->mean_batch);
  EXPECT_NEAR(calm.serving->all.requests_per_s, 1, 0.15);
  EXPECT_TRUE(calm.serving->keeps_up && busy.serving->keeps_up);
  options.load.rate = 1000;
  const GenerationForecast flooded = forecast_server("llama-3-8b", "H100", options);
  EXPECT_FALSE(flooded.serving->keeps_up);
  EXPECT_FALSE(flooded.serving->steady);
  EXPECT_TRUE(std::any_of(flooded.warnings.begin(), flooded.warnings.end(),
                          [](const Warning& w) { return w.code == WarningCode::kOverloaded; }));
}

TEST(Server, ConversationsComeAtTheirRateAfterTheWarmup) {
  // The last of 12 turns comes 660 s after the first: the run is far longer than 240 / 4 s.
  Request request{.kind = RequestKind::kServe};
  request.prompt = 64;
  request.output = 16;
  request.load.rate = 4;
  request.load.requests = 240;
  request.load.session_turns = 12;
  request.load.session_turn_delay_s = 60;
  const GenerationForecast f = forecast_generation(forecaster(), load_model_ref("llama-3.2-1b"),
                                                   load_gpu_ref("H100"), request);
  ASSERT_TRUE(f.serving);
  EXPECT_EQ(f.serving->all.requests, 240);
  EXPECT_EQ(f.used.load.requests, 240);
  EXPECT_GT(f.serving->warmup_requests, 4 * 660 / 2) << "the first conversations to end";
  EXPECT_NEAR(f.serving->steady_or_all().requests_per_s, 4, 0.4);
  EXPECT_TRUE(f.serving->keeps_up);
  // Without it, the run is far longer than 240 / 4 s.
  request.load.warmup_request_count = 0;
  const GenerationForecast cold = forecast_generation(forecaster(), load_model_ref("llama-3.2-1b"),
                                                      load_gpu_ref("H100"), request);
  EXPECT_EQ(cold.serving->warmup_requests, 0);
  EXPECT_LT(cold.serving->all.requests_per_s, 240 / 660.0);
  EXPECT_LT(cold.serving->steady_or_all().requests_per_s, 1.5 * cold.serving->all.requests_per_s);
}

/// Steps of few tokens are graphs but for attention, in vLLM.
TEST(Server, ShortPromptsAreGraphsInPieces) {
  const auto first_token_s = [](int64_t prompt, CudaGraphMode mode) {
    Request options{.kind = RequestKind::kGenerate, .prompt = prompt, .output = 2};
    options.execution.cudagraph_mode = mode;
    return forecast_text("llama-3-8b", "H100", options).ttft.value;
  };
  const double pieces = first_token_s(128, CudaGraphMode::kFullAndPiecewise);
  EXPECT_LT(pieces, 0.6 * first_token_s(128, CudaGraphMode::kFullDecodeOnly));
  EXPECT_DOUBLE_EQ(first_token_s(513, CudaGraphMode::kFullAndPiecewise),
                   first_token_s(513, CudaGraphMode::kFullDecodeOnly));
}

TEST(Server, GraphsTakeLongerOnAmdWithEarlierSglang) {
  const auto token_s = [](const char* gpu, const char* version) {
    Request options{.kind = RequestKind::kGenerate, .prompt = 128, .output = 2};
    options.execution.software = software_of("sglang");
    options.execution.software_version = version;
    return forecast_text("llama-3-8b", gpu, options).tpot.value;
  };
  // 7 us for each of some 300 to 400 kernels.
  const double more_s = token_s("MI300X", "0.5.9") - token_s("MI300X", "0.5.12");
  EXPECT_GT(more_s, 2.1e-3);
  EXPECT_LT(more_s, 3.2e-3);
  EXPECT_DOUBLE_EQ(token_s("H200", "0.5.9"), token_s("H200", "0.5.12"));
}

/// Requests and tokens of a second are what is offered, whatever chance does to the arrivals.
TEST(Server, OneThatKeepsUpAnswersWhatIsOffered) {
  for (const char* const software : {"vllm", "sglang", "trtllm"}) {
    for (const double rate : {0.5, 5.0, 11.0}) {
      Request options{.prompt = 1024, .output = 128};
      options.execution.software = software_of(software);
      options.load.rate = rate;
      options.load.requests = 300;
      const GenerationForecast f = forecast_server("llama-3-8b", "H100", options);
      ASSERT_TRUE(f.serving && f.serving->steady && f.serving->keeps_up) << software << rate;
      const ServerMetrics& steady = *f.serving->steady;
      EXPECT_DOUBLE_EQ(steady.requests_per_s, rate) << software;
      EXPECT_NEAR(steady.output_tokens_per_s, 128 * rate, 1e-9 * 128 * rate) << software << rate;
      EXPECT_NEAR(steady.total_tokens_per_s, 1152 * rate, 1e-9 * 1152 * rate) << software << rate;
      // From the first request to the last token: the last one is answered alone.
      EXPECT_NEAR(f.serving->all.requests_per_s / rate, 1, 0.1) << software << rate;
    }
  }
}

/// A server that is a little too slow is not said to answer all that comes.
TEST(Server, OneThatHardlyKeepsUpShowsWhatItAnswers) {
  Request options{.prompt = 2048, .output = 16};
  options.load.requests = 1000;
  options.load.rate = 1000;
  const GenerationForecast flooded = forecast_server("llama-3-8b", "H100", options);
  ASSERT_TRUE(flooded.serving);
  options.load.rate = 1.03 * flooded.serving->all.requests_per_s;
  const GenerationForecast f = forecast_server("llama-3-8b", "H100", options);
  ASSERT_TRUE(f.serving && f.serving->steady);
  EXPECT_LT(f.serving->steady->requests_per_s, 0.99 * options.load.rate);
}

TEST(Server, AsManyClientsAsABatchWriteAsFastAsIt) {
  for (const int64_t clients : {1, 8, 64, 256}) {
    Request options{.batch = clients, .prompt = 64, .output = 64};
    const GenerationForecast batch = forecast_text("llama-3-8b", "H100", options);
    options.batch = 1;
    options.load.concurrency = clients;
    const GenerationForecast server = forecast_server("llama-3-8b", "H100", options);
    ASSERT_TRUE(server.serving && server.serving->steady);
    EXPECT_NEAR(server.serving->steady->output_tokens_per_s / batch.tokens_per_s, 1, 0.15)
        << clients;
    EXPECT_NEAR(server.latency.value / batch.latency.value, 1, 0.15) << clients;
  }
}

TEST(Server, MoreClientsWriteMoreUntilTheCacheIsFull) {
  Request options{.prompt = 1024, .output = 256, .load = {.max_num_seqs = 4096}};
  double before = 0;
  int64_t fit = 0;
  for (const int64_t clients : {1, 4, 16, 64, 256}) {
    options.load.concurrency = clients;
    const GenerationForecast f = forecast_server("llama-3-8b", "H100", options);
    fit = *f.memory.largest_batch;
    ASSERT_LT(clients, fit);
    EXPECT_GT(f.serving->all.output_tokens_per_s, before) << clients;
    EXPECT_EQ(f.serving->preemptions, 0) << clients;
    before = f.serving->all.output_tokens_per_s;
  }
  options.load.concurrency = 2 * fit;
  const GenerationForecast full = forecast_server("llama-3-8b", "H100", options);
  EXPECT_GT(full.serving->preemptions, 0);
  EXPECT_GT(full.serving->cache_use, 0.8);
}

TEST(Server, WithoutLoadTheFirstTokenComesAsInABatchOfOne) {
  for (const Software software :
       {software_of("vllm"), software_of("sglang"), software_of("trtllm")}) {
    Request options{.prompt = 1000, .output = 50, .execution = {.software = software}};
    options.load.rate = 0.001;
    options.load.requests = 20;
    options.load.server_overhead_s = options.load.request_turn_s = 0;
    const GenerationForecast f = forecast_server("llama-3-8b", "H100", options);
    EXPECT_NEAR(f.serving->all.ttft.p99.value / f.ttft.value, 1, 0.01)
        << static_cast<int>(software);
    EXPECT_NEAR(f.serving->all.tpot.p99.value / f.tpot.value, 1, 0.01)
        << static_cast<int>(software);
  }
}

TEST(Server, ARequestTakesTheSoftwaresTimeOutsideOfSteps) {
  Request options{.prompt = 1000, .output = 50, .execution = {.software = software_of("vllm")}};
  options.load.rate = 0.001;
  options.load.requests = 20;
  const HostCosts& costs = software_def(software_of("vllm")).costs;
  ASSERT_GT(costs.request_overhead_s, 0);
  const GenerationForecast f = forecast_server("llama-3-8b", "H100", options);
  options.load.server_overhead_s = options.load.request_turn_s = 0;
  const GenerationForecast without = forecast_server("llama-3-8b", "H100", options);
  EXPECT_NEAR(f.serving->all.ttft.mean.value - without.serving->all.ttft.mean.value,
              costs.request_overhead_s + costs.request_turn_s, 1e-9);
}

TEST(Server, AnEarlierVersionTakesLongerForEachSequence) {
  const auto tpot = [](const char* version, int64_t batch) {
    Request options{.kind = RequestKind::kGenerate, .batch = batch, .prompt = 100, .output = 50};
    options.execution.software_version = version;
    return forecast_text("llama-3-8b", "H100", options).tpot.value;
  };
  const auto costs = [](const char* version) {
    return software_def(software_version(software_of("vllm"), version, "")).costs;
  };
  const HostCosts now = costs(""), then = costs("0.12.0");
  for (const int64_t batch : {1, 64}) {
    EXPECT_NEAR(tpot("0.12.0", batch) - tpot("", batch),
                then.step_overhead_s - now.step_overhead_s +
                    static_cast<double>(batch) * then.sequence_overhead_s,
                1e-9)
        << batch;
  }
}

TEST(Server, AMixedStepCostsWhatItsGraphCosts) {
  Request options{.kind = RequestKind::kGenerate,
                  .execution = {.software = software_of("vllm"), .max_num_batched_tokens = 4096}};
  options.execution.host_launch_s = 0;
  const ModelRef model = load_model_ref("llama-3-8b");
  const GpuRef gpu = load_gpu_ref("H100");
  const ServedModel served(forecaster(), model, gpu, options);
  KnownTimes known;
  StepCosts costs(served, 0, {}, known);
  const auto seconds = [&](const ServingBatch& batch) {
    return costs.seconds(std::span(&batch, 1));
  };
  const auto graph_s = [&](std::vector<StepGroup> groups) {
    return time_step(served, std::move(groups), StepLaunch::kHost).totals.seconds;
  };
  // 1536 and 1024 tokens are knots of the grid; attention is interpolated in contexts.
  EXPECT_NEAR(
      seconds({36, 700, {{500, 0}, {500, 0}, {500, 0}}}) / graph_s({{36, 1, 700}, {3, 500, 0}}), 1,
      0.02);
  EXPECT_NEAR(seconds({24, 1500, {{1000, 1100}}}) / graph_s({{24, 1, 1500}, {1, 1000, 1100}}), 1,
              0.02);
  // Between knots the fill of the last tile of a product is not seen.
  EXPECT_NEAR(seconds({200, 1500, {{1350, 600}}}) / graph_s({{200, 1, 1500}, {1, 1350, 600}}), 1,
              0.06);
  // Prompts of several lengths: one call for all costs no more than one for each, and no less than
  // one for as many of the same length.
  const double mixed = seconds({0, 0, {{900, 0}, {300, 0}, {848, 0}}});
  EXPECT_LE(mixed, graph_s({{1, 900, 0}, {1, 300, 0}, {1, 848, 0}}) * 1.01);
  EXPECT_GE(mixed, graph_s({{2, 1024, 0}}) * 0.95);
}

TEST(Server, RangesAndTracesGiveLengths) {
  Request options{.prompt = 800, .output = 100};
  options.load.max_prompt = 1000;
  options.load.max_output = 200;
  options.load.concurrency = 8;
  const GenerationForecast range = forecast_server("llama-3-8b", "H100", options);
  EXPECT_EQ(range.prompt, 900);
  EXPECT_EQ(range.output, 150);
  EXPECT_EQ(range.serving->all.requests, 200);
  EXPECT_GT(range.serving->all.e2e.p99.value, 1.1 * range.serving->all.e2e.median.value);

  Request traced;
  traced.load.trace = {{0, 100, 10}, {0.5, 300, 30}};
  const GenerationForecast trace = forecast_server("llama-3-8b", "H100", traced);
  EXPECT_EQ(trace.prompt, 200);
  EXPECT_EQ(trace.output, 20);
  EXPECT_EQ(trace.serving->all.requests, 2);
  EXPECT_TRUE(trace.serving->trace);
}

TEST(Server, ATraceIsReadFromAFile) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.csv").string();
  const auto read = [&](const std::string& text) {
    write_file(path, text);
    return read_trace(path);
  };
  const std::vector<TraceRequest> trace = read("arrival_s,prompt,output\n1.5,10,2\n0,20,3\n");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].prompt, 20);  // sorted by arrival
  EXPECT_EQ(trace[1].arrival_s, 1.5);
  EXPECT_ERROR(read("arrival_s,prompt\n0,1\n"), kInput,
               path + ": column 'output' is missing; expected a first line with arrival_s");
  // A path may name any file that the process may read: nothing of it is shown.
  for (const char* text :
       {"root:secret:0,/root:secret\n", "secret,secret\n1,2\n", "secret\n",
        "prompt,output,secret\n1,2,3\n", "secret,a\nsecret\n", "\"secret\n", "{\"secret\": 1}\n"}) {
    const std::string message = message_of([&] { read(text); });
    EXPECT_EQ(message.find("secret"), std::string::npos) << message;
    EXPECT_NE(message, "no error");
  }
  EXPECT_ERROR(read("# a\narrival_s,prompt,output\n\n0,1,1\n0,x,1\n"), kInput,
               path + ":5: 'prompt': expected a whole number of tokens, 1 or more, found 'x'");
  EXPECT_ERROR(read("arrival_s,prompt,output\n-1,1,1\n"), kInput,
               path + ":2: 'arrival_s': expected seconds, 0 or more, found '-1'");
  EXPECT_ERROR(read("arrival_s,prompt,output\n"), kInput, "expected a line for each request");
  EXPECT_ERROR(read("arrival_s,prompt,output\n,,\n\n0,nan,1\n"), kInput,
               path + ":4: 'prompt': expected a whole number of tokens, 1 or more, found 'nan'");
  // As a spreadsheet with a decimal comma writes it.
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "arrival_s;prompt;output\r\n1,5;10;2\r\n")
                .front()
                .arrival_s,
            1.5);
}

TEST(Server, LimitsShapeWhatItDoes) {
  Request options{.prompt = 1000, .output = 100};
  options.load.concurrency = 32;
  const auto with = [&](auto change) {
    Request o = options;
    change(o);
    return *forecast_server("llama-3-8b", "H100", o).serving;
  };
  const GenerationForecast::Serving plain = *forecast_server("llama-3-8b", "H100", options).serving;
  const auto few = with([](Request& o) { o.load.max_num_seqs = 8; });
  EXPECT_LT(few.all.output_tokens_per_s, plain.all.output_tokens_per_s);
  EXPECT_GT(few.all.ttft.mean.value, plain.all.ttft.mean.value);
  EXPECT_LE(few.mean_batch, 8);
  const auto hit = with([](Request& o) { o.load.prefix_hit_rate = 0.8; });
  EXPECT_LT(hit.all.ttft.mean.value, plain.all.ttft.mean.value);
  const auto slow = with([](Request& o) { o.load.server_overhead_s = 0.1; });
  EXPECT_GT(slow.all.ttft.mean.value, plain.all.ttft.mean.value);
  const auto good = with([](Request& o) { o.load.tpot_s = 1; });
  EXPECT_NEAR(*good.goodput_requests_per_s, plain.all.requests_per_s, 1e-9);
  EXPECT_EQ(*with([](Request& o) { o.load.tpot_s = 1e-6; }).goodput_requests_per_s, 0);
  EXPECT_FALSE(plain.goodput_requests_per_s);
}

TEST(Server, WhatDoesNotFitIsForecastAlone) {
  Request options{.prompt = 1000, .output = 100};
  options.load.concurrency = 4;
  const GenerationForecast f = forecast_server("llama-3.1-70b", "H100", options);
  EXPECT_FALSE(f.memory.fits);
  EXPECT_EQ(f.memory.largest_batch, 0);
  EXPECT_FALSE(f.serving);
  EXPECT_GT(f.latency.value, 0);
  EXPECT_EQ(f.warnings.front().code, WarningCode::kDoesNotFit);
  EXPECT_EQ(warning_text(f.warnings.front()).rfind("does not fit: ", 0), 0u);
}

TEST(Server, OptionsThatContradictEachOtherAreRefused) {
  const auto with = [](auto change) {
    Request options{.prompt = 100, .output = 10};
    change(options);
    return forecast_text("llama-3-8b", "H100", options);
  };
  EXPECT_ERROR(with([](Request& o) { o.kind = RequestKind::kServe; }), kInput,
               "`schedule` continuous needs one of `rate`, `concurrency` and `trace`");
  EXPECT_ERROR(with([](Request& o) {
                 o.kind = RequestKind::kServe;
                 o.load.rate = 1;
                 o.load.concurrency = 1;
               }),
               kInput, "found more than one");
  EXPECT_ERROR(with([](Request& o) { o.load.rate = 1; }), kInput,
               "`rate` needs `schedule` continuous");
  EXPECT_ERROR(with([](Request& o) { o.load.ttft_s = 1; }), kInput, "`ttft-s` needs");
  EXPECT_ERROR(with([](Request& o) { o.load.max_prompt = 200; }), kInput,
               "`prompt` 100:200: all sequences of a static batch have the same length");
  EXPECT_ERROR(with([](Request& o) {
                 o.kind = RequestKind::kServe;
                 o.load.rate = 1;
                 o.execution.software = software_of("pytorch");
               }),
               kInput, "PyTorch has no request scheduler");
  EXPECT_ERROR(with([](Request& o) {
                 o.kind = RequestKind::kServe;
                 o.load.rate = 1;
                 o.batch = 4;
               }),
               kInput, "`batch` 4 cannot be combined with `rate`: batches result from the load; ");
  EXPECT_ERROR(with([](Request& o) {
                 o.kind = RequestKind::kServe;
                 o.load.concurrency = 2;
                 o.batch = 4;
               }),
               kInput, "leave out `batch`, or `concurrency` for a static batch");
  EXPECT_ERROR(with([](Request& o) {
                 o.kind = RequestKind::kServe;
                 o.load.rate = 1;
                 o.prompt = 8000;
                 o.load.max_prompt = 9000;
               }),
               kInput, "requests of up to 9010 tokens are longer than the model's 8192 positions");
}

}  // namespace
}  // namespace tilecast
