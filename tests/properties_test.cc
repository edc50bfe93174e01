// Laws that every forecast keeps, checked on random requests: whatever the model, the GPU and the
// options, the numbers are finite, add up, lie inside their interval and above what physics allows,
// and more work does not take less time.
//
// Seeded: the same requests in every run. Requests that Tilecast refuses (a dtype that the GPU
// lacks, a length beyond the model's positions) are drawn again; other errors fail the test.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "laws/constants.h"
#include "scenario/internal.h"
#include "schema/json.h"
#include "test_forecaster.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr int kDraws = 1400;
constexpr int kPromptRequests = 600;

/// Sums of many doubles in two orders differ by less than this.
constexpr double kRounding = 1e-9;

/// More work may shorten a forecast by this share: laws are monotone, what is learned on top of
/// them is not.
constexpr double kMayShorten = 0.02;

/// Share of the pairs that may break that law, with a margin over the share found in the run that
/// the weights were committed with (printed by the test). Most are small products on AMD's GPUs:
/// rocBLAS is tuned size by size, and a fall by more than 3 % is measured in 5.5 % of the pairs on
/// MI100 where k doubles.
constexpr double kMayBreak = 0.03;

template <typename T>
const T& pick(Rng& rng, const std::vector<T>& from) {
  return from[rng.below(from.size())];
}

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  for (const ModelEntry& entry : model_catalog()) names.push_back(entry.name);
  return names;
}
std::vector<std::string> all_gpus() {
  std::vector<std::string> ids;
  for (const GpuEntry& entry : gpu_catalog()) ids.push_back(entry.id);
  return ids;
}

/// Models and GPUs are read once.
const ModelRef& model(const std::string& name) {
  static std::map<std::string, ModelRef> read;
  auto it = read.find(name);
  if (it == read.end()) it = read.emplace(name, load_model_ref(name)).first;
  return it->second;
}
const GpuRef& gpu(const std::string& name) {
  static std::map<std::string, GpuRef> read;
  auto it = read.find(name);
  if (it == read.end()) it = read.emplace(name, load_gpu_ref(name)).first;
  return it->second;
}

/// Whether a request was refused for a reason that the user can mend.
bool refused(const std::function<void()>& request) {
  try {
    request();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    EXPECT_NE(error.kind(), ErrorKind::kIo) << error.what();
    return true;
  }
  return false;
}

/// Counts how often a law that is allowed exceptions is broken.
struct Exceptions {
  std::string law;
  int pairs = 0, broken = 0;
  std::string worst;
  double least = 1;

  void compare(double smaller, double larger, const std::string& request) {
    pairs += 1;
    if (larger >= (1 - kMayShorten) * smaller) return;
    broken += 1;
    if (larger / smaller >= least) return;
    least = larger / smaller;
    worst = request;
  }
  void expect_few() const {
    fmt::print("{}: {} of {} pairs break it; the worst takes {:.3f} of the time: {}\n", law, broken,
               pairs, least, worst);
    EXPECT_LE(broken, kMayBreak * pairs) << law;
  }
};

void expect_interval(double low, double middle, double high, const std::string& what) {
  EXPECT_TRUE(std::isfinite(low) && std::isfinite(middle) && std::isfinite(high)) << what;
  EXPECT_GT(middle, 0) << what;
  EXPECT_LE(low, middle) << what;
  EXPECT_GE(high, middle) << what;
}

void expect_kernels(const std::vector<KernelForecast>& kernels, const std::string& what) {
  for (const KernelForecast& k : kernels) {
    const std::string kernel = fmt::format("{}: {} {}", what, k.name, k.op);
    expect_interval(k.latency_s.low, k.latency_s, k.latency_s.high, kernel);
    // Time over the least that the data sheet allows is at least 1.
    EXPECT_LE(k.utilization_ratio, 1 + kRounding) << kernel;
    EXPECT_GE(k.utilization_ratio, 0) << kernel;
    EXPECT_GE(k.count, 1) << kernel;
    EXPECT_GE(k.flops, 0) << kernel;
    EXPECT_GE(k.bytes, 0) << kernel;
  }
}

void expect_near(double a, double b, const std::string& what) {
  EXPECT_LE(std::abs(a - b), kRounding * std::max(std::abs(a), std::abs(b))) << what;
}

