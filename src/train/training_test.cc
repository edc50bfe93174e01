#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "devices/registry.h"
#include "predict/predictor.h"
#include "predict/weights.h"
#include "sizes.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/result.h"
#include "tilecast/view.h"
#include "train/weights_job.h"

namespace tilecast {
namespace {

/// Measurements of a device that takes the law's time times a factor.
std::string made_up_rows(const std::string& gpu, const std::function<double(int64_t m)>& factor,
                         double call_overhead_s = 0, size_t rows = 400) {
  const Device device = find_device(gpu);
  const Chip chip(device, bundled_laws());
  Rng rng(9);
  std::string text = "gpu,op,dtype,batch,m,n,k,latency_s,protocol\n";
  for (const char* op : {"linear", "add", "softmax", "layer_norm"}) {
    for (size_t i = 0; i < rows; ++i) {
      const int64_t m = 16 + static_cast<int64_t>(rng.below(8192));
      const int64_t n = 16 + static_cast<int64_t>(rng.below(4096));
      const int64_t k = 16 + static_cast<int64_t>(rng.below(2048));
      const Kernel kernel =
          kernels_of_sizes(op, DType::kFp32, taken_sizes(op, {{"m", m}, {"n", n}, {"k", k}}))[0];
      const double law_s = kernel_kind_def(kernel_kind(kernel)).law(kernel, chip, {}).seconds;
      text += fmt::format("{},{},fp32,1,{},{},{},{:.9g},{}\n", gpu, op, m, n, k,
                          factor(m) * law_s + call_overhead_s,
                          call_overhead_s > 0 ? "single_call" : "back_to_back");
    }
  }
  return text;
}
std::string made_up_rows(const std::string& gpu, double factor, double call_overhead_s = 0,
                         size_t rows = 400) {
  return made_up_rows(gpu, [=](int64_t) { return factor; }, call_overhead_s, rows);
}

const TrainError* find_error(const std::vector<TrainError>& errors, std::string_view gpu,
                             std::string_view op) {
  for (const TrainError& e : errors) {
    if (e.gpu == gpu && e.op == op) return &e;
  }
  return nullptr;
}

TEST(Training, FindsWhatAClassTakesLongerThanTheLaw) {
  const TemporaryFolder folder;
  const auto v100 = [](int64_t m) { return m < 2000 ? 1.2 : 1.6; };
  write_file(folder.path() / "v100.csv", made_up_rows("V100-PCIe", v100));
  write_file(folder.path() / "t4.csv", made_up_rows("T4", 1.1));
  const TrainResult result = train_weights(
      {.data = {folder.path()}, .output = folder.path() / "weights", .leave_one_out = false});
  EXPECT_TRUE(result.left_out.empty());
  const TrainError* error = find_error(result.held_out, find_device("V100-PCIe").id, "linear");
  ASSERT_NE(error, nullptr);
  EXPECT_LT(error->mape_percent, 4);
  const Weights weights = load_weights(folder.path() / "weights");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "weights" / "checkpoints"));
  const auto predictor = make_learned_predictor(weights);
  const auto mean_error = [&](const char* gpu, const std::function<double(int64_t)>& factor) {
    const Device device = find_device(gpu);
    Rng rng(77);
    double sum = 0;
    for (int i = 0; i < 100; ++i) {
      const int64_t m = 100 + static_cast<int64_t>(rng.below(7000));
      const Kernel kernel =
          kernels_of_sizes("linear", DType::kFp32,
                           {{"m", m},
                            {"n", 100 + static_cast<int64_t>(rng.below(3000))},
                            {"k", 100 + static_cast<int64_t>(rng.below(1500))}})[0];
      KernelTime time;
      predictor->predict({&kernel, 1}, device, {}, {&time, 1});
      const double truth =
          factor(m) * single_precision_law(kernel, Chip(device, bundled_laws()), {}).seconds;
      sum += std::abs(time.seconds / truth - 1) / 100;
    }
    return sum;
  };
  EXPECT_LT(mean_error("V100-PCIe", v100), 0.04);
  EXPECT_LT(mean_error("V100-SXM2-32GB", v100), 0.04) << "of the same class";
  EXPECT_LT(mean_error("T4", [](int64_t) { return 1.1; }), 0.01);
  EXPECT_LT(mean_error("L40S", [](int64_t) { return 1; }), 1e-6) << "the law alone";
}

