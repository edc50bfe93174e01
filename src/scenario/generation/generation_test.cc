// Text generation in static batches.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "importers/model.h"
#include "schema/csv.h"
#include "schema/json.h"
#include "test_support.h"
#include "text_requests.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// Parameters as the model cards or the checkpoints' indices state them.
TEST(Generation, ParametersAreThoseOfTheModelCards) {
  const std::pair<const char*, int64_t> cards[] = {
      {"llama-3-8b", 8030261248},    {"llama-3.1-70b", 70553706496}, {"mixtral-8x7b", 46702792704},
      {"qwen3-32b", 32762123264},    {"gemma-2-9b", 9241705984},     {"gemma-3-1b", 999885952},
      {"phi-3-mini", 3821079552},    {"falcon-7b", 6921720704},      {"gpt-oss-20b", 20914757184},
      {"deepseek-v3", 671026404352}, {"gpt2_large", 774030080},      {"opt_13", 1315758080}};
  for (const auto& [model, parameters] : cards) {
    const GenerationForecast f =
        forecast_text(model, "B200", {.prompt = 128, .output = 8, .execution = {.tp = 1}});
    EXPECT_EQ(f.parameters, parameters) << model;
  }
}

TEST(Generation, ATokensFlopsAreTwoForEachMultipliedParameter) {
  for (const char* model : {"llama-3-8b", "qwen3-32b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b",
                            "gemma-2-9b", "falcon-7b", "phi-4", "glm-4-9b", "opt_13"}) {
    const GenerationForecast f = forecast_text(model, "B200", {.prompt = 1024, .output = 8});
    const auto expected = 2.0 * static_cast<double>(f.multiplied_parameters);
    EXPECT_NEAR(static_cast<double>(f.flops_per_token - f.attention_flops_per_token) / expected, 1,
                0.01)
        << model;
  }
}

TEST(Generation, CacheBytesOfATokenAreKnown) {
  // Layers x 2 x key heads x head size x 2 bytes; DeepSeek: layers x (512 + 64) x 2 bytes.
  EXPECT_EQ(forecast_text("llama-3-8b", "H100", {}).kv_bytes_per_token, 32 * 2 * 8 * 128 * 2);
  EXPECT_EQ(forecast_text("qwen3-32b", "H200", {}).kv_bytes_per_token, 64 * 2 * 8 * 128 * 2);
  EXPECT_EQ(forecast_text("deepseek-v3", "B200", {.execution = {.tp = 8}}).kv_bytes_per_token,
            61 * 576 * 2);
  EXPECT_EQ(
      forecast_text("llama-3-8b", "H100", {.execution = {.kv_dtype = "fp8"}}).kv_bytes_per_token,
      32 * 2 * 8 * 128);
}

TEST(Generation, FewerBitsMoreRanksAndShorterContextsAreFaster) {
  const Request base{.batch = 16, .prompt = 2048, .output = 128};
  const GenerationForecast plain = forecast_text("llama-3-8b", "H100", base);
  const auto with = [&](auto change) {
    Request options = base;
    change(options);
    return forecast_text("llama-3-8b", "H100", options);
  };
  EXPECT_LT(with([](Request& o) { o.execution.dtype = "fp8"; }).tpot.value, plain.tpot.value);
  EXPECT_LT(with([](Request& o) { o.execution.tp = 2; }).tpot.value, plain.tpot.value);
  EXPECT_LT(with([](Request& o) { o.prompt = 128; }).ttft.value, 0.2 * plain.ttft.value);
  EXPECT_GT(with([](Request& o) { o.execution.cuda_graphs = false; }).tpot.value,
            0.999 * plain.tpot.value);
  EXPECT_LT(plain.course.front().time.value, plain.course.back().time.value);
}

TEST(Generation, TheLargestBatchFitsAndTheNextDoesNot) {
  Request options{.prompt = 4096, .output = 512};
  options.batch = *forecast_text("llama-3-8b", "L40S", options).memory.largest_batch;
  ASSERT_GT(options.batch, 1);
  const GenerationForecast fits = forecast_text("llama-3-8b", "L40S", options);
  EXPECT_TRUE(fits.memory.fits);
  options.batch += 1;
  const GenerationForecast more = forecast_text("llama-3-8b", "L40S", options);
  EXPECT_FALSE(more.memory.fits);
  EXPECT_EQ(more.memory.largest_batch, fits.batch);
  EXPECT_GT(more.latency.value, fits.latency.value);
  const std::string said = "; the largest batch that fits is " + std::to_string(fits.batch);
  EXPECT_TRUE(std::any_of(more.warnings.begin(), more.warnings.end(), [&](const Warning& warning) {
    return warning.code == WarningCode::kDoesNotFit &&
           warning_text(warning).find(said) != std::string::npos;
  }));
}