/// Power lies between that of an idle board and its limit, at a clock between the lowest and the
/// highest; energy is power times time. Costs are energy and GPU time times their prices, to the
/// digit.
void check_power(const std::optional<PowerForecast>& power, const GpuRef& of,
                 const EnergyTerms& prices, const std::string& what) {
  if (!power) return;
  const PowerForecast& p = *power;
  const double boost_hz = of.content->device.gpu().boost_clock_hz;
  expect_interval(p.power_w.low, p.power_w, p.power_w.high, what + ": power");
  expect_interval(p.energy_j.low, p.energy_j, p.energy_j.high, what + ": energy");
  EXPECT_GE(p.power_w.low, p.idle_w) << what;
  EXPECT_LE(p.power_w.high, p.limit_w) << what;
  EXPECT_LE(p.clock_hz, boost_hz * (1 + kRounding)) << what;
  EXPECT_GE(p.clock_hz, bundled_laws().power.lowest_clock_share * boost_hz * (1 - kRounding))
      << what;
  EXPECT_GE(p.coverage_ratio, 0) << what;
  EXPECT_LE(p.coverage_ratio, 1 + kRounding) << what;
  ASSERT_EQ(p.energy_cost.has_value(), prices.price_per_kwh.has_value()) << what;
  if (p.energy_cost) {
    EXPECT_EQ(*p.energy_cost, *prices.price_per_kwh * (p.energy_j / 3.6e6)) << what;
  }
  ASSERT_EQ(p.carbon_g.has_value(), prices.carbon_g_per_kwh.has_value()) << what;
  if (p.carbon_g) {
    EXPECT_EQ(*p.carbon_g, *prices.carbon_g_per_kwh * (p.energy_j / 3.6e6)) << what;
  }
  EXPECT_EQ(p.gpu_cost.has_value(), prices.price_per_gpu_hour.has_value()) << what;
}

/// More work takes no less energy. Where time breaks that law, energy may.
void compare_energy(Exceptions& law, const std::optional<PowerForecast>& smaller,
                    const std::optional<PowerForecast>& larger, const std::string& what) {
  if (smaller && larger) law.compare(smaller->energy_j, larger->energy_j, what);
}

void check_pass(const Forecast& f, const std::string& what) {
  expect_interval(f.latency_s.low, f.latency_s, f.latency_s.high, what);
  expect_kernels(f.kernels, what);
  expect_near(f.forward_s + f.backward_s + f.optimizer_s, f.latency_s, what + ": phases");
  double seconds = 0;
  int64_t flops = 0, bytes = 0;
  for (const KernelForecast& k : f.kernels) {
    seconds += k.latency_s * static_cast<double>(k.count);
    flops += k.flops * k.count;
    bytes += k.bytes * k.count;
  }
  expect_near(seconds, f.kernels_s, what + ": kernels");
  EXPECT_GE(f.latency_s, f.kernels_s * (1 - kRounding)) << what;
  EXPECT_EQ(flops, f.flops) << what;
  EXPECT_EQ(bytes, f.bytes) << what;
  // Winograd's convolution of 4 x 4 tiles with 3 x 3 windows needs a quarter of the
  // multiplications.
  const bool convolves = std::any_of(f.kernels.begin(), f.kernels.end(), [](const auto& kernel) {
    return kernel.op.starts_with("conv");
  });
  EXPECT_LE(f.utilization_ratio, (convolves ? 4 : 1) + kRounding) << what;
  const PassMemory& m = f.memory;
  EXPECT_GE(m.peak_bytes, m.weights_bytes) << what;
  // Programs see a little less than the device has.
  EXPECT_EQ(m.fits, m.margin_bytes() >= 0) << what;
  EXPECT_LE(m.peak_bytes + m.margin_bytes(), m.device_bytes) << what;
  EXPECT_GE(m.peak_bytes + m.margin_bytes(), 0.9 * static_cast<double>(m.device_bytes)) << what;
}

/// The roofline of the same kernels, in the same order: compute-bound ones never take less, but
/// convolutions, whose algorithms (Winograd, FFT) may need fewer FLOPs than the definition.
void check_roofline(const Forecast& learned, const Forecast& roofline, const std::string& what) {
  ASSERT_EQ(learned.kernels.size(), roofline.kernels.size()) << what;
  for (size_t i = 0; i < learned.kernels.size(); ++i) {
    const KernelForecast& r = roofline.kernels[i];
    if (r.limit != "compute" || r.op.starts_with("conv")) continue;
    EXPECT_GE(learned.kernels[i].latency_s, r.latency_s * (1 - kRounding))
        << what << ": " << r.name;
  }
}

/// The options of a request that differ from their defaults.
std::string options_text(const Request& request) {
  std::string text;
  for (const OptionDef& option : request_options()) {
    const std::string value = option.access.get(request, option);
    if (option.applies_to(request.kind) && !value.empty() && value != option.default_value)
      text += fmt::format(" --{} {}", option.name, value);
  }
  return text;
}

struct Draw {
  std::string model, gpu;
  Request options;
  std::string text() const {
    return fmt::format("forecast {} --gpu {}{}", model, gpu, options_text(options));
  }
};

