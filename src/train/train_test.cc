#include "tilecast/train.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/file.h"
#include "base/rng.h"
#include "devices/registry.h"
#include "predict/predictor.h"
#include "predict/weights.h"
#include "sizes.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/report.h"
#include "train/calibration_fit.h"
#include "train/dataset.h"
#include "train/forest_trainer.h"
#include "train/trainer.h"

namespace tilecast {
namespace {

/// Rows whose log ratio is a smooth function of two inputs.
NetRows toy_rows(size_t count, uint64_t seed) {
  Rng rng(seed);
  NetRows rows;
  rows.width = 2;
  for (size_t i = 0; i < count; ++i) {
    const double a = 2 * rng.uniform() - 1;
    const double b = 2 * rng.uniform() - 1;
    rows.inputs.push_back(static_cast<float>(a));
    rows.inputs.push_back(static_cast<float>(b));
    rows.bounds.push_back(100);
    rows.log_times.push_back(static_cast<float>(std::log(100.0) + 1 + std::sin(2 * a) * b));
    rows.weights.push_back(1);
  }
  return rows;
}

NetTask toy_task(const NetRows& train, const NetRows& held_out, int epochs) {
  return {.name = "toy",
          .widths = {2, 16, 16, 1},
          .epochs = epochs,
          .seed = 3,
          .train = &train,
          .held_out = &held_out};
}

TEST(Trainer, LearnsASmoothLaw) {
  const NetRows train = toy_rows(2000, 1);
  const NetRows held_out = toy_rows(200, 2);
  std::vector<double> curve;
  const NetTask task = toy_task(train, held_out, 60);
  train_net(task, [&](const EpochReport& r) { curve.push_back(r.held_out_error); });
  ASSERT_EQ(curve.size(), 60u);
  // The targets spread by about 0.4 around their mean.
  EXPECT_LT(curve.back(), 0.05);
  EXPECT_LT(curve.back(), curve.front());
}

TEST(Trainer, PairsKeepALawGrowingWhereNothingIsMeasured) {
  // Measured up to x = 1, where twice the work takes an eighth of the time; beyond, a network goes
  // on as it likes unless pairs hold it.
  NetRows train{.width = 1};
  const auto bound = [](float x) { return 10 * std::exp2(x); };
  for (int i = 0; i < 400; ++i) {
    const float x = static_cast<float>(i) / 400;
    train.inputs.push_back(x);
    train.bounds.push_back(bound(x));
    train.log_times.push_back(std::log(400.0f) - 2.0f * x);
    train.weights.push_back(1);
  }
  GrowingPairs pairs{.smaller = {.width = 1}, .larger = {.width = 1}};
  for (int i = 0; i < 400; ++i) {
    const float x = 1 + static_cast<float>(i) / 200;
    for (auto& [rows, at] : {std::pair{&pairs.smaller, x}, {&pairs.larger, x + 0.2f}}) {
      rows->inputs.push_back(at);
      rows->bounds.push_back(bound(at));
    }
  }
  const auto falls = [&](const GrowingPairs* held) {
    NetTask task = toy_task(train, train, 2000);
    task.widths = {1, 16, 16, 1};
    task.pairs = held;
    const Mlp mlp = train_net(task, [](const EpochReport&) {});
    const auto log_time = [&](const NetRows& rows, size_t r) {
      const float logit = net_logits({mlp}, rows)[r];
      return std::log(1 + rows.bounds[r] * (1 + std::exp(-logit)));
    };
    int count = 0;
    for (size_t r = 0; r < pairs.count(); r += 20)
      count += log_time(pairs.larger, r) < log_time(pairs.smaller, r) - 1e-3f;
    return count;
  };
  EXPECT_GE(falls(nullptr), 5);
  EXPECT_EQ(falls(&pairs), 0);
}

TEST(Trainer, TheSameSeedGivesTheSameBytes) {
  const NetRows train = toy_rows(500, 1);
  const NetTask task = toy_task(train, train, 3);
  const auto ignore = [](const EpochReport&) {};
  EXPECT_EQ(train_net(task, ignore), train_net(task, ignore));
}

TEST(Trainer, AnInterruptedRunEndsLikeAWholeOne) {
  const TemporaryFolder folder;
  const NetRows train = toy_rows(500, 1);
  const auto ignore = [](const EpochReport&) {};
  const Mlp whole = train_net(toy_task(train, train, 10), ignore);

  NetTask task = toy_task(train, train, 10);
  task.checkpoint = folder.path() / "toy.checkpoint";
  struct Stop {};
  const auto stop_at_seven = [](const EpochReport& r) {
    if (r.epoch == 7) throw Stop{};
  };
  EXPECT_THROW(train_net(task, stop_at_seven), Stop);
  int epochs = 0, resumed = 0;
  EXPECT_EQ(train_net(task, [&](const EpochReport& r) { ++(r.resumed ? resumed : epochs); }),
            whole);
  EXPECT_EQ(epochs, 3);
  EXPECT_EQ(resumed, 7);
}

TEST(Trainer, ACheckpointOfOtherDataIsNotTakenUp) {
  const TemporaryFolder folder;
  const NetRows train = toy_rows(500, 1);
  NetTask task = toy_task(train, train, 5);
  task.checkpoint = folder.path() / "toy.checkpoint";
  int epochs = 0;
  const auto count = [&](const EpochReport&) { ++epochs; };
  train_net(task, count);
  task.data_hash = 7;
  train_net(task, count);
  EXPECT_EQ(epochs, 10);
}

/// Measurements made by a known law: twice the bound plus a call overhead of 20 us.
std::string made_up_rows(const std::string& gpu, double slowdown) {
  const Device device = find_device(gpu);
  Rng rng(9);
  std::string text = "gpu,op,dtype,batch,m,n,k,latency_s,protocol\n";
  for (const char* op : {"linear", "add", "softmax", "layer_norm"}) {
    for (int i = 0; i < 400; ++i) {
      const int64_t m = 16 + static_cast<int64_t>(rng.below(8192));
      const int64_t n = 16 + static_cast<int64_t>(rng.below(4096));
      const int64_t k = 16 + static_cast<int64_t>(rng.below(2048));
      const SizeList sizes = taken_sizes(op, {{"m", m}, {"n", n}, {"k", k}});
      const double bound =
          physical_bound(kernels_of_sizes(op, DType::kFp32, sizes)[0], device).seconds();
      text += fmt::format("{},{},fp32,1,{},{},{},{:.9g},single_call\n", gpu, op, m, n, k,
                          slowdown * bound + 20e-6);
    }
  }
  return text;
}

TEST(Training, FindsAKnownLawAndItsOverhead) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100", 2));
  write_file(folder.path() / "t4.csv", made_up_rows("T4", 2));
  const TrainOptions options{.data = {folder.path() / "v100.csv", folder.path() / "t4.csv"},
                             .output = folder.path() / "weights",
                             .epochs = 800,
                             .members = 1,
                             .hidden = 16,
                             .leave_one_out = false};
  const TrainResult result = train_weights(options, [](const TrainProgress&) {});
  EXPECT_FALSE(result.held_out.empty());
  const Weights weights = load_weights(folder.path() / "weights");
  EXPECT_NEAR(weights.net(NetKind::kElementwise).call_overhead.seconds, 20e-6, 5e-6);
  const auto predictor = make_learned_predictor(weights);
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kFp32, {{"m", 4096}, {"n", 2048}, {"k", 1024}})[0];
  KernelTime time;
  const Device device = find_device("V100");
  predictor->predict({&kernel, 1}, device, {}, {&time, 1});
  // 800 noisy small rows teach it to about a fifth.
  EXPECT_NEAR(time.utilization_ratio, 0.5, 0.1);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "weights" / "checkpoints"));
}

