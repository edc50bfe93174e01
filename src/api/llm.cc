// Language models as people ask for them: a prompt, an output, a batch or a load.

#include "tilecast/llm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "api/internal.h"
#include "api/timing.h"
#include "base/checked.h"
#include "base/text.h"
#include "memory/plan.h"
#include "ops/builder.h"
#include "sim/serving.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Lengths at which a decode step is forecast; between them time is linear in the length.
constexpr int64_t kCoursePoints = 5;

using Group = StepRequest::Group;

class Llm {
 public:
  Llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
      const LlmOptions& options)
      : forecaster_(forecaster),
        model_(model.content->model),
        device_(gpu.content->device),
        o_(options) {
    if (!model_.decoder)
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}: '{}' is not forecast token by token; --prompt is for decoder-only "
                      "language models of a Hugging Face config.json",
                      model_.name, model_.family));
    decoder_ = &*model_.decoder;
    read_precision();
    check();
  }

  LlmForecast run() {
    LlmForecast f;
    describe_request(f);
    facts(f);
    memory(f);
    prefill(f);
    decode(f);
    f.request = sum(f.first_token, f.per_token, static_cast<double>(o_.output - 1));
    f.tokens_per_s = static_cast<double>(o_.batch * o_.output) / f.request.seconds;
    if (o_.continuous && f.largest_batch > 0) f.serving = serve(f);
    warn(f);
    return f;
  }

 private:
  struct Step {
    Graph graph;
    Lowered lowered;
    std::vector<KernelTime> times;
    Timeline timeline;
  };

  void read_precision() {
    request_.tensor_ranks = o_.tp;
    request_.skew_percent = o_.skew_percent;
    if (const std::optional<DType> plain = find_dtype(o_.dtype);
        plain == DType::kBf16 || plain == DType::kFp16 || plain == DType::kFp32) {
      request_.dtype = *plain;
      request_.scheme = Scheme::kNone;
    } else if (!o_.dtype.empty()) {
      const std::optional<Scheme> scheme = find_scheme(o_.dtype);
      if (!scheme)
        throw Error(ErrorKind::kInput,
                    fmt::format("--dtype: unknown value '{}'; known: bf16, fp16, fp32, {}",
                                o_.dtype, tilecast::join(scheme_names(), ", ")));
      request_.scheme = *scheme;
    }
    request_.kv_dtype = request_.dtype;
    if (!o_.kv_dtype.empty()) request_.kv_dtype = parse_dtype(o_.kv_dtype, "--kv-dtype");
  }

  void check() const {
    const auto refuse = [&](const std::string& message) {
      throw Error(ErrorKind::kInput, fmt::format("{}: {}", model_.name, message));
    };
    if (model_.max_positions && o_.prompt + o_.output > *model_.max_positions)
      refuse(
          fmt::format("a prompt of {} and an output of {} tokens are longer than the model's {} "
                      "positions; shorten them by {}",
                      o_.prompt, o_.output, *model_.max_positions,
                      o_.prompt + o_.output - *model_.max_positions));
    const auto divides = [&](int64_t size, const char* what) {
      if (size % o_.tp != 0)
        refuse(fmt::format("--tp {} does not divide the {} {}", o_.tp, size, what));
    };
    divides(decoder_->heads, "attention heads");
    divides(decoder_->inner, "inner columns of the MLP");
    if (decoder_->expert_inner > 0) divides(decoder_->expert_inner, "inner columns of an expert");
    if (decoder_->kv_heads % o_.tp != 0 && o_.tp % decoder_->kv_heads != 0)
      refuse(fmt::format("--tp {} and the {} key heads do not divide each other", o_.tp,
                         decoder_->kv_heads));
    const bool storable = request_.kv_dtype == request_.dtype || request_.kv_dtype == DType::kFp8 ||
                          request_.kv_dtype == DType::kInt8;
    if (!storable)
      refuse(fmt::format("a cache in {} is not known; known: {}, fp8, int8",
                         dtype_name(request_.kv_dtype), dtype_name(request_.dtype)));
  }

  StepRequest request(std::vector<Group> groups) const {
    StepRequest r = request_;
    r.groups = std::move(groups);
    return r;
  }

  Step step(std::vector<Group> groups, bool launched) const {
    Step s;
    s.graph = decoder_->build_step(request(std::move(groups)));
    s.lowered = lower(s.graph, *find_software(o_.software));
    s.times.resize(s.lowered.distinct.size());
    forecaster_.impl().predictor(o_.predictor).predict(s.lowered.distinct, device_, s.times);
    s.timeline = time_launches(s.lowered, s.times, launched ? o_.host_launch_s : 0);
    return s;
  }
  Step decode_step(int64_t sequences, int64_t past) const {
    return step({{sequences, 1, past}}, !o_.cuda_graphs);
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
    const Scheme scheme = request_.scheme.value_or(decoder_->scheme);
    f.dtype = scheme == Scheme::kNone ? dtype_name(request_.dtype) : scheme_info(scheme).name;
    f.kv_dtype = dtype_name(request_.kv_dtype);
    f.software = o_.software;
    f.prompt = o_.prompt;
    f.output = o_.output;
    f.batch = o_.batch;
    f.tp = o_.tp;
  }

  /// What the model is, whoever runs it: one rank, one sequence.
  void facts(LlmForecast& f) const {
    StepRequest whole = request({{1, 1, o_.prompt}});
    whole.tensor_ranks = 1;
    const Graph graph = decoder_->build_step(whole);
    f.parameters = graph.parameter_count();
    f.active_parameters = f.parameters;
    std::vector<Kernel> kernels;
    for (const Segment& segment : graph.segments) {
      for (int32_t i = 0; i < segment.node_count; ++i) {
        const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
        kernels.clear();
        lower_node(graph, node, kernels);
        for (const Kernel& k : kernels) {
          f.flops_per_token += k.flops * segment.repeat;
          if (k.is_attention()) f.attention_flops_per_token += k.flops * segment.repeat;
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
        f.active_parameters - (decoder_->tied ? 0 : decoder_->vocabulary * decoder_->width);
    f.kv_bytes_per_token = cache_bytes(1, 1, 1);
  }

  /// Keys and values of one rank. Layers with a window keep no more than it.
  int64_t cache_bytes(int64_t sequences, int64_t tokens, int64_t ranks) const {
    // Fewer key heads than ranks are held several times; a latent vector by every rank.
    const int64_t share = decoder_->latent ? 1 : std::min(ranks, decoder_->kv_heads);
    constexpr int64_t kBitsPerByte = 8;
    const int64_t per_layer =
        decoder_->cache_width / share * dtype_bits(request_.kv_dtype) / kBitsPerByte;
    int64_t total = 0;
    for (const int64_t window : decoder_->windows) {
      const int64_t kept = window == 0 ? tokens : std::min(tokens, window);
      total = checked_add(total, checked_product({sequences, kept, per_layer}));
    }
    return total;
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
    const MemoryPlan plan = plan_memory(decoder_->build_step(
        request({{prefill_sequences(batch), std::min(o_.prompt, o_.chunk), 0}})));
    return {plan.weights_bytes, cache_bytes(batch, o_.prompt + o_.output, o_.tp),
            plan.activations_bytes, kFrameworkBytes + kWorkspaceBytes};
  }
  int64_t usable_bytes() const {
    return static_cast<int64_t>(o_.memory_share * static_cast<double>(device_.memory_bytes));
  }

  /// The cache is what grows with the batch; activations do until a step is full.
  int64_t largest_batch() const {
    const auto fits = [&](int64_t batch) { return memory_of(batch).peak() <= usable_bytes(); };
    if (!fits(1)) return 0;
    const int64_t per_sequence = cache_bytes(1, o_.prompt + o_.output, o_.tp);
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
      const Step full = step({{together, o_.prompt, 0}}, true);
      add(full, o_.batch / together);
      if (const int64_t rest = o_.batch % together; rest > 0)
        add(step({{rest, o_.prompt, 0}}, true), 1);
      f.prefill = describe_step(full);
      return;
    }
    for (int64_t past = 0; past < o_.prompt; past += o_.chunk) {
      const Step part = step({{1, std::min(o_.chunk, o_.prompt - past), past}}, true);
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

  // ---- a server ----

  /// Piecewise linear in the logarithms of one or two sizes; made once, read in every step.
  class Surface {
   public:
    Surface() = default;
    Surface(std::vector<int64_t> xs, std::vector<int64_t> ys,
            const std::function<double(int64_t, int64_t)>& value)
        : xs_(std::move(xs)), ys_(std::move(ys)) {
      for (int64_t x : xs_) {
        for (int64_t y : ys_) logs_.push_back(std::log(std::max(1e-12, value(x, y))));
      }
    }
    double at(double x, double y) const {
      const Place i = place(xs_, x), j = place(ys_, y);
      const auto log_at = [&](size_t a, size_t b) { return logs_[a * ys_.size() + b]; };
      const double low = log_at(i.index, j.index) * (1 - j.part) + log_at(i.index, j.next) * j.part;
      const double high = log_at(i.next, j.index) * (1 - j.part) + log_at(i.next, j.next) * j.part;
      return std::exp(low * (1 - i.part) + high * i.part);
    }

   private:
    struct Place {
      size_t index, next;
      double part;
    };
    static Place place(const std::vector<int64_t>& grid, double x) {
      if (grid.size() == 1 || x <= static_cast<double>(grid.front())) return {0, 0, 0};
      size_t i = 0;
      while (i + 2 < grid.size() && x > static_cast<double>(grid[i + 1])) ++i;
      const double low = std::log(static_cast<double>(grid[i]));
      const double high = std::log(static_cast<double>(grid[i + 1]));
      return {i, i + 1, std::min(1.0, (std::log(x) - low) / (high - low))};
    }
    std::vector<int64_t> xs_, ys_;
    std::vector<double> logs_;
  };

  /// Powers of two from `first` on, and `last`.
  static std::vector<int64_t> grid(int64_t first, int64_t last) {
    std::vector<int64_t> result;
    for (int64_t x = first; x < last; x *= 2) result.push_back(x);
    result.push_back(std::max(first, last));
    return result;
  }

  struct Parts {
    double attention = 0, rest = 0;
  };
  Parts parts(std::vector<Group> groups) const {
    const Step s = step(std::move(groups), false);
    Parts p;
    for (const Launch& launch : s.lowered.launches) {
      const double seconds = s.times[launch.kernel].seconds * static_cast<double>(launch.count);
      (s.lowered.distinct[launch.kernel].is_attention() ? p.attention : p.rest) += seconds;
    }
    return p;
  }

  LlmForecast::Serving serve(LlmForecast& f) const {
    LlmForecast::Serving result;
    ServingLoad load;
    load.prompt = o_.prompt;
    load.output = o_.output;
    load.requests_per_s = o_.rate;
    load.concurrency = o_.concurrency > 0 ? o_.concurrency : o_.batch;
    load.tokens_per_step = o_.chunk;
    load.cache_tokens = cache_room_ /
                        std::max<int64_t>(1, cache_bytes(1, o_.prompt + o_.output, o_.tp)) *
                        (o_.prompt + o_.output);
    result.most_sequences =
        std::min(load.most_sequences, load.cache_tokens / (o_.prompt + o_.output));
    // Enough to fill the batch several times.
    const int64_t together = o_.rate > 0 ? result.most_sequences : load.concurrency;
    load.requests = std::max<int64_t>(load.requests, 6 * together);
    result.rate = o_.rate;
    result.concurrency = o_.rate > 0 ? 0 : load.concurrency;

    const int64_t most = std::max<int64_t>(1, std::min(result.most_sequences, together));
    const int64_t longest = o_.prompt + o_.output;
    // All but attention depends on the tokens of a step alone.
    const Surface rest(grid(1, o_.chunk + most), {1},
                       [&](int64_t tokens, int64_t) { return parts({{tokens, 1, 1}}).rest; });
    const Surface decode(grid(1, most), grid(std::max<int64_t>(1, o_.prompt / 2), longest),
                         [&](int64_t b, int64_t past) { return parts({{b, 1, past}}).attention; });
    const int64_t chunk = std::min(o_.chunk, o_.prompt);
    const Surface fresh(grid(std::min<int64_t>(64, chunk), chunk), {1},
                        [&](int64_t tokens, int64_t) { return parts({{1, tokens, 0}}).attention; });
    const Surface later(
        grid(std::min<int64_t>(64, chunk), chunk),
        grid(std::min<int64_t>(256, o_.prompt), o_.prompt),
        [&](int64_t tokens, int64_t past) { return parts({{1, tokens, past}}).attention; });
    const double launches = host_floor();
    const auto step_s = [&](const ServingBatch& b) {
      const auto tokens = static_cast<double>(b.decoding + b.prefill_tokens);
      double seconds = rest.at(tokens, 1);
      if (b.decoding > 0) seconds += decode.at(static_cast<double>(b.decoding), b.decode_context);
      if (b.prefill_tokens > 0)
        seconds += b.prefill_past == 0 ? fresh.at(static_cast<double>(b.prefill_tokens), 1)
                                       : later.at(static_cast<double>(b.prefill_tokens),
                                                  static_cast<double>(b.prefill_past));
      const bool graphs = o_.cuda_graphs && b.prefill_tokens == 0;
      return graphs ? seconds : std::max(seconds, launches);
    };
    const ServingResult s = simulate_serving(load, step_s);
    const auto quantile = [](const std::vector<double>& sorted, double q) {
      if (sorted.empty()) return 0.0;
      return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
    };
    // Steps are as uncertain as those of the batch at a time; queues make that worse, unmodelled.
    const auto with = [](double seconds, const Estimate& like) {
      return Estimate{seconds, seconds * like.low_s / like.seconds,
                      seconds * like.high_s / like.seconds};
    };
    result.first_token_median = with(quantile(s.first_token, 0.5), f.first_token);
    result.first_token_p99 = with(quantile(s.first_token, 0.99), f.first_token);
    result.per_token_median = with(quantile(s.per_token, 0.5), f.per_token);
    result.per_token_p99 = with(quantile(s.per_token, 0.99), f.per_token);
    result.requests_per_s = s.requests_per_s;
    result.tokens_per_s = s.requests_per_s * static_cast<double>(o_.output);
    result.mean_batch = s.mean_batch;
    result.busy_share = s.busy_share;
    result.keeps_up = s.keeps_up;
    return result;
  }

  /// What the host takes to launch a step kernel by kernel.
  double host_floor() const {
    const Step s = step({{1, 1, 1}}, false);
    double launches = 0;
    for (const Launch& launch : s.lowered.launches) launches += static_cast<double>(launch.count);
    return launches * o_.host_launch_s;
  }

  void warn(LlmForecast& f) const {
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

  const Forecaster& forecaster_;
  const Model& model_;
  const Device& device_;
  const LlmOptions& o_;
  const Decoder* decoder_ = nullptr;
  StepRequest request_;
  int64_t cache_room_ = 0;
};

}  // namespace

LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const LlmOptions& options) {
  return Llm(forecaster, model, gpu, options).run();
}

}  // namespace tilecast
