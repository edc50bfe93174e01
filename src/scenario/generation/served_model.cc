#include "scenario/generation/served_model.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/text.h"
#include "passes/adapted_layers.h"
#include "scenario/generation/drafts.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/step_graph.h"
#include "scenario/software_support.h"
#include "scenario/timing.h"
#include "software/software.h"
#include "tilecast/error.h"

namespace tilecast {

ServedModel::ServedModel(const Forecaster& tilecast, const ModelRef& of, const GpuRef& gpu,
                         const Request& request)
    : forecaster(tilecast),
      model(of.content->model),
      device(gpu.content->device),
      asked(with_limits(request, device)) {
  if (!model.decoder)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: '{}' is not forecast token by token; `prompt` is for decoder-only "
                            "language models of a Hugging Face config.json",
                            model.name, model.family));
  build(nullptr);
}

ServedModel::ServedModel(const ServedModel& base, const Request& changed)
    : forecaster(base.forecaster),
      model(base.model),
      device(base.device),
      asked(with_limits(changed, base.device)) {
  build(&base);
}

ServedModel::~ServedModel() = default;

void ServedModel::build(const ServedModel* base) {
  const Software software = asked.execution.software.value_or(default_server());
  check_runs_on(software, device);
  precision = resolve_precision(model, device,
                                {.asked = asked.execution.dtype,
                                 .fallback = DType::kBf16,
                                 .serving = software_def(software).serves()});
  kv_dtype = asked.execution.kv_dtype.empty() ? cache_dtype(model, device, precision)
                                              : parse_dtype(asked.execution.kv_dtype, "`kv-dtype`");
  check_served(*this);
  const bool single = asked.execution.pp > 1;
  const bool built =
      base != nullptr && base->dtype() == dtype() && (base->asked.execution.pp > 1) == single;
  modules = built ? base->modules : model.build({.dtype = dtype(), .single_layers = single});
  modules.name = model.name;  // for messages
  if (asked.lora_rank > 0) check_targets(modules, split(asked.lora_targets, ','));
  skew_percent = served_skew(asked, modules);
  plan = server_ranks(model, device, asked, modules);
  stages = divide_stages(*this);
  if (model.vision &&
      (asked.deployment.encode.workers == 0 || software_def(software).server.keeps_tower))
    tower.emplace(model, asked, dtype());
  if (asked.deployment.speculation.tokens > 0) drafter = std::make_unique<Drafter>(*this);
}

const Predictor& ServedModel::predictor() const {
  return forecaster.impl().predictor(asked.execution.predictor);
}

Conditions ServedModel::conditions() const { return conditions_of(asked.execution, device); }

PowerTerms ServedModel::power() const {
  return {device, predictor().laws().power, asked.execution, asked.energy.power_cap_w};
}

int64_t ServedModel::sequences_of_rank(int64_t batch) const { return ceil_divide(batch, plan.dp); }

}  // namespace tilecast
