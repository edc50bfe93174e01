#include "api/llm_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/expert_precision.h"
#include "api/llm_load.h"
#include "base/checked.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {

LlmSteps::LlmSteps(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                   const Request& request)
    : forecaster_(forecaster),
      model_(model.content->model),
      device_(gpu.content->device),
      asked_(request) {
  if (!model_.decoder)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: '{}' is not forecast token by token; `prompt` is for decoder-only "
                            "language models of a Hugging Face config.json",
                            model_.name, model_.family));
  build();
}

LlmSteps::LlmSteps(const LlmSteps& base, const Request& changed)
    : forecaster_(base.forecaster_), model_(base.model_), device_(base.device_), asked_(changed) {
  build();
}

void LlmSteps::build() {
  read_precision();
  check();
  modules_ = model_.build({.dtype = dtype()});
  share_ = shard(modules_, asked_.execution.tp);
  if (model_.vision) tower_.emplace(model_, asked_, dtype());
  if (precision_.as_stored && model_.checkpoint.weights_bytes && asked_.execution.tp > 1) {
    const auto weights = [&](const Graph& modules) {
      return static_cast<double>(
          weights_bytes(fuse(modules, {.groups = {{1, 1, 1}}, .scheme_of = request_.scheme_of})));
    };
    stored_share_ = weights(share_) / weights(modules_);
  }
}

void LlmSteps::read_precision() {
  request_.skew_percent = asked_.execution.skew_percent;
  precision_ = resolve_precision(model_, device_,
                                 {.asked = asked_.execution.dtype, .fallback = DType::kBf16});
  request_.scheme_of = precision_.scheme_of;
  request_.kv_dtype = asked_.execution.kv_dtype.empty()
                          ? cache_dtype(model_, device_, precision_)
                          : parse_dtype(asked_.execution.kv_dtype, "`kv-dtype`");
}

void LlmSteps::check() const {
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", model_.name, message));
  };
  const int64_t longest = longest_request(asked_);
  const std::optional<VisionTower::Image> image = image_of(model_, asked_);
  const std::string images =
      image ? fmt::format(" ({} of images)", asked_.images * image->tokens) : "";
  if (model_.max_positions && longest > *model_.max_positions &&
      longest > asked_.prompt + asked_.output)
    refuse(
        fmt::format("requests of up to {} tokens{} are longer than the model's {} positions; "
                    "shorten them by {}",
                    longest, images, *model_.max_positions, longest - *model_.max_positions));
  if (model_.max_positions && asked_.prompt + asked_.output > *model_.max_positions)
    refuse(
        fmt::format("a prompt of {}{} and an output of {} tokens are longer than the model's {} "
                    "positions; shorten them by {}",
                    asked_.prompt, images, asked_.output, *model_.max_positions,
                    asked_.prompt + asked_.output - *model_.max_positions));
  if (asked_.execution.max_model_len && longest > *asked_.execution.max_model_len)
    refuse(fmt::format("requests of {} tokens are longer than `max-model-len` {}", longest,
                       *asked_.execution.max_model_len));
  const auto divides = [&](int64_t size, const char* what) {
    if (size % asked_.execution.tp != 0)
      refuse(fmt::format("`tp` {} does not divide the {} {}", asked_.execution.tp, size, what));
  };
  divides(decoder().heads, "attention heads");
  divides(decoder().ffn_dim, "columns of the MLP (ffn_dim)");
  if (decoder().expert_ffn_dim > 0)
    divides(decoder().expert_ffn_dim, "columns of an expert (ffn_dim)");
  if (decoder().kv_heads % asked_.execution.tp != 0 &&
      asked_.execution.tp % decoder().kv_heads != 0)
    refuse(fmt::format("`tp` {} and {} key heads: one must divide the other", asked_.execution.tp,
                       decoder().kv_heads));
  if (decoder().recurrent_heads > 0) {
    divides(decoder().recurrent_heads, "heads of the recurrent layers");
    divides(decoder().recurrent_groups, "key groups of the recurrent layers");
  }
  const bool storable = request_.kv_dtype == dtype() || request_.kv_dtype == DType::kFp8 ||
                        request_.kv_dtype == DType::kInt8;
  if (!storable)
    refuse(fmt::format("a KV cache in {} is not supported; known: {}, fp8, int8",
                       dtype_name(request_.kv_dtype), dtype_name(dtype())));
}

