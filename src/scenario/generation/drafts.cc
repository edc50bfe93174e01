#include "scenario/generation/drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "ops/builder.h"
#include "passes/stage.h"
#include "scenario/generation/served_stages.h"
#include "scenario/generation/step_timer.h"
#include "tilecast/error.h"

namespace tilecast {

double tokens_per_step(const Speculation& s) {
  double tokens = 1, accepted = 1;
  for (int64_t i = 0; i < s.tokens; ++i) {
    accepted *= s.acceptance_rate.value_or(0);
    tokens += accepted;
  }
  return tokens;
}

Drafter::Drafter(const ServedModel& served) : served_(served) {
  const std::string& name = served.asked.deployment.speculation.draft_model;
  if (name.empty()) {
    use_own_layer();
  } else {
    use_model(name);
  }
}

/// DeepSeek-V3's paper, section 2.2: a projection of the hidden state and the embedding of the last
/// token, a layer like the model's, and the model's own output layer. A draft of several tokens
/// runs the same layer again, as vLLM and SGLang do.
void Drafter::use_own_layer() {
  if (served_.decoder().mtp_layers == 0)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: its config states no layers for multi-token prediction "
                            "(num_nextn_predict_layers) that could make drafts; give `draft-model`",
                            served_.model.name));
  const int64_t last = layer_count(served_.modules) - 1;
  layer_ = stage_of_layers(served_, {.first = last, .count = 1, .has_end = true});
  const ServedStage body = stage_of_layers(served_, {.first = last, .count = 1});
  weights_bytes_ = checked_add(tilecast::weights_bytes(step_graph(served_, body, {{1, 1, 1}})),
                               tilecast::weights_bytes(projection(1)));
}

void Drafter::use_model(const std::string& name) {
  model_ = load_model_ref(name);
  request_ = served_.asked;
  request_.execution.pp = request_.execution.dp = 1;
  request_.execution.dtype.clear();
  request_.parallel.ep = 1;
  request_.parallel.nodes.reset();
  request_.deployment = {};
  gpu_ = ref_of_device(served_.device);
  smaller_ = std::make_unique<ServedModel>(served_.forecaster, *model_, gpu_, request_);
  weights_bytes_ = tilecast::weights_bytes(step_graph(*smaller_, {{1, 1, 1}}));
}

Graph Drafter::projection(int64_t tokens) const {
  const int64_t hidden = served_.decoder().hidden_dim;
  Graph graph;
  GraphBuilder b(graph);
  b.begin_segment("mtp", 1);
  const TensorId x = b.input("mtp.both", {tokens, 2 * hidden}, served_.dtype()),
                 w = b.weight("mtp.eh_proj.weight", {hidden, 2 * hidden}, served_.dtype());
  graph.outputs = {b.op("linear", {x, w}, "mtp.eh_proj")};
  return graph;
}

Interval Drafter::pass(std::vector<StepGroup> groups) const {
  if (smaller_)
    return time_step(*smaller_, std::move(groups), StepLaunch::kCudaGraph).totals.seconds;
  int64_t tokens = 0;
  for (const StepGroup& g : groups)
    tokens = checked_add(tokens, checked_multiply(g.sequences, g.tokens));
  const Interval joined =
      time_graph(served_, projection(tokens), StepLaunch::kCudaGraph).totals.seconds;
  return sum(joined, time_layers(served_, *layer_, std::move(groups)).totals.seconds, 1);
}

Interval Drafter::draft(int64_t sequences, int64_t past) const {
  const auto passes = static_cast<double>(served_.asked.deployment.speculation.tokens);
  return sum({}, pass({{sequences, 1, past}}), passes);
}

void Drafter::add_caches(Decoder& decoder) const {
  if (smaller_) {
    const std::vector<Decoder::Cache>& more = smaller_->decoder().caches;
    decoder.caches.insert(decoder.caches.end(), more.begin(), more.end());
    return;
  }
  // The layer is like the last one, which has no window in the models with such layers.
  const auto whole = std::find_if(decoder.caches.begin(), decoder.caches.end(),
                                  [](const Decoder::Cache& cache) { return cache.window == 0; });
  if (whole != decoder.caches.end()) whole->layers += 1;
}

}  // namespace tilecast
