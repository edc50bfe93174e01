#include "scenario/generation/drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/checked.h"
#include "ops/builder.h"
#include "passes/stage.h"
#include "scenario/generation/served_stages.h"
#include "scenario/generation/step_timer.h"
#include "tilecast/error.h"

namespace tilecast {

namespace {

/// In the order of DraftMethod.
constexpr DraftMethodDef kMethods[] = {
    {DraftMethod::kDraftModel, 0.7,
     "guess: Leviathan et al. 2023, table 3, has 0.5 to 0.8 for drafts by small models"},
    {DraftMethod::kMtp, 0.85, "DeepSeek-V3's paper: 0.85 to 0.9 of the second token", 1},
    {DraftMethod::kNgram, 0.4, "guess: depends on how much of the text repeats"},
    {DraftMethod::kEagle, 0.7, "guess: EAGLE's paper has 0.7 to 0.8 without a tree", 1},
    {DraftMethod::kEagle3, 0.75, "guess: EAGLE-3's paper has 0.7 to 0.8 at all positions", 3},
};

// Published heads of EAGLE-3 predict the most frequent tokens only: draft_vocab_size of those for
// Llama 3, from memory.
constexpr int64_t kDraftVocabulary = 32'000;

}  // namespace

const DraftMethodDef& draft_method(const Speculation& s) {
  const DraftMethod method =
      s.method.value_or(s.draft_model.empty() ? DraftMethod::kMtp : DraftMethod::kDraftModel);
  return kMethods[static_cast<size_t>(method)];
}

double acceptance_rate(const Speculation& s) {
  return s.acceptance_rate.value_or(draft_method(s).acceptance_rate);
}

double tokens_per_step(const Speculation& s) {
  double tokens = 1, accepted = 1;
  for (int64_t i = 0; i < s.tokens; ++i) {
    accepted *= acceptance_rate(s);
    tokens += accepted;
  }
  return tokens;
}

Drafter::Drafter(const ServedModel& served)
    : served_(served), method_(draft_method(served.asked.deployment.speculation)) {
  const std::string& name = served.asked.deployment.speculation.draft_model;
  if (!name.empty())
    use_model(name);
  else if (method_.method == DraftMethod::kMtp)
    use_own_layer();
  else if (method_.hidden_states > 0)
    use_head();
}

/// DeepSeek-V3's paper, section 2.2: a projection of the hidden state and the embedding of the last
/// token, a layer like the model's, and the model's own output layer. A draft of several tokens
/// runs the same layer again, as vLLM and SGLang do.
void Drafter::use_own_layer() {
  if (served_.decoder().mtp_layers == 0)
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{}: its config states no layers for multi-token prediction "
                    "(num_nextn_predict_layers) that could make drafts; give `draft-model`, "
                    "or `speculative-method` ngram, eagle or eagle3",
                    served_.model.name));
  const int64_t last = layer_count(served_.modules) - 1;
  layer_ = stage_of_layers(served_, {.first = last, .count = 1, .has_end = true});
  const ServedStage body = stage_of_layers(served_, {.first = last, .count = 1});
  weights_bytes_ = checked_add(tilecast::weights_bytes(step_graph(served_, body, {{1, 1, 1}})),
                               tilecast::weights_bytes(projection(1)));
}

/// EAGLE (Li et al. 2024): as above. EAGLE-3 (Li et al. 2025; vllm/model_executor/models/
/// llama_eagle3.py, from memory): one projection of the hidden states of three layers for each
/// token of the model, a layer whose queries, keys and values come from embedding and hidden state
/// together, and an output layer of its own.
void Drafter::use_head() {
  const Decoder& decoder = served_.decoder();
  if (decoder.expert_ffn_dim > 0 || decoder.latent || decoder.recurrent_layers > 0)
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{}: heads of EAGLE are dense layers, and the model's own are not; give "
                    "the head's config as `draft-model`",
                    served_.model.name));
  const int64_t last = layer_count(served_.modules) - 1;
  layer_ = stage_of_layers(served_, {.first = last, .count = 1, .has_end = !is_eagle3()});
  const ServedStage body = stage_of_layers(served_, {.first = last, .count = 1});
  weights_bytes_ = checked_add(tilecast::weights_bytes(step_graph(served_, body, {{1, 1, 1}})),
                               tilecast::weights_bytes(projection(1)));
  if (!is_eagle3()) return;
  weights_bytes_ = checked_add(weights_bytes_, tilecast::weights_bytes(wider_queries(1)));
  weights_bytes_ = checked_add(weights_bytes_, tilecast::weights_bytes(output(1)));
}

