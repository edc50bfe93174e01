// Forecasts rank devices as their data sheets do: a device that has at least as much of everything
// as another one of its kernel class is never slower, and a small change of a number of the data
// sheet changes a forecast little. Random kernels of all operators and all bundled models; seeded.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "devices/cluster.h"
#include "devices/registry.h"
#include "ops/op_def.h"
#include "predict/bound.h"
#include "predict/predictor.h"
#include "scenario/internal.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

constexpr size_t kKernels = 10000;

const Weights& weights() {
  static const Weights instance = load_weights("");
  return instance;
}

/// A number of the data sheet that may only help.
struct Number {
  std::string_view name;
  bool continuous = false;
  std::function<double(const Device&)> get;
  std::function<void(Device&, double factor)> scale;
};

Gpu& gpu_of(Device& device) { return std::get<Gpu>(device.chip); }

double per_clock_per_sm(const Device& device, double rate) {
  return rate / (static_cast<double>(device.gpu().sm_count) * device.gpu().boost_clock_hz);
}

std::vector<Number> numbers() {
  std::vector<Number> all = {
      {"memory_bytes", true, [](const Device& d) { return static_cast<double>(d.memory_bytes); },
       [](Device& d, double f) {
         d.memory_bytes = static_cast<int64_t>(static_cast<double>(d.memory_bytes) * f);
       }},
      {"memory_bytes_per_s", true, [](const Device& d) { return d.memory_bytes_per_s; },
       [](Device& d, double f) { d.memory_bytes_per_s *= f; }},
      {"l2_bytes", true, [](const Device& d) { return static_cast<double>(d.gpu().l2_bytes); },
       [](Device& d, double f) {
         gpu_of(d).l2_bytes = static_cast<int64_t>(static_cast<double>(d.gpu().l2_bytes) * f);
       }},
      {"boost_clock_hz", true, [](const Device& d) { return d.gpu().boost_clock_hz; },
       [](Device& d, double f) { gpu_of(d).boost_clock_hz *= f; }},
      {"board_power_w", true, [](const Device& d) { return d.gpu().board_power_w; },
       [](Device& d, double f) { gpu_of(d).board_power_w *= f; }},
      {"sm_count", false, [](const Device& d) { return static_cast<double>(d.gpu().sm_count); },
       nullptr},
      {"exp_per_clock_per_sm", false, [](const Device& d) { return d.gpu().exp_per_clock_per_sm; },
       nullptr},
      {"issue_per_clock", false, [](const Device& d) { return d.gpu().issue_per_clock; }, nullptr},
  };
  for (size_t t = 0; t < kDTypeCount; ++t) {
    all.push_back(
        {"vector rate", true,
         [t](const Device& d) { return per_clock_per_sm(d, d.gpu().vector_flops_per_s[t]); },
         [t](Device& d, double f) { gpu_of(d).vector_flops_per_s[t] *= f; }});
    all.push_back(
        {"matrix rate", true,
         [t](const Device& d) { return per_clock_per_sm(d, d.gpu().matrix_flops_per_s[t]); },
         [t](Device& d, double f) { gpu_of(d).matrix_flops_per_s[t] *= f; }});
  }
  return all;
}

double link_bytes_per_s(const Device& device) {
  double best = 0;
  for (const Link& link : device.links) best = std::max(best, link.bytes_per_s);
  return best;
}

/// Whether `a` has at least as much of everything as `b`, of the same class.
bool dominates(const Device& a, const Device& b) {
  // Data sheets round rates and clocks.
  constexpr double kRounding = 1e-3;
  if (class_of(a) != class_of(b) || a.gpu().matrix_instruction != b.gpu().matrix_instruction ||
      link_bytes_per_s(a) < link_bytes_per_s(b))
    return false;
  for (const Number& number : numbers()) {
    if (number.get(a) < number.get(b) * (1 - kRounding)) return false;
  }
  return true;
}

