#include "tilecast/request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "request/access.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr RequestKind kKinds[] = {RequestKind::kPass, RequestKind::kGenerate, RequestKind::kServe};

const OptionDef& option(const std::string& name, RequestKind kind) {
  return *find_option(name, kind);
}

TEST(Options, AKindHasEachNameOnce) {
  for (const RequestKind kind : kKinds) {
    std::set<std::string> names;
    for (const OptionDef& o : request_options()) {
      if (!o.applies_to(kind)) continue;
      EXPECT_TRUE(names.insert(o.name).second) << o.name;
    }
  }
}

TEST(Options, EveryDefaultIsAChoiceAndEveryNameKnown) {
  for (const OptionDef& o : request_options()) {
    // A switch has neither; it is off unless it is given.
    if (o.value.empty() && o.choices.empty()) {
      EXPECT_EQ(o.default_value, "off") << o.name;
    }
    EXPECT_TRUE(o.access.set != nullptr && o.access.get != nullptr) << o.name;
    if (!o.default_value.empty() && !o.choices.empty()) {
      EXPECT_NE(std::find(o.choices.begin(), o.choices.end(), o.default_value), o.choices.end())
          << o.name;
    }
    for (const RequestKind kind : kKinds) {
      if (!o.applies_to(kind)) continue;
      for (const std::string& other : o.excludes) EXPECT_NE(find_option(other, kind), nullptr);
      if (!o.needs.empty()) {
        EXPECT_NE(find_option(o.needs.substr(0, o.needs.find('=')), kind), nullptr) << o.needs;
      }
    }
  }
}

TEST(Options, DefaultsInHelpAreThoseOfTheRequest) {
  for (const RequestKind kind : kKinds) {
    const Request fresh{.kind = kind};
    for (const OptionDef& o : request_options()) {
      if (!o.applies_to(kind) || o.name == "schedule") continue;
      const std::string text = o.access.get(fresh, o);
      // Options that are left open until the model and the kind are known have no text yet.
      if (text.empty() || o.name == "prompt") continue;
      EXPECT_EQ(text, o.default_value) << o.name;
    }
  }
}

TEST(Options, WhatIsSetIsReadBack) {
  const std::pair<const char*, const char*> values[] = {
      {"mode", "training"}, {"batch", "7"},           {"seq", "128"},
      {"dtype", "amp"},     {"attention", "flash"},   {"fusion", "pointwise"},
      {"software", "vllm"}, {"host-launch-us", "2.5"}};
  Request pass;
  for (const auto& [name, text] : values) {
    set_option(pass, option(name, RequestKind::kPass), text);
    EXPECT_EQ(option(name, RequestKind::kPass).access.get(pass, option(name, RequestKind::kPass)),
              text);
  }
  EXPECT_EQ(pass.mode, Mode::kTraining);
  EXPECT_EQ(pass.execution.software, software_of("vllm"));
  EXPECT_DOUBLE_EQ(pass.execution.host_launch_s.value(), 2.5e-6);
  Request server{.kind = RequestKind::kServe};
  for (const auto& [name, text] : {std::pair{"prompt", "800:1000"},
                                   {"output", "20"},
                                   {"rate", "1.5"},
                                   {"max-num-seqs", "4"},
                                   {"ttft-s", "0.25"},
                                   {"cuda-graphs", "off"},
                                   {"skew", "80"}}) {
    const OptionDef& o = option(name, RequestKind::kServe);
    set_option(server, o, text);
    EXPECT_EQ(o.access.get(server, o), text);
  }
  EXPECT_EQ(server.load.max_prompt, 1000);
  EXPECT_FALSE(server.execution.cuda_graphs);
}

TEST(Options, EveryChoiceIsTakenAndNothingElse) {
  for (const OptionDef& o : request_options()) {
    Request request{.kind = RequestKind::kServe};
    for (const std::string& choice : o.choices)
      EXPECT_NO_THROW(set_option(request, o, choice)) << o.name << " " << choice;
    if (!o.choices.empty()) {
      EXPECT_ERROR(set_option(request, o, "bf61"), kInput, "`" + o.name + "`: unknown value");
    }
  }
  Request request;
  EXPECT_ERROR(set_option(request, option("batch", RequestKind::kPass), "-3"), kInput,
               "`batch`: expected a whole number from 1 to 2147483648, found '-3'");
  EXPECT_ERROR(set_option(request, option("dtype", RequestKind::kPass), "fp31"), kInput,
               "did you mean 'fp32'");
  EXPECT_ERROR(set_option(request, option("prompt", RequestKind::kServe), "9:3"), kInput,
               "or a range LOW:HIGH of two");
}

