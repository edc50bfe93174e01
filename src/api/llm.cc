// Language models as people ask for them: a prompt, an output, a batch or a load.

#include "tilecast/llm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "api/llm_steps.h"
#include "base/checked.h"
#include "base/text.h"
#include "memory/plan.h"
#include "ops/builder.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Lengths at which a decode step is forecast; between them time is linear in the length.
constexpr int64_t kCoursePoints = 5;

class Llm {
 public:
  explicit Llm(const LlmSteps& steps)
      : steps_(steps),
        model_(steps.model()),
        decoder_(steps.decoder()),
        device_(steps.device()),
        o_(steps.options()) {}

  LlmForecast run() {
    LlmForecast f;
    describe_request(f);
    facts(f);
    memory(f);
    prefill(f);
    decode(f);
    f.request = sum(f.first_token, f.per_token, static_cast<double>(o_.output - 1));
    f.tokens_per_s = static_cast<double>(o_.batch * o_.output) / f.request.seconds;
    if (o_.continuous && f.largest_batch > 0)
      f.serving = forecast_server(steps_, cache_room_, f.first_token, f.per_token);
    warn(f);
    return f;
  }

 private:
  using Step = LlmSteps::Step;

  Step decode_step(int64_t sequences, int64_t past) const {
    return steps_.step({{sequences, 1, past}}, !o_.cuda_graphs);
  }

  static Estimate estimate(const Timeline& t) { return {t.seconds, t.low_s, t.high_s}; }
  static Estimate sum(const Estimate& a, const Estimate& b, double times) {
    // Both come from the same networks: their errors are taken to go together.
    return {a.seconds + times * b.seconds, a.low_s + times * b.low_s, a.high_s + times * b.high_s};
  }

