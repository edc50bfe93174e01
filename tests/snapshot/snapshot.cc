// Forecasts of every bundled model on seven devices, one line each: a change that should leave the
// numbers as they are shows that it does, one that changes them shows which.
//   snapshot EXPECTED            compares; exit 1 where a line differs
//   snapshot EXPECTED --write    writes the file anew
//   snapshot EXPECTED --report   shows how much each number moved (moved.h)
//
// A line: model, device, kind of forecast, a hash of the work (FLOPs, bytes and count of each row
// of kernels in their order, bytes of memory), a hash of the times' bits, and the headline numbers.
// A request that is refused gives its message. The hash of times is compared where this machine's
// exponentials and logarithms are the same as on the machine that wrote the file (the C library
// chooses them by processor); elsewhere the headline numbers tell, to 9 digits.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "moved.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

/// FNV-1a over 64-bit words.
class Hash {
 public:
  void add(uint64_t word) {
    for (int i = 0; i < 8; ++i) {
      value_ = (value_ ^ (word & 0xff)) * 1099511628211ull;
      word >>= 8;
    }
  }
  void add(int64_t word) { add(static_cast<uint64_t>(word)); }
  void add(double x) { add(std::bit_cast<uint64_t>(x)); }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  uint64_t value_ = 14695981039346656037ull;
};

/// Numbers of a forecast, without names.
struct Numbers {
  Hash work, times;
  std::string headline;

  void add(const std::vector<KernelForecast>& kernels) {
    for (const KernelForecast& k : kernels) {
      for (const int64_t n : {k.flops, k.bytes, k.count}) work.add(n);
      for (const double s : {k.latency_s.value, k.latency_s.low, k.latency_s.high}) times.add(s);
    }
  }
  void add(const Interval& e) {
    for (const double s : {e.value, e.low, e.high}) times.add(s);
  }
  std::string line() const { return fmt::format("{} {} {}", work.text(), times.text(), headline); }
};

std::string pass_line(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                      const Request& request) {
  const Forecast f = forecaster.forecast(model, gpu, request);
  Numbers n;
  n.add(f.kernels);
  const PassMemory& m = f.memory;
  for (const int64_t bytes : {f.flops, f.bytes, f.parameters, m.peak_bytes, m.weights_bytes,
                              m.gradients_bytes, m.optimizer_bytes, m.activations_bytes,
                              m.workspace_bytes, m.framework_bytes, m.largest_batch.value_or(-1)})
    n.work.add(bytes);
  n.add(f.latency_s);
  for (const double s : {f.forward_s, f.backward_s, f.optimizer_s, f.host_wait_s}) n.times.add(s);
  n.headline = fmt::format("{} flops={} bytes={} peak={} rows={} s={:.12g} [{:.12g} {:.12g}]",
                           f.dtype, f.flops, f.bytes, m.peak_bytes, f.kernels.size(),
                           f.latency_s.value, f.latency_s.low, f.latency_s.high);
  return n.line();
}

std::string llm_line(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                     const Request& request) {
  const GenerationForecast f = forecast_generation(forecaster, model, gpu, request);
  const Memory& m = f.memory;
  Numbers n;
  n.add(f.kernels);
  for (const int64_t x :
       {f.flops, f.bytes, f.parameters, f.active_parameters, f.multiplied_parameters,
        f.flops_per_token, f.attention_flops_per_token, f.kv_bytes_per_token, m.weights_bytes,
        m.cache_bytes, m.activations_bytes, m.peak_bytes, m.usable_bytes, *m.largest_batch})
    n.work.add(x);
  for (const Interval& e : {f.latency, f.ttft, f.tpot, f.request, f.prefill.time, f.decode.time})
    n.add(e);
  n.headline = fmt::format("{} {} flops={} peak={} rows={} ttft={:.12g} tpot={:.12g} s={:.12g}",
                           f.dtype, f.kv_dtype, f.flops, m.peak_bytes, f.kernels.size(),
                           f.ttft.value, f.tpot.value, f.latency.value);
  if (f.serving) {
    for (const Distribution& d : {f.serving->all.ttft, f.serving->all.tpot, f.serving->all.e2e}) {
      for (const Interval& e : {d.mean, d.median, d.p99}) n.add(e);
    }
    n.headline += fmt::format(" served={:.12g}", f.serving->all.output_tokens_per_s);
  }
  return n.line();
}

bool is_quantized(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu) {
  const std::string source = forecaster.forecast(model, gpu, {}).dtype_source;
  return source != "default" && source != "torch_dtype";
}

/// A request in fp32 with eager attention, no loss in the time and states as the parameters: as
/// published times were measured. Quantized checkpoints keep their own dtypes.
Request as_published(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                     Request request) {
  static std::map<std::string, bool> quantized;  // by model
  const auto [known, fresh] = quantized.try_emplace(model.name());
  if (fresh) known->second = is_quantized(forecaster, model, gpu);
  Execution& e = request.execution;
  if (e.dtype.empty() && !known->second) e.dtype = "fp32";
  if (!e.attention) e.attention = AttentionKind::kEager;
  if (request.mode != Mode::kTraining) return request;
  if (!request.optimizer) request.optimizer = Optimizer::kNone;
  request.optimizer_impl = OptimizerImpl::kForeach;
  request.loss = Loss::kMemory;
  request.parallel.main_params = MainParams::kAsModel;
  return request;
}

struct Kind {
  const char* name;
  std::string (*line)(const Forecaster&, const ModelRef&, const GpuRef&);
};