TEST(Generation, AWindowCapsTheCache) {
  const GenerationForecast near = forecast_text("gemma-3-1b", "L40S", {.prompt = 512, .output = 8});
  const GenerationForecast far =
      forecast_text("gemma-3-1b", "L40S", {.prompt = 16384, .output = 8});
  EXPECT_LT(far.memory.cache_bytes, 10 * near.memory.cache_bytes);
}

TEST(Generation, UnknownWordsAndSizesAreRefusedInTheLibraryToo) {
  const auto with = [](auto set) {
    Request options{.kind = RequestKind::kServe};
    set(options);
    return forecast_text("llama-3-8b", "H100", options);
  };
  EXPECT_ERROR(with([](auto& o) { o.execution.kv_dtype = "fp5"; }), kInput,
               "`kv-dtype`: unknown value");
  EXPECT_ERROR(with([](auto& o) { o.prompt = 0; }), kInput, "`prompt`: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.output = -1; }), kInput, "`output`: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.batch = 0; }), kInput, "`batch`: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.execution.tp = 0; }), kInput, "`tp`: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.execution.max_num_batched_tokens = 0; }), kInput,
               "`max-num-batched-tokens`: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.execution.gpu_memory_utilization = 2; }), kInput,
               "`gpu-memory-utilization`: expected");
  EXPECT_ERROR(with([](auto& o) { o.load.max_prompt = 1; }), kInput,
               "`prompt`: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.load.max_num_seqs = 0; }), kInput, "`max-num-seqs`: expected");
  EXPECT_ERROR(with([](auto& o) { o.load.ttft_s = -1; }), kInput, "`ttft-s`: expected a number");
  EXPECT_ERROR(with([](auto& o) { o.load.trace = {{0, 0, 1}}; }), kInput,
               "`trace`: expected arrivals");
  EXPECT_ERROR(with([](auto& o) { o.execution.skew_percent = -1; }), kInput,
               "`skew`: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.load.rate = -1; }), kInput, "`rate`: expected a number");
  EXPECT_ERROR(with([](auto& o) { o.load.concurrency = -1; }), kInput, "`concurrency`: expected");
}

TEST(Generation, BadRequestsSayWhatToDo) {
  EXPECT_ERROR(forecast_text("llama-3-8b", "H100", {.prompt = 8000, .output = 1000}), kInput,
               "longer than the model's 8192 positions; shorten them by 808");
  EXPECT_ERROR(forecast_text("llama-3-8b", "H100", {.execution = {.tp = 3}}), kInput,
               "`tp` 3 does not divide the 32 attention heads");
  EXPECT_ERROR(forecast_text("llama-3-8b", "A100", {.execution = {.dtype = "fp8"}}), kUnsupported,
               "no unit that multiplies fp8 matrices");
  EXPECT_ERROR(forecast_text("llama-3-8b", "H100", {.execution = {.dtype = "fp4"}}), kUnsupported,
               "no unit that multiplies fp4 matrices");
  EXPECT_ERROR(forecast_text("llama-3-8b", "H100", {.execution = {.dtype = "fp7"}}), kInput,
               "unknown value 'fp7'");
  EXPECT_ERROR(forecast_text("llama-3-8b", "H100", {.execution = {.kv_dtype = "fp32"}}), kInput,
               "a KV cache in fp32 is not supported");
  EXPECT_ERROR(forecast_text("bert_large", "H100", {}), kUnsupported,
               "is not forecast token by token");
}

TEST(Generation, WhatIsStoredInFourBitsRunsEverywhere) {
  const GenerationForecast f =
      forecast_text("llama-3-8b", "A100", {.execution = {.dtype = "int4_wo"}});
  EXPECT_LT(f.memory.weights_bytes,
            forecast_text("llama-3-8b", "A100", {}).memory.weights_bytes / 2);
  EXPECT_TRUE(std::any_of(f.decode.kernels.begin(), f.decode.kernels.end(),
                          [](const KernelForecast& k) { return k.extrapolated; }));
}

TEST(Generation, TotalsAreThoseOfTheKernels) {
  const GenerationForecast f = forecast_text(
      "mixtral-8x7b", "H100", {.batch = 20, .prompt = 1000, .output = 100, .execution = {.tp = 2}});
  double seconds = 0, communication = 0;
  int64_t flops = 0, bytes = 0, decode_attention = 0;
  for (const KernelForecast& k : f.kernels) {
    EXPECT_TRUE(k.phase == "prefill" || k.phase == "decode") << k.phase;
    seconds += k.latency_s * static_cast<double>(k.count);
    flops += k.flops * k.count;
    bytes += k.bytes * k.count;
    if (k.op == "all_reduce" || k.op == "all_gather")
      communication += k.latency_s * static_cast<double>(k.count);
    if (k.op == "cached_attention") decode_attention += k.count;
  }
  EXPECT_EQ(f.flops, flops);
  EXPECT_EQ(f.bytes, bytes);
  EXPECT_EQ(decode_attention, 32 * 99);  // layers x steps
  EXPECT_NEAR(f.communication_s, communication, 1e-12);
  EXPECT_GT(communication, 0);
  // The host's launches add a little to the prefill.
  EXPECT_NEAR(f.latency.value / seconds, 1, 0.02);
  EXPECT_GE(f.latency.value * (1 + 1e-12), seconds);
}

TEST(Generation, FlopsAreThoseOfAllTokens) {
  // Products of a token are 2 x the multiplied parameters; the output layer runs once a sequence
  // and step, so that of the prompts' tokens only the last goes through it.
  const GenerationForecast f =
      forecast_text("llama-3-8b", "H100", {.batch = 4, .prompt = 512, .output = 65});
  const double head = 2.0 * 128256 * 4096;
  const double token = 2.0 * static_cast<double>(f.multiplied_parameters);
  const double products = 4 * (512 + 64) * (token - head) + 4 * 65 * head;
  // Pairs of tokens x 4 FLOPs x 32 heads of 128 in 32 layers.
  const double pairs = 4 * (512 * 513 / 2 + 64 * 512 + 64 * 65 / 2);
  EXPECT_NEAR(static_cast<double>(f.flops) / (products + pairs * 4 * 4096 * 32), 1, 0.005);
}

TEST(Generation, JsonHoldsWhatTheTableSays) {
  const GenerationForecast f =
      forecast_text("mixtral-8x7b", "H100", {.batch = 4, .execution = {.tp = 2}});
  const Json json = Json::parse(to_json(f));
  EXPECT_EQ(json.at("time_to_first_token").at("seconds").get<double>(), f.ttft.value);
  EXPECT_EQ(json.at("memory").at("largest_batch").get<int64_t>(), f.memory.largest_batch);
  EXPECT_FALSE(json.at("decode").at("kernels").empty());
  EXPECT_NE(llm_table(f).find("time per output token"), std::string::npos);
}

TEST(Generation, JsonHoldsTheKeysOfEveryForecast) {
  const GenerationForecast f =
      forecast_text("mixtral-8x7b", "H100", {.batch = 4, .execution = {.tp = 2}});
  const Json json = Json::parse(to_json(f));
  // Keys of the contract (docs/explanation/servers.md), as forecasts of one pass have them.
  for (const char* key : {"schema_version",
                          "model",
                          "gpu",
                          "mode",
                          "batch",
                          "seq",
                          "dtype",
                          "latency_s",
                          "latency_low_s",
                          "latency_high_s",
                          "forward_s",
                          "backward_s",
                          "optimizer_s",
                          "flops",
                          "bytes",
                          "utilization_ratio",
                          "memory",
                          "kernels",
                          "warnings",
                          "warning_codes",
                          "ranks",
                          "communication_s",
                          "exposed_communication_s"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key : {"peak_bytes", "weights_bytes", "gradients_bytes", "optimizer_bytes",
                          "activations_bytes", "workspace_bytes", "framework_bytes", "fits"})
    EXPECT_TRUE(json.at("memory").contains(key)) << key;
  EXPECT_EQ(json.at("mode"), "inference");
  EXPECT_EQ(json.at("latency_s"), f.request.value);
  EXPECT_EQ(json.at("ranks"), 2);
  const Json& m = json.at("memory");
  EXPECT_EQ(m.at("peak_bytes").get<int64_t>(),
            m.at("weights_bytes").get<int64_t>() + m.at("cache_bytes").get<int64_t>() +
                m.at("activations_bytes").get<int64_t>() + m.at("workspace_bytes").get<int64_t>() +
                m.at("framework_bytes").get<int64_t>());
  const std::string csv = to_csv(f.kernels);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), static_cast<int64_t>(f.kernels.size()) + 1);
  Request options{
      .kind = RequestKind::kServe, .prompt = 100, .output = 10, .load = {.concurrency = 4}};
  const GenerationForecast s = forecast_text("llama-3-8b", "H100", options);
  EXPECT_EQ(Json::parse(to_json(s)).at("latency_s").get<double>(), s.serving->all.e2e.mean.value);
}