TEST(Requests, OptionsOfOtherKindsAreRefused) {
  EXPECT_ERROR(check_request({.kind = RequestKind::kGenerate, .mode = Mode::kTraining}), kInput,
               "`mode` cannot be combined with `prompt`");
  EXPECT_ERROR(check_request({.kind = RequestKind::kGenerate, .load = {.concurrency = 3}}), kInput,
               "`concurrency` needs `schedule` continuous");
  EXPECT_ERROR(check_request({.kind = RequestKind::kGenerate, .load = {.ttft_s = 1}}), kInput,
               "`ttft-s` needs a server under load: add `rate`, `concurrency` or `trace`");
  EXPECT_ERROR(check_request({.execution = {.cuda_graphs = false}}), kInput,
               "`cuda-graphs` needs `prompt` (or `trace`)");
  EXPECT_ERROR(check_request({.optimizer = Optimizer::kSgd}), kInput,
               "`optimizer` needs `mode` training");
  EXPECT_NO_THROW(check_request({.mode = Mode::kTraining, .optimizer = Optimizer::kSgd}));
  EXPECT_NO_THROW(check_request({.kind = RequestKind::kServe, .load = {.rate = 2}}));
}

TEST(Requests, SchedulersHaveTheirOwnOptions) {
  Request server{.kind = RequestKind::kServe, .load = {.rate = 2}};
  server.execution.software = software_of("sglang");
  server.scheduling.recv_interval = 4;
  EXPECT_NO_THROW(check_request(server));
  server.execution.software = software_of("vllm");
  EXPECT_ERROR(check_request(server), kInput,
               "`scheduler-recv-interval`: vLLM has no such setting; it is SGLang's");
  server.scheduling = {.batch_wait_timeout_iters = 20};
  EXPECT_ERROR(check_request(server), kInput, "it is TensorRT-LLM's");
  server.execution.software = software_of("trtllm");
  EXPECT_ERROR(check_request(server), kInput, "belong together");
  server.scheduling.batch_wait_max_tokens_ratio = 0.9;
  EXPECT_NO_THROW(check_request(server));
  server.scheduling = {.attention_dp_batching_wait_iters = 10};
  EXPECT_ERROR(check_request(server), kInput, "needs `attention-dp-timeout-iters`");
}

TEST(Requests, BatchesAreDividedWholly) {
  const auto pass = [](int64_t batch, int64_t dp, int64_t microbatches) {
    Request request{.mode = Mode::kTraining};
    request.batch = batch;
    request.execution.dp = dp;
    request.execution.microbatches = microbatches;
    return request;
  };
  EXPECT_NO_THROW(check_request(pass(8, 2, 4)));
  EXPECT_ERROR(check_request(pass(1, 1, 4)), kInput,
               "`microbatches` 4 does not divide a data-parallel rank's batch of 1; give a `batch` "
               "that is a multiple of 4");
  EXPECT_ERROR(check_request(pass(12, 2, 4)), kInput,
               "batch of 6; choose a divisor of 6, or a `batch` that is a multiple of 8");
  EXPECT_ERROR(check_request(pass(3, 2, 1)), kInput, "`dp` 2 does not divide the batch of 3");
  Request interleaved = pass(6, 1, 6);
  interleaved.parallel.schedule = PipelineSchedule::kInterleaved;
  interleaved.parallel.layers_per_virtual_stage = 1;
  EXPECT_ERROR(check_request(interleaved), kInput, "needs `pp` of 2 or more");
  interleaved.execution.pp = 4;
  EXPECT_ERROR(check_request(interleaved), kInput, "that is a multiple of 4");
  interleaved.execution.pp = 3;
  EXPECT_NO_THROW(check_request(interleaved));
}

TEST(Requests, AskingForAPromptMakesARequestTokenByToken) {
  Request request;
  set_option(request, option("prompt", RequestKind::kGenerate), "100");
  EXPECT_EQ(request.kind, RequestKind::kGenerate);
  set_option(request, option("schedule", RequestKind::kGenerate), "continuous");
  EXPECT_EQ(request.kind, RequestKind::kServe);
  set_option(request, option("output", RequestKind::kServe), "10");
  EXPECT_EQ(request.kind, RequestKind::kServe);
}

TEST(Requests, ALoadIsThatOfAServer) {
  const auto kind = [](std::vector<GivenOption> more) {
    more.push_back({"prompt", "100"});
    return make_request(more).kind;
  };
  EXPECT_EQ(kind({}), RequestKind::kGenerate);
  EXPECT_EQ(kind({{"rate", "4"}}), RequestKind::kServe);
  EXPECT_EQ(kind({{"concurrency", "4"}}), RequestKind::kServe);
  EXPECT_EQ(kind({{"rate", "4"}, {"schedule", "continuous"}}), RequestKind::kServe);
  EXPECT_ERROR(kind({{"rate", "4"}, {"schedule", "static"}}), kInput,
               "`rate` needs `schedule` continuous");
}

}  // namespace
}  // namespace tilecast