TEST(Training, WhatNobodyMeasuredFallsToTheRoofline) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100", 2));
  const TrainResult result = train_weights({.data = {folder.path()},
                                            .output = folder.path() / "weights",
                                            .epochs = 1,
                                            .members = 1,
                                            .hidden = 8,
                                            .leave_one_out = false},
                                           [](const TrainProgress&) {});
  EXPECT_TRUE(std::any_of(result.report.begin(), result.report.end(), [](const std::string& line) {
    return line.find("too little to learn 'tensor_matmul' from: 0 usable rows") == 0;
  }));
  const Weights weights = load_weights(folder.path() / "weights");
  const Net& net = weights.net(NetKind::kMatmul);
  EXPECT_EQ(net.trained_on.operators, std::vector<std::string>{"linear"});
  EXPECT_EQ(net.trained_on.vendors, std::vector<std::string>{"nvidia"});
  EXPECT_TRUE(net.trained_on.forms.empty()) << "no batched product was measured";
  ASSERT_EQ(net.residuals.size(), 1u);
  const Combination measured = {Software::kPyTorch, DType::kFp32, DType::kFp32, QuantScheme::kNone};
  EXPECT_EQ(net.residuals[0].measured, std::vector<Combination>{measured});
  EXPECT_TRUE(weights.net(NetKind::kTensorMatmul).members.empty());
  const auto time_of = [&](const char* op, DType dtype, const char* gpu) {
    const Kernel kernel = kernels_of_sizes(
        op, dtype, taken_sizes(op, {{"batch", 4}, {"m", 64}, {"n", 64}, {"k", 64}}))[0];
    KernelTime time;
    make_learned_predictor(weights)->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
    return time;
  };
  EXPECT_EQ(time_of("linear", DType::kBf16, "A100").predictor, "roofline");
  EXPECT_EQ(time_of("linear", DType::kBf16, "A100").extrapolated_feature, "model");
  EXPECT_EQ(time_of("matmul", DType::kFp32, "V100").extrapolated_feature, "batch");
  EXPECT_EQ(time_of("linear", DType::kFp32, "MI100").extrapolated_feature, "vendor");
  // A whole model is forecast, and a warning names what falls to the roofline.
  const Forecast forecast = Forecaster((folder.path() / "weights").string())
                                .forecast(load_model_ref("gpt2_large"), load_gpu_ref("A100"),
                                          {.seq = 64, .execution = {.dtype = "bf16"}});
  EXPECT_TRUE(std::any_of(forecast.warnings.begin(), forecast.warnings.end(),
                          [](const Warning& warning) {
                            return warning.code == WarningCode::kNoModel &&
                                   warning_text(warning).find(
                                       "the weights have no model for linear bf16, matmul bf16") ==
                                       0;
                          }))
      << forecast.warnings.size();
}