/// Qwen3-Next-80B-A3B: 12 layers of attention with 2 key heads of 256, 36 recurrent layers with 32
/// states of 128 x 128 in fp32 and 3 columns of 8,192 channels in bf16.
TEST(Generation, StatesAreNotBytesOfAToken) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "config.json").string();
  write_file(path, R"({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48,
      "intermediate_size": 5120, "num_attention_heads": 16, "num_key_value_heads": 2,
      "head_dim": 256, "vocab_size": 151936, "max_position_embeddings": 262144,
      "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
      "shared_expert_intermediate_size": 512, "full_attention_interval": 4,
      "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
      "linear_num_value_heads": 32, "linear_value_head_dim": 128, "torch_dtype": "bfloat16"})");
  const Decoder decoder = *load_model(path).decoder;
  EXPECT_EQ(decoder.recurrent_layers, 36);
  EXPECT_EQ(decoder.state_bytes, 36 * (4 * 32 * 128 * 128 + 2 * 3 * 8192));
  EXPECT_FALSE(decoder.latent);
  EXPECT_TRUE(load_model("deepseek-v3").decoder->latent);
  const GenerationForecast f =
      forecast_text(path, "H200", {.prompt = 128, .output = 8, .execution = {.tp = 2}});
  EXPECT_EQ(f.kv_bytes_per_token, 12 * 2 * 2 * 256 * 2);
  EXPECT_EQ(f.window_bytes_per_token, 0);
  EXPECT_EQ(f.state_bytes_per_sequence, decoder.state_bytes) << "of all ranks";
  EXPECT_GT(f.memory.cache_bytes, decoder.state_bytes / 2);
}