TEST(Training, TakesTheCallOverheadOff) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100-PCIe", 1.3, 20e-6));
  train_weights({.data = {folder.path()},
                 .output = folder.path() / "weights",
                 .trees = 20,
                 .leave_one_out = false});
  const Weights weights = load_weights(folder.path() / "weights");
  EXPECT_NEAR(weights.model(KernelKind::kElementwise).call_overhead.seconds, 20e-6, 2e-6);
}

TEST(Training, LeavesOutGpusAndArchitectures) {
  // Two of Volta and one of Turing, all half as slow again as the law. Without its own rows a V100
  // is forecast by the other's; T4, and all without their architecture, by the law alone, which is
  // 33.3 % short.
  const TemporaryFolder folder;
  const char* gpus[] = {"V100-PCIe", "V100-SXM2-32GB", "T4"};
  for (const char* gpu : gpus)
    write_file(folder.path() / (std::string(gpu) + ".csv"), made_up_rows(gpu, 1.5));
  const TrainResult result =
      train_weights({.data = {folder.path()}, .output = folder.path() / "weights", .trees = 200});
  const auto percent = [](const std::vector<TrainError>& errors, const char* gpu, const char* op) {
    const TrainError* error = find_error(errors, find_device(gpu).id, op);
    EXPECT_NE(error, nullptr) << gpu << " " << op;
    return error == nullptr ? -1 : error->mape_percent;
  };
  for (const char* op : {"linear", "add", "softmax", "layer_norm"}) {
    for (const char* gpu : gpus) {
      const bool alone = std::string_view(gpu) == "T4";
      EXPECT_LT(percent(result.held_out, gpu, op), 1) << gpu << " " << op;
      EXPECT_NEAR(percent(result.left_out, gpu, op), alone ? 33.3 : 0, 1) << gpu << " " << op;
      EXPECT_NEAR(percent(result.left_out_architecture, gpu, op), 33.3, 0.1) << gpu << " " << op;
    }
  }
  const Weights weights = load_weights(folder.path() / "weights");
  const KindModel& model = weights.model(KernelKind::kMatmul);
  ASSERT_EQ(model.classes.size(), 2u);
  EXPECT_EQ(model.classes[0].devices.size(), 2u);
  EXPECT_LT(model.classes[0].interval.at(10).high, 0.02) << "of left-out GPUs of a known class";
  EXPECT_NEAR(model.interval.at(10).high, std::log(1.5), 0.01) << "of left-out classes";
  EXPECT_LT(model.classes[0].devices[0].interval.at(10).high, 0.02);
  // errors.json holds the same three tables.
  const Json errors = parse_json(read_file(folder.path() / "weights/errors.json"), "errors");
  for (const char* table : {"held_out", "left_out", "left_out_architecture"})
    EXPECT_EQ(errors.at(table).size(), 12u) << table;
}

