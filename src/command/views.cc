#include "command/views.h"

#include "report/train_report.h"
#include "tilecast/plan_report.h"

namespace tilecast {
namespace {

// A view of a type is an overload; a type without one has no such view.

std::string table(const Forecast& f, const TableStyle& s) { return forecast_table(f, s); }
std::string table(const LlmForecast& f, const TableStyle& s) { return llm_table(f, s); }
std::string table(const AcceleratorForecast& f, const TableStyle& s) {
  return accelerator_table(f, s);
}
std::string table(const GpuComparison& c, const TableStyle& s) { return comparison_table(c, s); }
std::string table(const MemoryTimeline& t, const TableStyle& s) { return memory_table(t, s); }
std::string table(const KernelAnswer& k, const TableStyle& s) {
  return kernel_table(k.kernels, k.asked, s);
}
std::string table(const CollectiveForecast& f, const TableStyle& s) {
  return collective_table(f, s);
}
std::string table(const TrainingPlan& p, const TableStyle& s) { return plan_table(p, s); }
std::string table(const std::vector<TrainingPlan>& p, const TableStyle& s) {
  return plans_table(p, s);
}
std::string table(const ServingPlan& p, const TableStyle& s) { return plan_table(p, s); }
std::string table(const ShardForecast& f, const TableStyle& s) { return shard_table(f, s); }
std::string table(const Evaluation& e, const TableStyle& s) { return evaluation_table(e, s); }
std::string table(const std::vector<AcceleratorEvaluation>& e, const TableStyle& s) {
  return accelerator_evaluation_table(e, s);
}
std::string table(const std::vector<TuneEvaluation>& e, const TableStyle& s) {
  return tune_evaluation_table(e, s);
}
std::string table(const TrainResult& r, const TableStyle& s) { return train_table(r, s); }
std::string table(const CollectiveTrainResult& r, const TableStyle& s) {
  return collective_train_table(r, s);
}
std::string table(const CalibrateResult& r, const TableStyle& s) { return calibration_table(r, s); }
std::string table(const SuggestedKernels& k, const TableStyle&) { return k.csv; }
std::string table(const TuneAnswer& t, const TableStyle& s) { return tune_table(t.forecasts, s); }
std::string table(const ProductAnswer& p, const TableStyle& s) {
  return product_table(p.forecast, s);
}
std::string table(const SweepResult& r, const TableStyle&) { return r.pareto_front; }
std::string table(const std::vector<GpuEntry>& e, const TableStyle& s) { return gpus_table(e, s); }
std::string table(const std::vector<ClusterEntry>& e, const TableStyle& s) {
  return clusters_table(e, s);
}
std::string table(const std::vector<ModelEntry>& e, const TableStyle& s) {
  return models_table(e, s);
}
std::string table(const std::vector<OpEntry>& e, const TableStyle& s) { return ops_table(e, s); }

std::string json(const Forecast& f) { return forecast_json(f); }
std::string json(const LlmForecast& f) { return llm_json(f); }
std::string json(const AcceleratorForecast& f) { return accelerator_json(f); }
std::string json(const GpuComparison& c) { return comparison_json(c); }
std::string json(const MemoryTimeline& t) { return memory_json(t); }
std::string json(const std::vector<StepOperation>& o) { return step_trace_json(o); }
std::string json(const KernelAnswer& k) { return kernel_json(k.kernels, k.asked, k.warnings); }
std::string json(const CollectiveForecast& f) { return collective_json(f); }
std::string json(const TrainingPlan& p) { return plan_json(p); }
std::string json(const std::vector<TrainingPlan>& p) { return plans_json(p); }
std::string json(const ServingPlan& p) { return plan_json(p); }
std::string json(const ShardForecast& f) { return shard_json(f); }
std::string json(const Evaluation& e) { return evaluation_json(e); }
std::string json(const std::vector<AcceleratorEvaluation>& e) {
  return accelerator_evaluation_json(e);
}
std::string json(const std::vector<TuneEvaluation>& e) { return tune_evaluation_json(e); }
std::string json(const TuneAnswer& t) { return tune_json(t.forecasts, t.warnings); }
std::string json(const ProductAnswer& p) { return product_json(p.forecast, p.warnings); }
std::string json(const std::vector<GpuEntry>& e) { return gpus_json(e); }
std::string json(const std::vector<ClusterEntry>& e) { return clusters_json(e); }
std::string json(const std::vector<ModelEntry>& e) { return models_json(e); }
std::string json(const std::vector<OpEntry>& e) { return ops_json(e); }

std::string csv(const Forecast& f) { return forecast_csv(f); }
std::string csv(const LlmForecast& f) { return llm_csv(f); }
std::string csv(const AcceleratorForecast& f) { return accelerator_csv(f); }
std::string csv(const GpuComparison& c) { return comparison_csv(c); }
std::string csv(const TrainingPlan& p) { return plan_csv(p); }
std::string csv(const ServingPlan& p) { return plan_csv(p); }
std::string csv(const ShardForecast& f) { return shard_csv(f); }
std::string csv(const SuggestedKernels& k) { return k.csv; }

std::string svg(const MemoryTimeline& t) { return memory_svg(t); }
std::string svg(const ServingPlan& p) { return plan_svg(p); }
std::string svg(const AcceleratorOccupancy& o) { return occupancy_picture(o, "svg"); }

std::string text(const AcceleratorOccupancy& o) { return occupancy_picture(o, "text"); }
std::string perfetto(const AcceleratorOccupancy& o) { return occupancy_picture(o, "perfetto"); }

}  // namespace

std::optional<std::string> view(const Answer& answer, std::string_view name,
                                const TableStyle& style) {
  return std::visit(
      [&](const auto& a) -> std::optional<std::string> {
        if constexpr (requires { table(a, style); })
          if (name == "table") return table(a, style);
        if constexpr (requires { json(a); })
          if (name == "json") return json(a);
        if constexpr (requires { csv(a); })
          if (name == "csv") return csv(a);
        if constexpr (requires { svg(a); })
          if (name == "svg") return svg(a);
        if constexpr (requires { text(a); })
          if (name == "text") return text(a);
        if constexpr (requires { perfetto(a); })
          if (name == "perfetto") return perfetto(a);
        return std::nullopt;
      },
      answer);
}

}  // namespace tilecast