TEST(TrainingData, ProductsFasterThanDramWereWarmAndAreLeftOut) {
  const TemporaryFolder folder;
  // 4096 x 4096 weights in BF16 are 33.6 MB: 10 us of an H100's DRAM.
  write_file(folder.path() / "gemm.csv",
             "gpu,software,dtype,m,n,k,latency_ms\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,4096,4096,0.008\n"
             "nvidia-h100-sxm5-80gb,vllm 0.24.0,bfloat16,1,4096,4096,0.014\n"
             "nvidia-h100-sxm5-80gb,trtllm 1.3.0,fp8,16,4096,4096,0.014\n");
  const TrainingData data = prepare_training_data({read_measurements(folder.path())}, {});
  ASSERT_EQ(data.rows.size(), 2u);
  EXPECT_EQ(data.rows[0].seconds, 14e-6);
  EXPECT_EQ(data.rows[0].conditions.software, Software::kVllm);
  EXPECT_EQ(data.rows[1].conditions.software, Software::kTensorRtLlm);
  EXPECT_EQ(data.rows[1].weight, 1.0f) << "back to back: no call's jitter";
  EXPECT_EQ(data.report.back(),
            "left out 1 rows that are faster than their bound: a cache was warm, or the work less "
            "than they say");
}

TEST(TrainingData, WarmAndColdRowsGoToTheLawsThatMeanThem) {
  const TemporaryFolder folder;
  write_file(folder.path() / "attention.csv",
             "gpu,op,dtype,batch,heads,kv_heads,queries,keys,head_size,causal,l2,latency_s\n"
             "H100,attention,bf16,1,32,8,512,512,128,1,warm,4e-5\n"
             "H100,attention,bf16,1,32,8,512,512,128,1,cold,4e-5\n");
  write_file(folder.path() / "products.csv",
             "gpu,op,dtype,m,n,k,l2,latency_s\n"
             "H100,gemm,bf16,512,512,512,warm,1e-5\nH100,gemm,bf16,512,512,512,cold,2e-5\n");
  const TrainingData data = prepare_training_data({read_measurements(folder.path())}, {});
  ASSERT_EQ(data.rows.size(), 3u);
  EXPECT_EQ(data.rows[0].seconds, 4e-5);
  const double cold = physical_bound(data.rows[1].kernel, find_device("H100")).cold_s;
  EXPECT_GT(cold, 0);
  EXPECT_DOUBLE_EQ(data.rows[1].seconds, 4e-5 - cold);
  EXPECT_EQ(data.rows[2].seconds, 2e-5);
  EXPECT_EQ(
      data.report.front(),
      "left out 1 rows measured with a warm L2: models of matrix products and of operators over "
      "rows are trained on cold caches only");
}