TEST(Training, WhatNobodyMeasuredFallsToTheRoofline) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100-PCIe", 2));
  const TrainResult result = train_weights({.data = {folder.path()},
                                            .output = folder.path() / "weights",
                                            .trees = 20,
                                            .leave_one_out = false},
                                           [](const Progress&) {});
  EXPECT_TRUE(std::any_of(result.report.begin(), result.report.end(), [](const std::string& line) {
    return line.find("too little to learn 'tensor_matmul' from: 0 usable rows") == 0;
  }));
  const Weights weights = load_weights(folder.path() / "weights");
  const KindModel& model = weights.model(KernelKind::kMatmul);
  EXPECT_EQ(model.trained_on.operators, std::vector<std::string>{"linear"});
  EXPECT_EQ(model.trained_on.vendors, std::vector<std::string>{"nvidia"});
  EXPECT_TRUE(model.trained_on.forms.empty()) << "no batched product was measured";
  ASSERT_EQ(model.classes.size(), 1u);
  EXPECT_EQ(model.classes[0].of, class_of(find_device("V100-PCIe")));
  ASSERT_EQ(model.classes[0].devices.size(), 1u);
  const Combination measured = {software_of("pytorch"), DType::kFp32, DType::kFp32,
                                QuantScheme::kNone};
  EXPECT_EQ(model.classes[0].devices[0].measured, std::vector<Combination>{measured});
  EXPECT_FALSE(weights.model(KernelKind::kTensorMatmul).known());
  const auto time_of = [&](const char* op, DType dtype, const char* gpu) {
    const Kernel kernel = kernels_of_sizes(
        op, dtype, taken_sizes(op, {{"batch", 4}, {"m", 64}, {"n", 64}, {"k", 64}}))[0];
    KernelTime time;
    make_learned_predictor(weights)->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
    return time;
  };
  EXPECT_EQ(time_of("linear", DType::kBf16, "A100").predictor, "roofline");
  EXPECT_EQ(time_of("linear", DType::kBf16, "A100").extrapolated_feature, "model");
  EXPECT_EQ(time_of("matmul", DType::kFp32, "V100-PCIe").extrapolated_feature, "batch");
  EXPECT_EQ(time_of("linear", DType::kFp32, "T4").extrapolated_feature, "architecture");
  EXPECT_EQ(time_of("linear", DType::kFp32, "MI100").extrapolated_feature, "vendor");
  // A whole model is forecast, and a warning names what falls to the roofline.
  const Forecast forecast =
      Forecaster((folder.path() / "weights").string())
          .forecast(
              load_model_ref("gpt2_large"), load_gpu_ref("A100"),
              {.seq = 64, .execution = {.dtype = "bf16", .attention = AttentionKind::kEager}});
  EXPECT_TRUE(std::any_of(forecast.warnings.begin(), forecast.warnings.end(),
                          [](const Warning& warning) {
                            return warning.code == WarningCode::kNoModel &&
                                   warning_text(warning).find(
                                       "the weights have no model for linear bf16, matmul bf16") ==
                                       0;
                          }))
      << forecast.warnings.size();
}

TEST(Training, TheNumberOfThreadsDoesNotChangeTheResult) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100-PCIe", 3));
  TrainOptions options{.data = {folder.path() / "v100.csv"},
                       .output = folder.path() / "a",
                       .trees = 20,
                       .threads = 1,
                       .leave_one_out = false};
  train_weights(options, [](const Progress&) {});
  options.output = folder.path() / "b";
  options.threads = 3;
  train_weights(options, [](const Progress&) {});
  EXPECT_EQ(read_file(folder.path() / "a/kernels.weights"),
            read_file(folder.path() / "b/kernels.weights"));
}

TEST(Training, AKilledRunEndsWithTheBytesOfAWholeOne) {
  const TemporaryFolder folder;
  write_file(folder.path() / "pcie.csv", made_up_rows("V100-PCIe", 3));
  write_file(folder.path() / "sxm.csv", made_up_rows("V100-SXM2-32GB", 2));
  // Four kinds: forests of both GPUs and of each without the other.
  constexpr size_t kForests = 12;
  TrainOptions options{.data = {folder.path() / "pcie.csv", folder.path() / "sxm.csv"},
                       .output = folder.path() / "killed",
                       .trees = 20,
                       .threads = 2};
  const auto checkpoints = [&] {
    std::map<std::filesystem::path, std::filesystem::file_time_type> times;
    for (const auto& entry : std::filesystem::directory_iterator(options.output / "checkpoints")) {
      if (entry.path().extension() == ".forest") times[entry.path()] = entry.last_write_time();
    }
    return times;
  };
  std::map<std::filesystem::path, std::filesystem::file_time_type> before;
  for (const size_t fate : {size_t{3}, size_t{8}}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        train_weights(options, [&](const Progress& p) {
          if (p.done == fate) ::kill(::getpid(), SIGKILL);
        });
      } catch (...) {
      }
      ::_exit(3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the run ended before it was killed";
    EXPECT_FALSE(std::filesystem::exists(options.output / "kernels.weights"));
    const auto after = checkpoints();
    EXPECT_GE(after.size(), fate);
    EXPECT_LT(after.size(), kForests);
    for (const auto& [path, time] : before) EXPECT_EQ(after.at(path), time) << "learned again";
    before = after;
  }
  size_t finished = 0;
  train_weights(options, [&](const Progress& p) {
    finished = p.done;
    EXPECT_EQ(p.total, kForests);
  });
  EXPECT_EQ(finished, kForests);
  EXPECT_FALSE(std::filesystem::exists(options.output / "checkpoints"));
  options.output = folder.path() / "whole";
  train_weights(options);
  for (const char* name : {"held_out.csv", "kernels.weights", "errors.json"})
    EXPECT_EQ(read_file(folder.path() / "whole" / name), read_file(folder.path() / "killed" / name))
        << name;
}