TEST(Generation, CachesOfWindowsAreSaid) {
  const GenerationForecast f = forecast_text("gemma-3-1b", "H100", {.prompt = 128, .output = 8});
  constexpr int64_t kLayer = 2 * 1 * 256 * 2;  // keys and values of one head in 16 bits
  EXPECT_EQ(f.kv_bytes_per_token, 26 * kLayer);
  EXPECT_EQ(f.window_bytes_per_token, 22 * kLayer) << "every sixth layer keeps all tokens";
  EXPECT_EQ(f.window_tokens, 512);
  EXPECT_EQ(f.state_bytes_per_sequence, 0);
  EXPECT_NE(llm_table(f, {.width = 200}).find("22.0 KiB of it of the last 512 tokens only"),
            std::string::npos);
}

TEST(Generation, StaticBatchesStateTheBlocksOfAServer) {
  const Request request{.prompt = 128, .output = 8};
  const GenerationForecast f = forecast_text("llama-3-8b", "H100", request);
  ASSERT_TRUE(f.pool.has_value());
  const std::string table = llm_table(f, {.width = 200});
  EXPECT_NE(table.find("GPU KV cache size: " + format_integer(f.pool->tokens) + " tokens"),
            std::string::npos);
  Request pytorch = request;
  pytorch.execution.software = software_of("pytorch");
  EXPECT_EQ(llm_table(forecast_text("llama-3-8b", "H100", pytorch)).find("cache blocks"),
            std::string::npos);
}

TEST(Generation, TheRuleOfMemoryIsThatOfTheSoftware) {
  const auto shortage = [](Software software) {
    Request request{.batch = 4096, .prompt = 4096, .output = 8};
    request.execution.software = software;
    const GenerationForecast f = forecast_text("llama-3-8b", "H100", request);
    EXPECT_FALSE(f.memory.fits);
    return join(warning_texts(f.warnings), "; ");
  };
  EXPECT_NE(shortage(software_of("vllm")).find("(gpu_memory_utilization 0.9)"), std::string::npos);
  EXPECT_NE(shortage(software_of("sglang")).find("(mem_fraction_static "), std::string::npos);
  EXPECT_NE(shortage(software_of("trtllm")).find("(free_gpu_memory_fraction 0.9)"),
            std::string::npos);
  const std::string pytorch = shortage(software_of("pytorch"));
  EXPECT_EQ(pytorch.find("gpu_memory_utilization"), std::string::npos);
  EXPECT_NE(pytorch.find("programs see 79.2 GiB of nvidia-h100-sxm5-80gb"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