TEST(Training, TheNumberOfThreadsDoesNotChangeTheResult) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100", 3));
  TrainOptions options{.data = {folder.path() / "v100.csv"},
                       .output = folder.path() / "a",
                       .epochs = 2,
                       .members = 1,
                       .hidden = 8,
                       .threads = 1,
                       .leave_one_out = false};
  train_weights(options, [](const TrainProgress&) {});
  options.output = folder.path() / "b";
  options.threads = 3;
  train_weights(options, [](const TrainProgress&) {});
  EXPECT_EQ(read_file(folder.path() / "a/kernels.weights"),
            read_file(folder.path() / "b/kernels.weights"));
}

TEST(Training, AKilledRunEndsWithTheBytesOfAWholeOne) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100", 3));
  TrainOptions options{.data = {folder.path() / "v100.csv"},
                       .output = folder.path() / "whole",
                       .epochs = 20,
                       .members = 1,
                       .hidden = 8,
                       .threads = 2,
                       .leave_one_out = false};
  train_weights(options, [](const TrainProgress&) {});
  options.output = folder.path() / "killed";
  for (const int fate : {25, 70}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int epochs = 0;
      try {
        train_weights(options, [&](const TrainProgress&) {
          if (++epochs == fate) ::kill(::getpid(), SIGKILL);
        });
      } catch (...) {
      }
      ::_exit(3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the run ended before it was killed";
    EXPECT_FALSE(std::filesystem::exists(options.output / "kernels.weights"));
    EXPECT_TRUE(std::filesystem::exists(options.output / "checkpoints"));
  }
  train_weights(options, [](const TrainProgress&) {});
  for (const char* name : {"held_out.csv", "kernels.weights", "errors.json"})
    EXPECT_EQ(read_file(folder.path() / "whole" / name), read_file(folder.path() / "killed" / name))
        << name;
  EXPECT_FALSE(std::filesystem::exists(options.output / "checkpoints"));
}

TEST(Calibrate, LearnsWhatAFewRowsShow) {
  // A device that is 1.6 times slower than forecast, with 1 % of noise, seen through 60 rows.
  const Weights weights = load_weights("");
  const Device device = find_device("L40S");
  Rng rng(5);
  std::vector<TrainingRow> rows;
  std::vector<Kernel> kernels;
  for (int i = 0; i < 120; ++i)
    kernels.push_back(kernels_of_sizes("linear", DType::kFp32,
                                       {{"m", 64 + static_cast<int64_t>(rng.below(4096))},
                                        {"n", 64 + static_cast<int64_t>(rng.below(4096))},
                                        {"k", 64 + static_cast<int64_t>(rng.below(4096))}})[0]);
  std::vector<KernelTime> before(kernels.size()), after(kernels.size());
  make_learned_predictor(weights)->predict(kernels, device, {}, before);
  for (size_t i = 0; i < 60; ++i)
    rows.push_back(
        {.kernel = kernels[i], .seconds = before[i].seconds * 1.6 * (0.99 + 0.02 * rng.uniform())});
  const Calibration calibration = fit_calibration(weights, device, rows);
  const CalibrationNet& net = calibration.net(NetKind::kMatmul);
  EXPECT_EQ(net.rows, 60u);
  EXPECT_NEAR(net.error_before_percent, 37.5, 1);
  EXPECT_LT(net.error_after_percent, 5);
  Weights calibrated = weights;
  calibrated.calibration = calibration;
  make_learned_predictor(calibrated)->predict(kernels, device, {}, after);
  double error = 0;
  for (size_t i = 60; i < kernels.size(); ++i)
    error += std::abs(after[i].seconds / (1.6 * before[i].seconds) - 1) / 60;
  EXPECT_LT(error, 0.05) << "rows that the calibration did not see";
  rows.resize(3);
  EXPECT_ERROR(fit_calibration(weights, device, rows), kInput,
               "too few measurements of nvidia-l40s to calibrate with: 3 matmul");
}

TEST(PowerFit, IsTheLeastEnergyThatACardShows) {
  TrainingData data;
  data.devices = {find_device("T4"), find_device("V100"), find_device("P4")};
  data.sustained_flops_per_s = {4e12, 1.4e13, 0};
  EXPECT_NEAR(fit_vector_pj_per_flop(data, std::nullopt), 70 / 4.0, 1e-9);
  EXPECT_NEAR(fit_vector_pj_per_flop(data, 0), data.devices[1].gpu().board_power_w / 14, 1e-9);
}