void Drafter::use_model(const std::string& name) {
  model_ = load_model_ref(name);
  request_ = served_.asked;
  request_.execution.pp = request_.execution.dp = 1;
  request_.execution.dtype.clear();
  request_.parallel.ep = 1;
  request_.parallel.nodes.reset();
  request_.deployment = {};
  request_.lora_rank = 0;
  gpu_ = ref_of_device(served_.device);
  smaller_ = std::make_unique<ServedModel>(served_.forecaster, *model_, gpu_, request_);
  weights_bytes_ = tilecast::weights_bytes(step_graph(*smaller_, {{1, 1, 1}}));
  if (method_.hidden_states > 0)
    weights_bytes_ = checked_add(weights_bytes_, tilecast::weights_bytes(projection(1)));
}

Graph Drafter::products(std::initializer_list<Product> products, int64_t rows) const {
  Graph graph;
  GraphBuilder b(graph);
  b.begin_segment("drafts", 1);
  for (const Product& p : products) {
    const std::string name = fmt::format("drafts.{}", p.name);
    const TensorId x = b.input(name + ".input", {rows, p.in}, served_.dtype()),
                   w = b.weight(name + ".weight", {p.out, p.in}, served_.dtype());
    graph.outputs.push_back(b.op("linear", {x, w}, name));
  }
  return graph;
}

/// Of embedding and hidden state; EAGLE-3: of three hidden states.
Graph Drafter::projection(int64_t tokens) const {
  const int64_t hidden = served_.decoder().hidden_dim;
  return products({{"eh_proj", (is_eagle3() ? 3 : 2) * hidden, hidden}}, tokens);
}

/// The half of queries, keys and values that a layer like the model's does not have.
Graph Drafter::wider_queries(int64_t tokens) const {
  const Decoder& decoder = served_.decoder();
  const Decoder::Cache& cache = decoder.caches.back();
  const int64_t queries = cache.dim / 2 / cache.kv_heads * decoder.heads;
  return products({{"qkv", decoder.hidden_dim, ceil_divide(queries + cache.dim, served_.plan.tp)}},
                  tokens);
}

Graph Drafter::output(int64_t sequences) const {
  return products(
      {{"lm_head", served_.decoder().hidden_dim, ceil_divide(kDraftVocabulary, served_.plan.tp)}},
      sequences);
}

Interval Drafter::time(Graph graph) const {
  return time_graph(served_, std::move(graph), StepLaunch::kCudaGraph).totals.seconds;
}

Interval Drafter::pass(std::vector<StepGroup> groups) const {
  if (!smaller_ && !layer_) return {};
  int64_t tokens = 0, sequences = 0;
  for (const StepGroup& g : groups) {
    tokens = checked_add(tokens, checked_multiply(g.sequences, g.tokens));
    sequences = checked_add(sequences, g.sequences);
  }
  // EAGLE-3's projection is part of a draft, not of its passes, and of prompts.
  const bool prompt =
      std::any_of(groups.begin(), groups.end(), [](const StepGroup& g) { return g.tokens > 1; });
  const bool projects = method_.hidden_states > 0 && (!is_eagle3() || prompt);
  const Interval joined = projects ? time(projection(tokens)) : Interval{};
  if (smaller_)
    return sum(joined,
               time_step(*smaller_, std::move(groups), StepLaunch::kCudaGraph).totals.seconds, 1);
  const Interval layer =
      sum(joined, time_layers(served_, *layer_, std::move(groups)).totals.seconds, 1);
  if (!is_eagle3()) return layer;
  return sum(sum(layer, time(wider_queries(tokens)), 1), time(output(sequences)), 1);
}

Interval Drafter::draft(int64_t sequences, int64_t past) const {
  const int64_t tokens = served_.asked.deployment.speculation.tokens;
  if (method_.method == DraftMethod::kNgram) {
    // The host searches one sequence after the other, while the GPU waits for the draft.
    const double each = host_costs(served_.asked.execution).ngram_token_s;
    const double seconds = each * static_cast<double>(sequences) * static_cast<double>(past);
    return {seconds, seconds, seconds};
  }
  const Interval passes = sum({}, pass({{sequences, 1, past}}), static_cast<double>(tokens));
  if (!is_eagle3()) return passes;
  return sum(passes, time(projection(checked_multiply(sequences, 1 + tokens))), 1);
}

void Drafter::add_caches(Decoder& decoder) const {
  if (smaller_) {
    const std::vector<Decoder::Cache>& more = smaller_->decoder().caches;
    decoder.caches.insert(decoder.caches.end(), more.begin(), more.end());
    return;
  }
  if (!layer_) return;
  // The layer is like the last one, which has no window in the models with such layers.
  const auto whole = std::find_if(decoder.caches.begin(), decoder.caches.end(),
                                  [](const Decoder::Cache& cache) { return cache.window == 0; });
  if (whole != decoder.caches.end()) whole->layers += 1;
}

}  // namespace tilecast
