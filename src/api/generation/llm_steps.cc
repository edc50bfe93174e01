#include "api/generation/llm_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/generation/expert_precision.h"
#include "api/generation/llm_drafts.h"
#include "api/generation/llm_load.h"
#include "api/hidden_latency.h"
#include "base/checked.h"
#include "base/text.h"
#include "passes/exchange.h"
#include "passes/stage.h"
#include "tilecast/error.h"

namespace tilecast {

LlmSteps::LlmSteps(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                   const Request& request)
    : forecaster_(forecaster),
      model_(model.content->model),
      device_(gpu.content->device),
      asked_(with_limits(request, device_)) {
  if (!model_.decoder)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: '{}' is not forecast token by token; `prompt` is for decoder-only "
                            "language models of a Hugging Face config.json",
                            model_.name, model_.family));
  build();
}

LlmSteps::LlmSteps(const LlmSteps& base, const Request& changed)
    : forecaster_(base.forecaster_),
      model_(base.model_),
      device_(base.device_),
      asked_(with_limits(changed, base.device_)) {
  build();
}

LlmSteps::~LlmSteps() = default;

void LlmSteps::build() {
  read_precision();
  check();
  modules_ = model_.build({.dtype = dtype()});
  request_.skew_percent = served_skew(asked_, modules_);
  plan_ = plan_server(model_, device_, asked_, modules_);
  has_groups_ = !asked_.parallel.cluster.empty() || plan_.dp > 1 || plan_.pp > 1;
  divide();
  if (model_.vision) tower_.emplace(model_, asked_, dtype());
  if (asked_.deployment.speculation.tokens > 0) drafter_ = std::make_unique<Drafter>(*this);
}

Graph LlmSteps::divided() const {
  const bool whole_experts = plan_.tp == 1 && plan_.ep == plan_.dp;
  return divide_served_experts(
      modules_, {.tp = plan_.tp,
                 .dp = plan_.dp,
                 .ep = plan_.ep,
                 .dispatch = whole_experts && asked_.deployment.all2all == All2All::kDeepEp});
}

LlmSteps::Part LlmSteps::part_of_layers(const LayerRange& layers) const {
  return {.layers = layers, .share = shard(part_of(divided(), layers), plan_.tp)};
}

/// Builds a rank's share of each distinct stage.
void LlmSteps::divide() {
  const Graph divided = this->divided();
  const bool states_sum =
      precision_.as_stored && model_.checkpoint.weights_bytes && (plan_.ranks() > 1);
  const auto weights = [&](const Graph& modules, bool has_output_layer) {
    return static_cast<double>(weights_bytes(weights_graph(modules, has_output_layer)));
  };
  for (const LayerRange& layers : plan_.parts) {
    const std::vector<int64_t> runs = segment_runs(modules_, layers);
    const auto alike = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) {
      return part.runs == runs && part.layers.has_start == layers.has_start &&
             part.layers.has_end == layers.has_end;
    });
    if (alike != parts_.end()) {
      alike->stages += 1;
      continue;
    }
    Part part{.layers = layers, .share = shard(part_of(divided, layers), plan_.tp), .runs = runs};
    if (states_sum)
      part.stored_share = weights(part.share, layers.has_end) / weights(modules_, true);
    parts_.push_back(std::move(part));
  }
}

Graph LlmSteps::weights_graph(const Graph& modules, bool has_output_layer) const {
  return fuse(modules, {.groups = {{1, 1, 1}},
                        .scheme_of = request_.scheme_of,
                        .has_output_layer = has_output_layer});
}

void LlmSteps::read_precision() {
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
  check_experts();
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

/// The ranks that have the same experts divide each of them.
void LlmSteps::check_experts() const {
  const int64_t ffn = decoder().expert_ffn_dim, ep = asked_.parallel.ep;
  const int64_t parts = asked_.execution.tp * asked_.execution.dp / ep;
  if (ffn == 0 && (ep > 1 || asked_.execution.dp > 1))
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the model has no experts that ranks share; leave `{}` at 1{}",
                            model_.name, ep > 1 ? "ep" : "dp",
                            ep > 1 ? "" : ", and use `replicas` for several servers"));
  if (ffn == 0 || ffn % parts == 0) return;
  const std::string ranks = parts == asked_.execution.tp
                                ? fmt::format("`tp` {}", parts)
                                : fmt::format("`tp` x `dp` / `ep` = {}", parts);
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {} does not divide the {} columns of an expert (ffn_dim)",
                          model_.name, ranks, ffn));
}