Graph LlmSteps::fused(const Graph& modules, std::vector<Group> groups) const {
  StepRequest request = request_;
  request.groups = std::move(groups);
  Graph graph = fuse(modules, request);
  if (precision_.as_stored)
    store_as_in_checkpoint(graph, model_.checkpoint,
                           &modules == &share_ ? stored_share_ : std::nullopt);
  return graph;
}

LlmSteps::Step LlmSteps::step(std::vector<Group> groups, bool launched) const {
  return timed(graph(std::move(groups)), launched);
}

LlmSteps::Step LlmSteps::tower_step(int64_t images) const {
  return timed(tower_->graph(images), true);
}

std::vector<std::pair<int64_t, int64_t>> LlmSteps::tower_runs(int64_t prompts) const {
  if (asked_.images == 0) return {};
  const int64_t all = checked_multiply(prompts, asked_.images),
                together = tower_->together(prompts);
  std::vector<std::pair<int64_t, int64_t>> runs = {{together, all / together}};
  if (all % together > 0) runs.emplace_back(all % together, 1);
  return runs;
}

LlmSteps::Step LlmSteps::timed(Graph graph, bool launched) const {
  Step s;
  s.graph = std::move(graph);
  s.program = lower(s.graph);
  s.times.resize(s.program.kernels.size());
  predictor().predict(s.program.kernels, device_, conditions(), s.times);
  s.timeline = run_program(s.program, s.times, launched ? *asked_.execution.host_launch_s : 0);
  s.totals = totals_of(s.timeline, s.program.kernel_counts(), s.times);
  return s;
}

double LlmSteps::kernel_seconds(
    std::vector<Group> groups,
    const std::function<bool(const Program&, const Launch&)>& wanted) const {
  const Graph built = graph(std::move(groups));
  const Program program = lower(built);
  std::vector<double> counts(program.kernels.size(), 0);
  for (const Launch& launch : program.launches) {
    if (wanted(program, launch))
      counts[launch.kernel] += static_cast<double>(program.count(launch));
  }
  std::vector<Kernel> kernels;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) kernels.push_back(program.kernels[i]);
  }
  std::vector<KernelTime> times(kernels.size());
  predictor().predict(kernels, device_, conditions(), times);
  double seconds = 0;
  for (size_t i = 0, k = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) seconds += counts[i] * times[k++].seconds;
  }
  return seconds;
}

int64_t prefill_sequences(const Request& request, int64_t batch) {
  return std::clamp<int64_t>(request.execution.max_num_batched_tokens / request.prompt, 1, batch);
}

std::optional<Warning> LlmSteps::slower_experts(const std::string& subject, const Step& s) const {
  return tilecast::slower_experts(subject, s.graph, s.program, s.times, predictor(), device_,
                                  conditions());
}

const Predictor& LlmSteps::predictor() const {
  return forecaster_.impl().predictor(asked_.execution.predictor);
}

Conditions LlmSteps::conditions() const { return {.software = *asked_.execution.software}; }

int64_t LlmSteps::cache_bytes(int64_t sequences, int64_t tokens, int64_t ranks) const {
  constexpr int64_t kBitsPerByte = 8;
  int64_t total = checked_multiply(sequences, decoder().state_bytes) / ranks;
  for (const Decoder::Cache& cache : decoder().caches) {
    // If there are fewer key heads than ranks, heads are replicated; a latent vector is replicated
    // on every rank.
    const int64_t share = std::min(ranks, cache.kv_heads);
    const int64_t entry =
        cache.dim / share * dtype_bits(cache.dtype.value_or(request_.kv_dtype)) / kBitsPerByte;
    const int64_t kept = cache.window == 0 ? tokens : std::min(tokens, cache.window);
    total =
        checked_add(total, checked_product({cache.layers, sequences, kept / cache.ratio, entry}));
  }
  return total;
}

}  // namespace tilecast