TEST(Training, ACheckpointOfOtherDataOrDamagedIsNotTakenUp) {
  const TemporaryFolder folder;
  const auto plan_of = [&](double factor) {
    write_file(folder.path() / "rows.csv", made_up_rows("V100-PCIe", factor, 0, 200));
    return weights_job({.data = {folder.path() / "rows.csv"}, .trees = 10}, folder.path());
  };
  const auto learned = [&](WeightsJob job) {
    learn_forest(job, job.forests.front());
    return job.forests.front();
  };
  const ForestJob once = learned(plan_of(1.5));
  const auto checkpoint = folder.path() / (once.name + ".forest");
  const std::string content = read_file(checkpoint);
  // Damaged, truncated, or of other rows: learned anew.
  std::string changed = content;
  changed[content.size() - sizeof(Forest::Tree) + offsetof(Forest::Tree, leaf)] ^= 1;
  write_file(checkpoint, changed);
  EXPECT_EQ(learned(plan_of(1.5)).learned, once.learned);
  EXPECT_EQ(read_file(checkpoint), content);
  write_file(checkpoint, content.substr(0, content.size() - 1));
  EXPECT_EQ(learned(plan_of(1.5)).learned, once.learned);
  EXPECT_EQ(read_file(checkpoint), content);
  EXPECT_FALSE(learned(plan_of(2)).learned == once.learned);
  EXPECT_NE(read_file(checkpoint), content);
}

TEST(Training, ExcludedGpusLeaveNothingBehind) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100-PCIe", 2));
  const MeasurementSet set = read_measurements(folder.path());
  EXPECT_EQ(prepare_training_data({set}, {}).rows.size(), 1600u);
  EXPECT_TRUE(prepare_training_data({set}, {"Tesla V100-PCIE-32GB"}).rows.empty());
  EXPECT_ERROR(
      train_weights(
          {.data = {folder.path()}, .output = folder.path() / "w", .exclude_gpus = {"V100-PCIe"}},
          [](const Progress&) {}),
      kInput, "too little to learn");
}

TEST(Training, LayersAreCorrectedByForestsThatOutliveTheFile) {
  const TemporaryFolder folder;
  std::string csv =
      "gpu,software,dtype,kv_dtype,batch,kv_len,num_heads,num_kv_heads,head_dim,window_size,"
      "latency_ms\n";
  for (int heads = 1; heads <= 30; ++heads) {
    for (int batch = 1; batch <= 16; batch *= 2) {
      for (int length = 63; length < 5000; length = 2 * length + 1) {
        const double us = 8 + 0.02 * heads * batch + 1e-4 * heads * batch * length;
        csv += fmt::format("H100,vllm 1,bfloat16,bfloat16,{},{},{},{},128,0,{}\n", batch, length,
                           heads, heads, us * 1e-3);
      }
    }
  }
  write_file(folder.path() / "decode.csv", csv);
  const TrainOptions options{
      .data = {folder.path() / "decode.csv"}, .output = folder.path() / "w", .trees = 220};
  const TrainResult result = train_weights(options, [](const Progress&) {});
  ASSERT_EQ(result.held_out.size(), 1u);
  EXPECT_EQ(result.held_out[0].op, "cached_attention");
  EXPECT_EQ(result.held_out[0].software, "vllm");
  EXPECT_LT(result.held_out[0].mape_percent, 6);
  EXPECT_GT(result.held_out[0].roofline_mape_percent, 30);
  const Weights weights = load_weights(folder.path() / "w");
  const KindModel& model = weights.model(KernelKind::kDecodeAttention);
  ASSERT_EQ(model.classes.size(), 1u);
  ASSERT_EQ(model.classes[0].forests.size(), 1u);
  EXPECT_EQ(model.classes[0].forests[0].software, software_of("vllm"));
  const std::string content = serialize_weights(weights);
  EXPECT_EQ(parse_weights(content, "w"), weights);
  std::string damaged = content;
  damaged[damaged.size() - 100] ^= 1;
  EXPECT_ERROR(parse_weights(damaged, "w"), kInput, "the checksum of the parameters differs");
}

}  // namespace
}  // namespace tilecast