Graph LlmSteps::fused(const Part* part, std::vector<Group> groups) const {
  StepRequest request = request_;
  request.groups = std::move(groups);
  request.has_output_layer = part == nullptr || part->layers.has_end;
  Graph graph = fuse(part == nullptr ? modules_ : part->share, request);
  if (precision_.as_stored)
    store_as_in_checkpoint(graph, model_.checkpoint,
                           part == nullptr ? std::nullopt : part->stored_share);
  return graph;
}

bool LlmSteps::decodes(const std::vector<Group>& groups) const {
  const int64_t most = 1 + asked_.deployment.speculation.tokens;
  return std::all_of(groups.begin(), groups.end(),
                     [&](const Group& g) { return g.past > 0 && g.tokens <= most; });
}

LlmSteps::Step LlmSteps::step(std::vector<Group> groups, bool launched, size_t part) const {
  const bool decode = decodes(groups);
  Step s = timed(graph(std::move(groups), part), {launched, decode}, &parts_[part]);
  for (double* seconds : {&s.totals.seconds, &s.totals.low_s, &s.totals.high_s})
    *seconds += overhead_s(part);
  return s;
}

double LlmSteps::overhead_s(size_t part) const {
  return parts_[part].layers.has_end ? asked_.execution.step_overhead_s.value_or(0) : 0;
}

LlmSteps::Step LlmSteps::pass(const Part& part, std::vector<Group> groups) const {
  const bool decode = decodes(groups);
  return timed(graph_of(part, std::move(groups)), {.decode = decode}, &part);
}

LlmSteps::Step LlmSteps::pass(Graph graph) const { return timed(std::move(graph), {}, nullptr); }

LlmSteps::Step LlmSteps::tower_step(int64_t images) const {
  return timed(tower_->graph(images), {.launched = true}, nullptr);
}

std::vector<std::pair<int64_t, int64_t>> LlmSteps::tower_runs(int64_t prompts) const {
  if (asked_.images == 0) return {};
  const int64_t all = checked_multiply(prompts, asked_.images),
                together = tower_->together(prompts);
  std::vector<std::pair<int64_t, int64_t>> runs = {{together, all / together}};
  if (all % together > 0) runs.emplace_back(all % together, 1);
  return runs;
}

void LlmSteps::predict(const Graph& graph, const Program& program, bool decode,
                       std::vector<KernelTime>& times) const {
  times.resize(program.kernels.size());
  predictor().predict(program.kernels, device_, conditions(), times);
  if (!has_groups_) return;
  price_collectives(plan_, graph, program,
                    decode ? ExpertKernels::kLowLatency : ExpertKernels::kNormal,
                    conditions().software, times);
}

std::vector<bool> LlmSteps::hidden(const Program& program) const {
  return asked_.execution.predictor == PredictorKind::kLearned
             ? hidden_kernels(program, plan_, device_, conditions().software)
             : std::vector<bool>(program.kernels.size(), false);
}

LlmSteps::Step LlmSteps::timed(Graph graph, const Launching& how, const Part* part) const {
  Step s;
  s.graph = std::move(graph);
  s.program = lower(s.graph);
  if (part == nullptr) {  // the vision tower, whose ranks are those of a node
    s.times.resize(s.program.kernels.size());
    predictor().predict(s.program.kernels, device_, conditions(), s.times);
  } else {
    predict(s.graph, s.program, how.decode, s.times);
    const std::vector<bool> hides = hidden(s.program);
    for (size_t i = 0; i < hides.size(); ++i) {
      if (hides[i]) hide_latency(s.program.kernels[i], device_, s.times[i]);
    }
  }
  s.timeline = run_program(s.program, s.times, how.launched ? *asked_.execution.host_launch_s : 0);
  s.totals = totals_of(s.timeline, s.program.kernel_counts(), s.times);
  if (part == nullptr || part->layers.has_end) return s;
  s.send_s = send_s(plan_, s.graph, conditions().software);
  for (double* seconds : {&s.totals.seconds, &s.totals.low_s, &s.totals.high_s})
    *seconds += s.send_s;
  return s;
}