const Kind kKinds[] = {
    {"inference",
     [](const Forecaster& f, const ModelRef& m, const GpuRef& g) {
       return pass_line(f, m, g, as_published(f, m, g, {.batch = 2}));
     }},
    {"training",
     [](const Forecaster& f, const ModelRef& m, const GpuRef& g) {
       return pass_line(
           f, m, g,
           as_published(f, m, g,
                        {.batch = 2, .mode = Mode::kTraining, .optimizer = Optimizer::kAdamW}));
     }},
    {"amp",
     [](const Forecaster& f, const ModelRef& m, const GpuRef& g) {
       return pass_line(
           f, m, g,
           as_published(f, m, g,
                        {.mode = Mode::kTraining,
                         .execution = {.dtype = "amp", .fusion = Fusion::kPointwise}}));
     }},
    {"flash",
     [](const Forecaster& f, const ModelRef& m, const GpuRef& g) {
       return pass_line(f, m, g,
                        {.execution = {.dtype = "bf16", .attention = AttentionKind::kFlash}});
     }},
    {"defaults", [](const Forecaster& f, const ModelRef& m,
                    const GpuRef& g) { return pass_line(f, m, g, {.batch = 2}); }},
    {"training_defaults",
     [](const Forecaster& f, const ModelRef& m, const GpuRef& g) {
       return pass_line(f, m, g, {.batch = 2, .mode = Mode::kTraining});
     }},
    {"prompt",
     [](const Forecaster& f, const ModelRef& m, const GpuRef& g) {
       return llm_line(f, m, g,
                       {.kind = RequestKind::kGenerate, .batch = 4, .prompt = 384, .output = 48});
     }},
    {"server",
     [](const Forecaster& f, const ModelRef& m, const GpuRef& g) {
       return llm_line(f, m, g,
                       {.kind = RequestKind::kServe,
                        .prompt = 200,
                        .output = 24,
                        .load = {.concurrency = 4, .requests = 12, .max_num_seqs = 4},
                        .execution = {.tp = 2}});
     }},
};

std::vector<std::string> all_lines() {
  const Forecaster forecaster;
  std::vector<GpuRef> gpus;
  for (const char* name : {"P4", "V100-PCIe", "A100", "H100", "L40S", "MI210", "B200"})
    gpus.push_back(load_gpu_ref(name));
  std::vector<std::string> lines;
  for (const ModelEntry& entry : model_catalog()) {
    const ModelRef model = load_model_ref(entry.name);
    for (const GpuRef& gpu : gpus) {
      for (const Kind& kind : kKinds) {
        std::string line;
        try {
          line = kind.line(forecaster, model, gpu);
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::kInternal) throw;
          line = "refused: " + options_as_flags(error.what());
        }
        lines.push_back(fmt::format("{} {} {} {}", entry.name, gpu.id(), kind.name, line));
      }
    }
  }
  return lines;
}

/// The bits that this machine's exponentials and logarithms give.
std::string math_fingerprint() {
  Hash hash;
  for (int i = 1; i <= 2000; ++i) {
    const double x = 0.0137 * i;
    for (const double y :
         {std::exp(-x), std::log(x), std::log2(x), std::pow(x, 0.37), std::tanh(x)})
      hash.add(y);
    hash.add(static_cast<double>(std::exp(static_cast<float>(-x))));
    hash.add(static_cast<double>(std::log2(static_cast<float>(x))));
  }
  return "math " + hash.text();
}

/// Whether two words are the same text, or name the same number to 9 digits ("s=1.25", "[0.5").
bool alike(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const size_t begin = a.find_first_of("=[") + 1;  // 0 where there is neither
  if (a.substr(0, begin) != b.substr(0, begin)) return false;
  try {
    const double x = std::stod(a.substr(begin)), y = std::stod(b.substr(begin));
    return std::abs(x - y) <= 1e-9 * std::abs(x);
  } catch (const std::exception&) {
    return false;
  }
}

/// Lines are alike but for the hash of the times, and for the last digits of numbers.
bool alike_elsewhere(const std::string& a, const std::string& b) {
  constexpr size_t kTimes = 4;  // model, device, kind, work, times
  const std::vector<std::string> x = split(a, ' '), y = split(b, ' ');
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i != kTimes && !alike(x[i], y[i])) return false;
  }
  return true;
}

int compare(const std::vector<std::string>& expected, const std::vector<std::string>& found) {
  constexpr size_t kShown = 20;
  size_t differ = 0;
  const bool same_math = !expected.empty() && expected[0] == found[0];
  for (size_t i = 1; i < std::max(expected.size(), found.size()); ++i) {
    const std::string was = i < expected.size() ? expected[i] : "(no line)";
    const std::string is = i < found.size() ? found[i] : "(no line)";
    if (was == is || (!same_math && alike_elsewhere(was, is))) continue;
    if (++differ <= kShown) std::cout << "- " << was << "\n+ " << is << "\n";
  }
  if (!same_math)
    std::cout << "this processor's exponentials and logarithms are not those of the file: the bits "
                 "of times are not compared\n";
  std::cout << fmt::format("snapshot: {} lines, {} differ\n", found.size() - 1, differ);
  return differ == 0 ? 0 : 1;
}

int run(const std::string& path, const std::string& what) {
  std::vector<std::string> found = all_lines();
  found.insert(found.begin(), math_fingerprint());
  if (what == "--write") {
    std::ofstream file(path);
    for (const std::string& line : found) file << line << "\n";
    return file.good() ? 0 : 1;
  }
  std::vector<std::string> expected;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) expected.push_back(line);
  if (what == "--report") {
    std::cout << moved_report(expected, found);
    return 0;
  }
  return compare(expected, found);
}

}  // namespace
}  // namespace tilecast

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[2] : "";
  if (argc < 2 || argc > 3 || (argc == 3 && what != "--write" && what != "--report")) {
    std::cerr << "usage: snapshot EXPECTED [--write | --report]\n";
    return 2;
  }
  return tilecast::run(argv[1], what);
}