/// Prices change no time: half of the requests have each. Drawn apart, so that they change no
/// request.
void draw_prices(Rng& rng, EnergyTerms& energy) {
  const auto price = [&] { return 0.01 * static_cast<double>(1 + rng.below(1000)); };
  if (rng.below(2) == 0) energy.price_per_gpu_hour = price();
  if (rng.below(2) == 0) energy.price_per_kwh = price();
  if (rng.below(2) == 0) energy.carbon_g_per_kwh = 100 * price();
}

Draw draw_pass(Rng& rng, const std::vector<std::string>& models,
               const std::vector<std::string>& gpus) {
  Draw request{pick(rng, models), pick(rng, gpus), {}};
  Request& o = request.options;
  o.mode = rng.below(2) == 0 ? Mode::kInference : Mode::kTraining;
  o.batch = static_cast<int64_t>(1 + rng.below(uint64_t{1} << rng.below(7)));
  o.seq = static_cast<int64_t>(16 + rng.below(uint64_t{1} << (4 + rng.below(8))));
  o.execution.dtype = pick<std::string>(rng, {"fp32", "fp32", "tf32", "bf16", "fp16", "amp"});
  o.execution.attention = rng.below(2) == 0 ? AttentionKind::kEager : AttentionKind::kFlash;
  o.execution.fusion = rng.below(3) == 0 ? Fusion::kPointwise : Fusion::kNone;
  if (o.mode == Mode::kTraining)
    o.optimizer = pick<Optimizer>(
        rng, {Optimizer::kNone, Optimizer::kSgd, Optimizer::kAdam, Optimizer::kAdamW});
  return request;
}

TEST(Properties, OfPassesHoldForRandomRequests) {
  Rng rng(20261121), price_rng(1);
  const std::vector<std::string> models = all_models(), gpus = all_gpus();
  Exceptions batch{"a larger batch takes no less time"},
      length{"longer sequences take no less time"}, energy{"more work takes no less energy"};
  int done = 0, refusals = 0;
  while (done < kDraws && !HasFatalFailure()) {
    Draw request = draw_pass(rng, models, gpus);
    draw_prices(price_rng, request.options.energy);
    const std::string what = request.text();
    const auto forecast = [&](const Request& options) {
      return forecaster().forecast(model(request.model), gpu(request.gpu), options);
    };
    Forecast f;
    if (refused([&] { f = forecast(request.options); })) {
      ASSERT_LT(++refusals, 4 * kDraws) << "most requests are refused";
      continue;
    }
    ++done;
    check_pass(f, what);
    check_power(f.power, gpu(request.gpu), request.options.energy, what);
    EXPECT_EQ(to_json(f), to_json(forecast(request.options))) << what;
    Request options = request.options;
    options.execution.predictor = PredictorKind::kRoofline;
    check_roofline(f, forecast(options), what);
    options = request.options;
    options.batch *= 2;
    if (Forecast more; !refused([&] { more = forecast(options); })) {
      batch.compare(f.latency_s, more.latency_s, what);
      compare_energy(energy, f.power, more.power, what);
      EXPECT_GE(more.memory.peak_bytes, f.memory.peak_bytes) << what;
    }
    options = request.options;
    if (f.power) options.energy.power_cap_w = std::floor(0.6 * f.power->limit_w);
    if (Forecast capped; f.power && !refused([&] { capped = forecast(options); })) {
      check_power(capped.power, gpu(request.gpu), options.energy, what + ", capped");
      EXPECT_GE(capped.latency_s, f.latency_s * (1 - kRounding)) << what;
      EXPECT_LE(capped.power->power_w.high, *options.energy.power_cap_w) << what;
    }
    options = request.options;
    options.seq = 2 * *options.seq;
    if (Forecast more; !refused([&] { more = forecast(options); })) {
      length.compare(f.latency_s, more.latency_s, what);
      compare_energy(energy, f.power, more.power, what);
      EXPECT_GE(more.memory.peak_bytes, f.memory.peak_bytes) << what;
    }
  }
  fmt::print("{} requests forecast, {} refused\n", done, refusals);
  batch.expect_few();
  length.expect_few();
  energy.expect_few();
}

Draw draw_prompt(Rng& rng, const std::vector<std::string>& models,
                 const std::vector<std::string>& gpus) {
  Draw request{pick(rng, models), pick(rng, gpus), {}};
  Request& o = request.options;
  o.kind = RequestKind::kGenerate;
  o.prompt = static_cast<int64_t>(1 + rng.below(uint64_t{1} << (4 + rng.below(9))));
  o.output = static_cast<int64_t>(1 + rng.below(uint64_t{1} << rng.below(10)));
  o.batch = static_cast<int64_t>(1 + rng.below(uint64_t{1} << rng.below(8)));
  o.execution.tp = int64_t{1} << rng.below(4);
  o.execution.dtype = pick<std::string>(rng, {"", "", "bf16", "fp16", "fp8", "int4_wo", "int8"});
  o.execution.kv_dtype = pick<std::string>(rng, {"", "", "fp8"});
  o.execution.software =
      pick<Software>(rng, {software_of("vllm"), software_of("sglang"), software_of("trtllm")});
  return request;
}

