#include "scenario/scenario.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "request/access.h"
#include "scenario/accelerator/accelerator_scenario.h"
#include "scenario/best_cap.h"
#include "scenario/diffusion/diffusion.h"
#include "scenario/generation/generation_scenario.h"
#include "scenario/internal.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/pass/pass_scenario.h"
#include "scenario/prices.h"

namespace tilecast {
namespace {

bool is_of(const Inquiry& q, RequestKind kind) { return q.request.kind == kind; }

constexpr std::array kScenarios = {
    Scenario{.name = "accelerator",
             .what = "a forward pass on an accelerator that its objects describe",
             .kinds = kPasses,
             .covers = [](const Inquiry& q) { return q.accelerator() != nullptr; },
             .check = check_runs_on_accelerators,
             .run = run_accelerator},
    Scenario{.name = "server",
             .what = "a server with continuous batching under a load",
             .kinds = kServers,
             .covers = [](const Inquiry& q) { return is_of(q, RequestKind::kServe); },
             .check = check_request,
             .run = run_generation},
    Scenario{.name = "generation",
             .what = "text generation for a static batch of prompts",
             .kinds = kTokens & ~kServers,
             .covers = [](const Inquiry& q) { return is_of(q, RequestKind::kGenerate); },
             .check = check_request,
             .run = run_generation},
    Scenario{.name = "diffusion",
             .what = "a batch of images or videos of a diffusion pipeline",
             .kinds = kPasses,
             .covers =
                 [](const Inquiry& q) {
                   return is_of(q, RequestKind::kPass) && q.model.content->model.pipeline;
                 },
             .check = check_diffusion,
             .run = run_diffusion},
    Scenario{.name = "recommendation",
             .what = "a pass or training step whose ranks divide embedding tables",
             .kinds = kPasses,
             .covers =
                 [](const Inquiry& q) {
                   return is_parallel(q.request) && q.model.content->model.recommendation;
                 },
             .check = check_request,
             .run = run_recommendation_pass},
    Scenario{.name = "ranks",
             .what = "a training step over several ranks or micro-batches",
             .kinds = kPasses,
             .covers = [](const Inquiry& q) { return is_parallel(q.request); },
             .check = check_request,
             .run = run_parallel_pass},
    Scenario{.name = "pass",
             .what = "one pass or training step on one GPU",
             .kinds = kPasses,
             .covers = [](const Inquiry&) { return true; },
             .check = check_request,
             .run = run_pass},
};

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

const Scenario& scenario_of(const Inquiry& inquiry) {
  return *std::find_if(kScenarios.begin(), kScenarios.end(),
                       [&](const Scenario& scenario) { return scenario.covers(inquiry); });
}

Result answer(const Inquiry& inquiry) {
  const EnergyTerms& energy = inquiry.request.energy;
  if (!energy.gpu_prices.empty() && !energy.gpu_price && inquiry.accelerator() == nullptr) {
    const Request priced = with_gpu_price(inquiry.request, inquiry.gpu().id());
    return answer(inquiry.with(priced));
  }
  if (energy.best_power_cap) return at_best_cap(inquiry);
  const Scenario& scenario = scenario_of(inquiry);
  scenario.check(inquiry.request);
  return scenario.run(inquiry);
}

Result ask(const Forecaster& forecaster, const ModelRef& model, const DeviceRef& device,
           const Request& request, Detail detail) {
  return answer({forecaster, model, device, request, detail});
}

DeviceRef load_device_ref(const std::string& gpu, const std::string& cluster,
                          const AcceleratorOptions& options) {
  if (cluster.empty() && is_accelerator(gpu)) return AcceleratorRef{gpu, options};
  return load_gpu_or_cluster(gpu, cluster);
}

}  // namespace tilecast