TEST(Training, ExcludedGpusLeaveNothingBehind) {
  const TemporaryFolder folder;
  write_file(folder.path() / "v100.csv", made_up_rows("V100", 2));
  const MeasurementSet set = read_measurements(folder.path());
  EXPECT_EQ(prepare_training_data({set}, {}).rows.size(), 1600u);
  EXPECT_TRUE(prepare_training_data({set}, {"Tesla V100-PCIE-32GB"}).rows.empty());
  EXPECT_ERROR(
      train_weights(
          {.data = {folder.path()}, .output = folder.path() / "w", .exclude_gpus = {"V100"}},
          [](const TrainProgress&) {}),
      kInput, "too little to learn");
}

TEST(TrainingData, RowsAreBoundByTheClockThatWasInForce) {
  MeasurementSet set{.sources = {"a"}, .kernels = {}, .models = {}, .unmatched = {}};
  const Device device = find_device("H100");
  const double clock_hz = device.gpu().boost_clock_hz / 2;
  const Kernel kernel =
      kernels_of_sizes("gemm", DType::kBf16, {{"m", 8192}, {"n", 8192}, {"k", 8192}}).front();
  const double least_s =
      static_cast<double>(kernel.flops) / device.matmul_peak(DType::kBf16);  // at the boost clock
  for (const double share : {1.5, 2.5}) {
    set.kernels.push_back({.gpu = "H100",
                           .op = "gemm",
                           .kernel = kernel,
                           .conditions = {.clock_hz = clock_hz},
                           .measured_s = share * least_s,
                           .protocol = Protocol::kBackToBack});
  }
  const TrainingData data = prepare_training_data({set}, {});
  ASSERT_EQ(data.rows.size(), 1u) << "the first is faster than half the clock allows";
  EXPECT_DOUBLE_EQ(data.rows[0].seconds, 2.5 * least_s);
  EXPECT_EQ(data.devices[data.rows[0].device].gpu().boost_clock_hz, device.gpu().boost_clock_hz);
  EXPECT_EQ(data.running(data.rows[0]).gpu().boost_clock_hz, clock_hz);
}

TEST(Forests, LearnStepsThatNoLineFits) {
  ForestTask task{.width = 3, .trees = 150};
  Rng rng(5);
  const auto truth = [](const float* x) {
    return (x[0] < 0.3f ? 1.0f : -0.5f) + (x[1] < 0 ? x[0] : 0);
  };
  for (int i = 0; i < 3000; ++i) {
    float x[3];
    for (float& v : x) v = static_cast<float>(2 * rng.uniform() - 1);
    task.inputs.insert(task.inputs.end(), x, x + 3);
    task.targets.push_back(truth(x));
    task.weights.push_back(1);
  }
  const Forest forest = train_forest(task);
  ASSERT_EQ(forest.trees().size(), 150u);
  EXPECT_EQ(forest, train_forest(task)) << "seeded";
  double error = 0;
  for (int i = 0; i < 500; ++i) {
    float x[3];
    for (float& v : x) v = static_cast<float>(2 * rng.uniform() - 1);
    float found = 0;
    forest_add(forest, x, 3, 1, 1, &found);
    error += std::abs(found - truth(x)) / 500;
  }
  EXPECT_LT(error, 0.03);
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
  const TrainOptions options{.data = {folder.path() / "decode.csv"},
                             .output = folder.path() / "w",
                             .epochs = 40,
                             .members = 1};
  const TrainResult result = train_weights(options, [](const TrainProgress&) {});
  ASSERT_EQ(result.held_out.size(), 1u);
  EXPECT_EQ(result.held_out[0].op, "cached_attention");
  EXPECT_EQ(result.held_out[0].software, "vllm");
  EXPECT_LT(result.held_out[0].mape_percent, 6);
  EXPECT_GT(result.held_out[0].roofline_mape_percent, 30);
  const Weights weights = load_weights(folder.path() / "w");
  const Net& net = weights.net(NetKind::kDecodeAttention);
  ASSERT_EQ(net.residuals.size(), 1u);
  ASSERT_EQ(net.residuals[0].forests.size(), 1u);
  EXPECT_EQ(net.residuals[0].forests[0].software, Software::kVllm);
  const std::string content = serialize_weights(weights);
  EXPECT_EQ(parse_weights(content, "w"), weights);
  std::string damaged = content;
  damaged[damaged.size() - 100] ^= 1;
  EXPECT_ERROR(parse_weights(damaged, "w"), kInput, "the checksum of the parameters differs");
}

}  // namespace
}  // namespace tilecast