/// Random kernels that the device has units for.
std::vector<Kernel> draw_kernels(const Device& device, size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<const OpDef*> ops;
  for (const OpDef& op : op_table()) {
    if (op.random_sizes) ops.push_back(&op);
  }
  const std::vector<DType> dtypes = {DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp8};
  std::vector<Kernel> kernels;
  while (kernels.size() < count) {
    const OpDef& op = *ops[rng.below(ops.size())];
    const DType dtype = dtypes[rng.below(dtypes.size())];
    for (const Kernel& kernel : kernels_of_sizes(op.name, dtype, draw_sizes(op, rng))) {
      if (has_unit_for(kernel, device)) kernels.push_back(kernel);
    }
  }
  return kernels;
}

std::vector<double> seconds_of(const std::vector<Kernel>& kernels, const Device& device,
                               Software software) {
  std::vector<KernelTime> times(kernels.size());
  make_learned_predictor(weights())->predict(kernels, device, {.software = software}, times);
  std::vector<double> seconds;
  for (const KernelTime& time : times) seconds.push_back(time.seconds);
  return seconds;
}

const Software kSoftware[] = {software_of("pytorch"), software_of("vllm"), software_of("trtllm")};

TEST(RankingTest, ADeviceWithMoreOfEverythingIsNotSlower) {
  constexpr double kMayBe = 1.01;
  const std::vector<Device> devices = bundled_devices();
  size_t pairs = 0;
  for (const Device& better : devices) {
    for (const Device& worse : devices) {
      if (better.id == worse.id || !dominates(better, worse)) continue;
      ++pairs;
      const std::vector<Kernel> kernels = draw_kernels(worse, kKernels, 1);
      for (const Software software : kSoftware) {
        const std::vector<double> fast = seconds_of(kernels, better, software);
        const std::vector<double> slow = seconds_of(kernels, worse, software);
        size_t violations = 0, worst = 0;
        for (size_t i = 0; i < kernels.size(); ++i) {
          if (fast[i] > kMayBe * slow[i]) ++violations;
          if (fast[i] / slow[i] > fast[worst] / slow[worst]) worst = i;
        }
        EXPECT_EQ(violations, 0u) << better.id << " slower than " << worse.id << ": "
                                  << op_table()[kernels[worst].op].name << " takes " << fast[worst]
                                  << " s instead of " << slow[worst];
      }
    }
  }
  fmt::print("{} pairs of devices, {} kernels each\n", pairs, kKernels * std::size(kSoftware));
  EXPECT_GE(pairs, 20u);
}

TEST(RankingTest, ModelsAreNotSlowerOnADeviceWithMoreOfEverything) {
  constexpr double kMayBe = 1.01;
  const Forecaster forecaster;
  const std::vector<Device> devices = bundled_devices();
  size_t forecasts = 0;
  const auto seconds = [&](const std::string& model, const Device& device) {
    Request request;
    request.batch = 2;
    request.seq = 256;
    return forecaster.forecast(load_model_ref(model), load_gpu_ref(device.id), request).latency_s;
  };
  for (const Device& better : devices) {
    for (const Device& worse : devices) {
      if (better.id == worse.id || !dominates(better, worse)) continue;
      for (const ModelEntry& entry : model_catalog()) {
        try {
          const double slow = seconds(entry.name, worse);
          ++forecasts;
          EXPECT_LE(seconds(entry.name, better), kMayBe * slow)
              << entry.name << ": " << better.id << " slower than " << worse.id;
        } catch (const Error&) {
          continue;  // refused on both: sizes beyond the model's positions
        }
      }
    }
  }
  fmt::print("{} forecasts\n", forecasts);
  EXPECT_GT(forecasts, 500u);
}

/// The links that join `ranks` GPUs of a node.
const LinkLevel& level_of(const Cluster& node, int64_t ranks) {
  return *std::find_if(node.levels.begin(), node.levels.end(),
                       [&](const LinkLevel& level) { return level.gpus >= ranks; });
}

