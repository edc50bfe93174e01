#include "scenario/pass/recomputation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "ops/op_def.h"
#include "passes/stage.h"
#include "passes/sublayers.h"
#include "request/access.h"
#include "scenario/pass/pass.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr const char* kLatentUp = "mla_up_proj";
constexpr const char* kMlp = "mlp";
constexpr const char* kExpertLayer = "moe";

/// Throws Error where `recompute-modules` names sublayers that the model does not have.
void check_sublayers(const Graph& modules, const Request& request) {
  bool mlp = false, experts = false;
  for (const Segment& segment : modules.segments) {
    if (!segment.is_layers()) continue;
    const auto first = modules.nodes.begin() + segment.first_node;
    for (const Sublayer kind : sublayers_of({first, first + segment.node_count})) {
      mlp = mlp || kind == Sublayer::kMlp;
      experts = experts || kind == Sublayer::kExperts;
    }
  }
  for (const auto& [name, there, what] : {std::tuple{kMlp, mlp, "dense MLP beside its attention"},
                                          std::tuple{kExpertLayer, experts, "layer of experts"}}) {
    if (recomputes(request, name) && !there)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the model has no {}, so `recompute-modules` {} has no effect; "
                              "omit it",
                              modules.name, what, name));
  }
}

}  // namespace

bool recomputes(const Request& request, std::string_view module) {
  if (request.checkpointing != Checkpointing::kSelective) return false;
  const std::vector<std::string> modules = split(
      request.recompute_modules.empty() ? kCoreAttention : request.recompute_modules.c_str(), ',');
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

RecomputedModules recomputed_modules(const Request& request) {
  return {.attention = recomputes(request, kCoreAttention),
          .norms = recomputes(request, "layernorm"),
          .latent_up = recomputes(request, kLatentUp),
          .mlp = recomputes(request, kMlp),
          .experts = recomputes(request, kExpertLayer)};
}

void check_checkpointing(const Graph& modules, const Request& request, const EagerForm& form) {
  if (request.checkpointing == Checkpointing::kNone) return;
  const bool latent = std::any_of(
      modules.nodes.begin(), modules.nodes.end(),
      [id = require_op("latent_attention")](const Node& node) { return node.op == id; });
  if (recomputes(request, kLatentUp) && !latent)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the model has no latent attention, so `recompute-modules` {} has "
                            "no effect; omit it",
                            modules.name, kLatentUp));
  check_sublayers(modules, request);
  if (request.checkpointing == Checkpointing::kSelective && !recomputes(request, kCoreAttention))
    return;
  const bool selective = request.checkpointing == Checkpointing::kSelective;
  const bool eager =
      selective && has_scores(modules, {.training = true, .autocast = form.autocast});
  if (eager && layer_count(modules) > 0 && !has_scores(modules, form))
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: `checkpointing` selective has no effect with `attention` flash: it "
                    "computes attention's scores again, which fused attention does not "
                    "keep; omit it, or use `checkpointing` full",
                    modules.name));
  const char* const missing = layer_count(modules) == 0 ? "repeated layers"
                              : selective && !eager     ? "attention"
                                                        : nullptr;
  if (missing != nullptr)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the model has no {}, so `checkpointing` {} has no effect; omit it",
                            modules.name, missing, choice_name(request.checkpointing)));
}

}  // namespace tilecast