void check_prompt(const GenerationForecast& f, const std::string& what) {
  expect_interval(f.ttft.low, f.ttft.value, f.ttft.high, what);
  expect_interval(f.tpot.low, f.tpot.value, f.tpot.high, what);
  expect_interval(f.request.low, f.request.value, f.request.high, what);
  expect_near(f.ttft.value + static_cast<double>(f.output - 1) * f.tpot.value, f.request.value,
              what + ": request");
  expect_kernels(f.prefill.kernels, what);
  expect_kernels(f.decode.kernels, what);
}

/// Tokens of the largest prefill step.
int64_t prefill_tokens(const Request& r) {
  const int64_t most = r.execution.max_num_batched_tokens;
  return std::min(most, std::clamp<int64_t>(most / r.prompt, 1, r.batch) * r.prompt);
}

TEST(Properties, OfPromptsHoldForRandomRequests) {
  Rng rng(20261122), price_rng(2);
  const std::vector<std::string> models = all_models(), gpus = all_gpus();
  Exceptions batch{"a larger batch takes no less time"},
      length{"a longer prompt takes no less time"}, energy{"more work takes no less energy"};
  int done = 0, refusals = 0;
  while (done < kPromptRequests && !HasFatalFailure()) {
    Draw request = draw_prompt(rng, models, gpus);
    draw_prices(price_rng, request.options.energy);
    const std::string what = request.text();
    const auto forecast = [&](const Request& options) {
      return forecast_generation(forecaster(), model(request.model), gpu(request.gpu), options);
    };
    GenerationForecast f;
    if (refused([&] { f = forecast(request.options); })) {
      ASSERT_LT(++refusals, 20 * kPromptRequests) << "most requests are refused";
      continue;
    }
    ++done;
    check_prompt(f, what);
    check_power(f.power, gpu(request.gpu), request.options.energy, what);
    EXPECT_EQ(to_json(f), to_json(forecast(request.options))) << what;
    Request options = request.options;
    options.batch *= 2;
    if (GenerationForecast more; !refused([&] { more = forecast(options); })) {
      batch.compare(f.request.value, more.request.value, what);
      compare_energy(energy, f.power, more.power, what);
      EXPECT_GE(more.memory.peak_bytes, f.memory.peak_bytes) << what;
    }
    options = request.options;
    if (f.power) options.energy.power_cap_w = std::floor(0.6 * f.power->limit_w);
    if (GenerationForecast capped; f.power && !refused([&] { capped = forecast(options); })) {
      check_power(capped.power, gpu(request.gpu), options.energy, what + ", capped");
      EXPECT_GE(capped.request.value, f.request.value * (1 - kRounding)) << what;
      EXPECT_LE(capped.power->power_w.high, *options.energy.power_cap_w) << what;
    }
    options = request.options;
    options.prompt *= 2;
    if (GenerationForecast more; !refused([&] { more = forecast(options); })) {
      length.compare(f.request.value, more.request.value, what);
      compare_energy(energy, f.power, more.power, what);
      // A prefill step takes whole prompts while they fit into its tokens. With longer ones, fewer
      // may fit, and the step's activations are smaller; all else grows.
      EXPECT_GE(more.memory.peak_bytes - more.memory.activations_bytes,
                f.memory.peak_bytes - f.memory.activations_bytes)
          << what;
      if (prefill_tokens(options) >= prefill_tokens(request.options)) {
        EXPECT_GE(more.memory.peak_bytes, f.memory.peak_bytes) << what;
      }
    }
    options = request.options;
    options.execution.tp *= 2;
    if (GenerationForecast shared; !refused([&] { shared = forecast(options); })) {
      // Collectives are more kernels of the captured graphs of a server, and have buffers; a
      // server's cache takes what the others leave.
      const auto of_the_model = [](const GenerationForecast& of) {
        return of.memory.peak_bytes - of.memory.framework_bytes - of.memory.cache_bytes -
               (of.pool ? of.pool->graphs_bytes : 0);
      };
      EXPECT_LT(of_the_model(shared), of_the_model(f)) << what;
    }
  }
  fmt::print("{} requests forecast, {} refused\n", done, refusals);
  batch.expect_few();
  length.expect_few();
  energy.expect_few();
}

}  // namespace
}  // namespace tilecast