bool links_dominate(const LinkLevel& a, const LinkLevel& b) {
  const auto shared = [](const LinkLevel& level) {
    return level.shared_bytes_per_s.value_or(level.bytes_per_s);
  };
  return a.kind == b.kind && a.fabric == b.fabric && a.bytes_per_s >= b.bytes_per_s &&
         shared(a) >= shared(b) && a.start_s <= b.start_s && a.latency_s <= b.latency_s &&
         a.reduces == b.reduces && a.generation == b.generation;
}

TEST(RankingTest, SeveralGpusAreNotSlowerThanThoseWithLessOfEverything) {
  constexpr double kMayBe = 1.01;
  const Forecaster forecaster;
  const ModelRef model = load_model_ref("llama-3-8b");
  const std::vector<Device> devices = bundled_devices();
  size_t forecasts = 0;
  for (const int64_t tp : {2, 8}) {
    Request request{.kind = RequestKind::kGenerate, .batch = 8, .prompt = 512, .output = 4};
    request.execution.dtype = "fp16";
    request.execution.tp = tp;
    for (const Device& better : devices) {
      for (const Device& worse : devices) {
        if (better.id == worse.id || !dominates(better, worse)) continue;
        if (!links_dominate(level_of(node_of(better), tp), level_of(node_of(worse), tp))) continue;
        try {
          const double slow =
              forecast_generation(forecaster, model, load_gpu_ref(worse.id), request).latency.value;
          ++forecasts;
          EXPECT_LE(forecast_generation(forecaster, model, load_gpu_ref(better.id), request)
                        .latency.value,
                    kMayBe * slow)
              << better.id << " slower than " << worse.id << " with tp " << tp;
        } catch (const Error&) {
          continue;  // no unit for fp16
        }
      }
    }
  }
  fmt::print("{} forecasts\n", forecasts);
  EXPECT_GT(forecasts, 20u);
}

TEST(RankingTest, AnSmMoreAtTheSameRatesDoesNotSlowDown) {
  for (const Device& device : bundled_devices()) {
    Device larger = device;
    Gpu& gpu = gpu_of(larger);
    const double factor = static_cast<double>(gpu.sm_count + 1) / static_cast<double>(gpu.sm_count);
    ++gpu.sm_count;
    for (double& rate : gpu.vector_flops_per_s) rate *= factor;
    for (double& rate : gpu.matrix_flops_per_s) rate *= factor;
    const std::vector<Kernel> kernels = draw_kernels(device, 2000, 2);
    const std::vector<double> before = seconds_of(kernels, device, software_of("vllm"));
    const std::vector<double> after = seconds_of(kernels, larger, software_of("vllm"));
    for (size_t i = 0; i < kernels.size(); ++i)
      ASSERT_LE(after[i], before[i] * (1 + 1e-9))
          << device.id << ": " << op_table()[kernels[i].op].name << " of " << kernels[i].bytes()
          << " bytes and " << kernels[i].flops << " FLOPs";
  }
}

TEST(RankingTest, OnePercentOfANumberChangesNoTimeByMoreThanFive) {
  constexpr double kStep = 1.01, kMost = 0.05;
  for (const Device& device : bundled_devices()) {
    const std::vector<Kernel> kernels = draw_kernels(device, 1000, 3);
    const std::vector<double> before = seconds_of(kernels, device, software_of("vllm"));
    for (const Number& number : numbers()) {
      if (!number.continuous || number.get(device) == 0) continue;
      Device changed = device;
      number.scale(changed, kStep);
      const std::vector<double> after = seconds_of(kernels, changed, software_of("vllm"));
      for (size_t i = 0; i < kernels.size(); ++i)
        ASSERT_NEAR(after[i] / before[i], 1, kMost)
            << device.id << ", " << number.name << ": " << op_table()[kernels[i].op].name;
    }
  }
}

}  // namespace
}  // namespace tilecast