  StepForecast describe_step(const Step& s) const {
    StepForecast f;
    f.time = estimate(s.timeline);
    f.host_wait_s = s.timeline.host_wait_s;
    f.kernels = describe_launches(s.lowered, s.times);
    f.slower_experts = steps_.slower_experts(s).value_or("");
    std::map<std::string, double> shares;
    for (const KernelForecast& k : f.kernels)
      shares[k.limit] += k.latency_s * static_cast<double>(k.count);
    for (const auto& [limit, seconds] : shares)
      f.limits.emplace_back(limit, seconds / s.timeline.kernels_s);
    std::sort(f.limits.begin(), f.limits.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    return f;
  }

  void describe_request(LlmForecast& f) const {
    f.model = model_.name;
    f.gpu = device_.id;
    f.gpu_name = device_.name;
    f.dtype = steps_.precision().name;
    f.dtype_source = steps_.precision().source;
    f.kv_dtype = dtype_name(steps_.kv_dtype());
    f.software = o_.software;
    f.prompt = o_.prompt;
    f.output = o_.output;
    f.batch = o_.batch;
    f.tp = o_.tp;
  }

  /// What the model is, whoever runs it: one rank, one sequence.
  void facts(LlmForecast& f) const {
    const Graph graph = steps_.graph({{1, 1, o_.prompt}}, 1);
    f.parameters = graph.parameter_count();
    f.active_parameters = f.parameters;
    std::vector<Kernel> kernels;
    for (const Segment& segment : graph.segments) {
      for (int32_t i = 0; i < segment.node_count; ++i) {
        const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
        kernels.clear();
        lower_node(graph, node, kernels);
        for (const Kernel& k : kernels) {
          const int64_t flops = checked_multiply(k.flops, segment.repeat);
          f.flops_per_token = checked_add(f.flops_per_token, flops);
          if (k.is_attention())
            f.attention_flops_per_token = checked_add(f.attention_flops_per_token, flops);
          if (k.family != KernelFamily::kExperts) continue;
          int64_t held = 0;
          for (size_t w = 1; w < 3; ++w) held += element_count(graph.tensor(node.inputs[w]).shape);
          f.active_parameters -=
              held / k.experts.experts * (k.experts.experts - k.experts.chosen) * segment.repeat;
        }
      }
    }
    // The embedding table is looked up, not multiplied, unless it is the output layer too.
    f.multiplied_parameters =
        f.active_parameters - (decoder_.tied ? 0 : decoder_.vocabulary * decoder_.width);
    f.kv_bytes_per_token = steps_.cache_bytes(1, 1, 1);
  }

  int64_t prefill_sequences(int64_t batch) const {
    return std::clamp<int64_t>(o_.chunk / o_.prompt, 1, batch);
  }

  struct Memory {
    int64_t weights = 0, cache = 0, activations = 0, overhead = 0;
    int64_t peak() const {
      return checked_add(checked_add(weights, cache), checked_add(activations, overhead));
    }
  };
  Memory memory_of(int64_t batch) const {
    const MemoryPlan plan = plan_memory(
        steps_.graph({{prefill_sequences(batch), std::min(o_.prompt, o_.chunk), 0}}, o_.tp));
    return {plan.weights_bytes, steps_.cache_bytes(batch, o_.prompt + o_.output, o_.tp),
            plan.activations_bytes, kFrameworkBytes + kWorkspaceBytes};
  }
  int64_t usable_bytes() const {
    return static_cast<int64_t>(o_.memory_share * static_cast<double>(device_.memory_bytes));
  }

  /// The cache is what grows with the batch; activations do until a step is full.
  int64_t largest_batch() const {
    const auto fits = [&](int64_t batch) { return memory_of(batch).peak() <= usable_bytes(); };
    if (!fits(1)) return 0;
    const int64_t per_sequence = steps_.cache_bytes(1, o_.prompt + o_.output, o_.tp);
    int64_t low = 1,
            high = std::max<int64_t>(2, usable_bytes() / std::max<int64_t>(1, per_sequence) + 1);
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

  void memory(LlmForecast& f) {
    const Memory m = memory_of(o_.batch);
    f.weights_bytes = m.weights;
    f.cache_bytes = m.cache;
    f.activations_bytes = m.activations;
    f.overhead_bytes = m.overhead;
    f.peak_bytes = m.peak();
    f.device_bytes = device_.memory_bytes;
    f.largest_batch = largest_batch();
    cache_room_ = usable_bytes() - (m.weights + m.activations + m.overhead);
    if (f.peak_bytes <= usable_bytes() || (o_.continuous && f.largest_batch > 0)) return;
    const std::string missing = format_bytes(f.peak_bytes - usable_bytes());
    if (f.largest_batch == 0) {
      // Not even one sequence: the times still say what it would be like.
      f.warnings.push_back(fmt::format(
          "does not fit: {} are missing of {} on each GPU ({} weights, {} cache); use more "
          "ranks (--tp), fewer bits (--dtype) or a shorter prompt",
          missing, format_bytes(f.peak_bytes), format_bytes(m.weights), format_bytes(m.cache)));
      return;
    }
    throw Error(
        ErrorKind::kInput,
        fmt::format("the cache of {} sequences of {} tokens takes {}, {} more than {} has "
                    "beside {} of weights; the largest batch that fits is {} (or --kv-dtype "
                    "fp8, --tp)",
                    o_.batch, o_.prompt + o_.output, format_bytes(m.cache), missing, device_.id,
                    format_bytes(m.weights), f.largest_batch));
  }

  void prefill(LlmForecast& f) const {
    const int64_t together = prefill_sequences(o_.batch);
    const auto add = [&](const Step& s, int64_t times) {
      f.first_token = sum(f.first_token, estimate(s.timeline), static_cast<double>(times));
    };
    if (o_.prompt <= o_.chunk) {
      const Step full = steps_.step({{together, o_.prompt, 0}}, true);
      add(full, o_.batch / together);
      if (const int64_t rest = o_.batch % together; rest > 0)
        add(steps_.step({{rest, o_.prompt, 0}}, true), 1);
      f.prefill = describe_step(full);
      return;
    }
    for (int64_t past = 0; past < o_.prompt; past += o_.chunk) {
      const Step part = steps_.step({{1, std::min(o_.chunk, o_.prompt - past), past}}, true);
      add(part, o_.batch);
      if (past + o_.chunk >= o_.prompt || past == 0) f.prefill = describe_step(part);
    }
  }

  void decode(LlmForecast& f) const {
    const int64_t steps = std::max<int64_t>(1, o_.output - 1);
    const int64_t points = std::min(kCoursePoints, steps);
    Estimate total;
    double weight = 0;
    for (int64_t i = 0; i < points; ++i) {
      const int64_t past = o_.prompt + (points == 1 ? 0 : i * (steps - 1) / (points - 1));
      const Step s = decode_step(o_.batch, past);
      f.course.emplace_back(past, estimate(s.timeline));
      // The trapezoidal rule.
      const double w = points > 1 && (i == 0 || i == points - 1) ? 0.5 : 1;
      total = sum(total, f.course.back().second, w);
      weight += w;
      if (i == points / 2) f.decode = describe_step(s);
    }
    f.per_token = {total.seconds / weight, total.low_s / weight, total.high_s / weight};
  }

  void warn(LlmForecast& f) const {
    for (const auto* list : {&model_.warnings, &steps_.precision().warnings})
      f.warnings.insert(f.warnings.end(), list->begin(), list->end());
    f.warnings.insert(f.warnings.begin(), device_.warnings.begin(), device_.warnings.end());
    for (const auto& [name, step] : {std::pair{"prefill", &f.prefill}, {"decode", &f.decode}}) {
      double outside = 0, all = 0;
      for (const KernelForecast& k : step->kernels) {
        const double seconds = k.latency_s * static_cast<double>(k.count);
        all += seconds;
        if (k.extrapolated) outside += seconds;
      }
      if (outside > 0.05 * all)
        f.warnings.push_back(
            fmt::format("{}: {:.0f} % of the time is extrapolated beyond what the networks were "
                        "trained on; the interval is widened",
                        name, 100 * outside / all));
      if (!step->slower_experts.empty())
        f.warnings.push_back(fmt::format("{}: {}", name, step->slower_experts));
      if (step->host_wait_s > 0.05 * step->time.seconds)
        f.warnings.push_back(fmt::format("{}: the GPU waits for the host {:.0f} % of the time{}",
                                         name, 100 * step->host_wait_s / step->time.seconds,
                                         o_.cuda_graphs ? "" : "; CUDA graphs would help"));
    }
    if (f.serving && !f.serving->keeps_up)
      f.warnings.push_back(fmt::format(
          "the server does not keep up with {:.3g} requests a second: it completes {:.3g}, and the "
          "queue grows; its times mean little",
          f.serving->rate, f.serving->requests_per_s));
  }

  const LlmSteps& steps_;
  const Model& model_;
  const Decoder& decoder_;
  const Device& device_;
  const LlmOptions& o_;
  int64_t cache_room_ = 0;
};

}  // namespace

LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const LlmOptions& options) {
  const LlmSteps steps(forecaster, model, gpu, options);
  return Llm(steps).run();
}

}  // namespace tilecast