double LlmSteps::send_seconds(int64_t tokens, size_t part) const {
  if (parts_[part].layers.has_end) return 0;
  return send_s(plan_, graph({{1, tokens, 1}}, part), conditions().software);
}

LlmSteps::Kernels LlmSteps::kernels(std::vector<Group> groups, size_t part) const {
  Kernels step{.graph = graph(std::move(groups), part), .program = {}};
  step.program = lower(step.graph);
  return step;
}

double LlmSteps::kernel_seconds(const Kernels& step, const Selection& selection) const {
  const Program& program = step.program;
  std::vector<double> counts(program.kernels.size(), 0);
  for (const Launch& launch : program.launches) {
    if (selection.wanted(launch))
      counts[launch.kernel] += static_cast<double>(program.count(launch));
  }
  // Only the kernels that are wanted, with their launches.
  std::vector<size_t> now(counts.size(), 0);
  Program wanted;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    now[i] = wanted.kernels.size();
    wanted.kernels.push_back(program.kernels[i]);
  }
  for (Launch launch : program.launches) {
    if (counts[launch.kernel] == 0) continue;
    launch.kernel = now[launch.kernel];
    wanted.launches.push_back(launch);
  }
  std::vector<KernelTime> times;
  predict(step.graph, wanted, selection.decode, times);
  const std::vector<bool> hides = hidden(program);
  double seconds = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    KernelTime& time = times[now[i]];
    if (hides[i]) hide_latency(program.kernels[i], device_, time);
    seconds += counts[i] * time.seconds;
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

Conditions LlmSteps::conditions() const { return conditions_of(asked_.execution, device_); }

namespace {

int64_t decoder_cache_bytes(const Decoder& decoder, DType kv_dtype, int64_t sequences,
                            int64_t tokens, int64_t ranks) {
  constexpr int64_t kBitsPerByte = 8;
  int64_t total = checked_multiply(sequences, decoder.state_bytes) / ranks;
  for (const Decoder::Cache& cache : decoder.caches) {
    // If there are fewer key heads than ranks, heads are replicated; a latent vector is replicated
    // on every rank.
    const int64_t share = std::min(ranks, cache.kv_heads);
    const int64_t entry =
        cache.dim / share * dtype_bits(cache.dtype.value_or(kv_dtype)) / kBitsPerByte;
    const int64_t kept = cache.window == 0 ? tokens : std::min(tokens, cache.window);
    total =
        checked_add(total, checked_product({cache.layers, sequences, kept / cache.ratio, entry}));
  }
  return total;
}

}  // namespace

int64_t LlmSteps::cache_bytes(int64_t sequences, int64_t tokens, int64_t ranks) const {
  return decoder_cache_bytes(decoder(), request_.kv_dtype, sequences, tokens, ranks);
}

int64_t LlmSteps::stage_cache_bytes(int64_t sequences, int64_t tokens, size_t part) const {
  return decoder_cache_bytes(stage_decoder(part), request_.kv_dtype, sequences, tokens, plan_.tp);
}

Decoder LlmSteps::stage_decoder(size_t part) const {
  Decoder stage = decoder();
  if (drafter_ && parts_[part].layers.has_end) drafter_->add_caches(stage);
  if (plan_.pp == 1) return stage;
  // Kinds of layers alternate, so each stage has about its share of every kind.
  const int64_t all = layer_count(modules_), own = parts_[part].layers.count;
  const auto share = [&](int64_t number) {
    return ceil_divide(checked_multiply(number, own), all);
  };
  for (Decoder::Cache& cache : stage.caches) cache.layers = share(cache.layers);
  stage.state_bytes = share(stage.state_bytes);
  stage.recurrent_layers = share(stage.recurrent_layers);
  return stage;
}

int64_t LlmSteps::sequences_of_rank(int64_t batch) const { return ceil_divide(batch, plan_.dp); }

}  // namespace tilecast
