#include "schema/plan_options.h"

#include <fmt/format.h>

#include "request/access.h"

namespace tilecast {
namespace {

template <auto Member>
std::string number(const TrainingCandidate& c) {
  return std::to_string(c.*Member);
}

template <auto Member>
std::string number_of(const ServingPlan&, const ServingCandidate& c) {
  return std::to_string(c.*Member);
}

template <auto Member>
std::string choice(const TrainingCandidate& c) {
  return choice_name(c.*Member);
}

using T = TrainingCandidate;
using S = ServingCandidate;

std::string schedule_text(const T& c) {
  if (c.pp == 1) return "-";
  if (c.virtual_stages == 1) return choice_name(c.schedule);
  return fmt::format("interleaved {}", c.virtual_stages);
}

constexpr TrainingOption kTraining[] = {
    {"dp", "dp", number<&T::dp>, nullptr, true},
    {"tp", "tp", number<&T::tp>, nullptr, true},
    {"pp", "pp", number<&T::pp>, nullptr, true},
    {"cp", "cp", number<&T::cp>, nullptr, true},
    {"ep", "ep", number<&T::ep>, nullptr, true},
    {"micro-batch-size", "mbs", number<&T::micro_batch_size>, nullptr, true},
    {"pipeline-schedule", "schedule", choice<&T::schedule>, schedule_text},
    {"zero", "zero", choice<&T::zero>},
    {"sequence-parallel", "sp",
     [](const T& c) { return std::string(c.sequence_parallel ? "on" : "off"); }},
    {"checkpointing", "ckpt", choice<&T::checkpointing>},
    {"dtype", "dtype", [](const T& c) { return c.dtype; }},
};

constexpr ServingOption kServing[] = {
    {"gpu", "GPU", [](const ServingPlan& p, const S& c) { return p.gpu_ids[c.hardware]; }, nullptr,
     false},
    {"tp", "tp", number_of<&S::tp>},
    {"pp", "pp", number_of<&S::pp>},
    {"dp", "dp", number_of<&S::dp>},
    {"ep", "ep", number_of<&S::ep>},
    {"prefill-workers", "prefill", number_of<&S::prefill_workers>},
    {"all2all-backend", "all2all",
     [](const ServingPlan&, const S& c) { return choice_name(c.all2all); },
     [](const ServingPlan&, const S& c) {
       if (c.all2all != All2All::kAllGather) return choice_name(c.all2all);
       return std::string(c.dp > 1 ? "gather" : "-");
     },
     false},
    {"dtype", "dtype", [](const ServingPlan&, const S& c) { return c.dtype; },
     [](const ServingPlan&, const S& c) { return c.dtype.empty() ? "stored" : c.dtype; }, false},
    {"kv-dtype", "cache", [](const ServingPlan&, const S& c) { return c.kv_dtype; },
     [](const ServingPlan&, const S& c) { return c.kv_dtype.empty() ? "default" : c.kv_dtype; },
     false},
};

}  // namespace

std::span<const TrainingOption> training_plan_options() { return kTraining; }

std::span<const ServingOption> serving_plan_options() { return kServing; }

}  // namespace tilecast
