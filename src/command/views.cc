#include "command/views.h"

#include "report/html.h"
#include "report/train_report.h"
#include "schema/csv.h"
#include "schema/json.h"
#include "tilecast/error.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

// A view of a type is an overload; a type without one has no such view.

std::string table(const Forecast& f, const TableStyle& s) { return forecast_table(f, s); }
std::string table(const GenerationForecast& f, const TableStyle& s) { return llm_table(f, s); }
std::string table(const AcceleratorForecast& f, const TableStyle& s) {
  return accelerator_table(f, s);
}
std::string table(const GpuComparison& c, const TableStyle& s) { return comparison_table(c, s); }
std::string table(const Comparison& c, const TableStyle& s) { return difference_table(c, s); }
std::string table(const MemoryTimeline& t, const TableStyle& s) { return memory_table(t, s); }
std::string table(const PowerTimeline& t, const TableStyle& s) { return power_table(t, s); }
std::string table(const KernelAnswer& k, const TableStyle& s) { return kernel_table(k, s); }
std::string table(const CollectiveForecast& f, const TableStyle& s) {
  return collective_table(f, s);
}
std::string table(const TrainingPlan& p, const TableStyle& s) { return plan_table(p, s); }
std::string table(const TrainingPlans& p, const TableStyle& s) { return plans_table(p.plans, s); }
std::string table(const ServingPlan& p, const TableStyle& s) { return plan_table(p, s); }
std::string table(const ShardForecast& f, const TableStyle& s) { return shard_table(f, s); }
std::string table(const Evaluation& e, const TableStyle& s) { return evaluation_table(e, s); }
std::string table(const AcceleratorEvaluations& e, const TableStyle& s) {
  return accelerator_evaluation_table(e.accelerators, s);
}
std::string table(const TuneEvaluations& e, const TableStyle& s) {
  return tune_evaluation_table(e.tuning, s);
}
std::string table(const SharingEvaluation& e, const TableStyle& s) {
  return sharing_evaluation_table(e, s);
}
std::string table(const ServerEvaluation& e, const TableStyle& s) {
  return server_evaluation_table(e, s);
}
std::string table(const PairCalibration& c, const TableStyle& s) {
  return pair_calibration_table(c, s);
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
std::string table(const SweepResult& r, const TableStyle&) { return r.front_lines; }
std::string table(const ShareForecast& f, const TableStyle& s) { return share_table(f, s); }
std::string table(const TraceReport& r, const TableStyle& s) { return trace_table(r, s); }
std::string table(const AllocationForecast& f, const TableStyle& s) {
  return allocation_table(f, s);
}
std::string table(const ClusterSimulation& c, const TableStyle& s) {
  return simulation_table(c, s);
}
std::string table(const std::vector<GpuEntry>& e, const TableStyle& s) { return gpus_table(e, s); }
std::string table(const std::vector<ClusterEntry>& e, const TableStyle& s) {
  return clusters_table(e, s);
}
std::string table(const std::vector<ModelEntry>& e, const TableStyle& s) {
  return models_table(e, s);
}
std::string table(const std::vector<OpEntry>& e, const TableStyle& s) { return ops_table(e, s); }

std::string table(const DataFile& f, const TableStyle& s) { return data_file_table(f, s); }
std::string table(const Installation& i, const TableStyle& s) { return installation_table(i, s); }

/// Results that have a table of fields; lists in a record of their own where the document has more
/// than the list.
template <typename T>
  requires requires { &T::template fields<int>; }
std::string json(const T& result) {
  return to_json(result);
}
std::string json(const std::vector<StepOperation>& o) { return step_trace_json(o); }
std::string json(const std::vector<GpuEntry>& e) { return to_json(e); }
std::string json(const std::vector<ClusterEntry>& e) { return to_json(e); }
std::string json(const std::vector<ModelEntry>& e) { return to_json(e); }
std::string json(const std::vector<OpEntry>& e) { return to_json(e); }

std::string json(const DataFile& f) { return f.json; }

/// What has JSON has a page; without scripts it shows the table.
template <typename T>
  requires requires(const T& answer) { json(answer); }
std::string html(const T& answer, const TableStyle& style) {
  constexpr int kPageWidth = 120;
  ReportText text{.json = json(answer), .table = "", .command = style.command};
  if constexpr (requires(const TableStyle& s) { table(answer, s); })
    text.table = table(answer, {.width = kPageWidth, .rows = style.rows});
  return report_page(text);
}

std::string csv(const Forecast& f) { return to_csv(f.kernels); }
std::string csv(const GenerationForecast& f) { return to_csv(f.kernels); }
std::string csv(const AcceleratorForecast& f) { return to_csv(f.layers); }
std::string csv(const GpuComparison& c) { return to_csv(c.gpus); }
std::string csv(const Comparison& c) { return to_csv(c.kernels); }
std::string csv(const TrainingPlan& p) { return to_csv(p.rows()); }
std::string csv(const ServingPlan& p) { return to_csv(p.rows()); }
std::string csv(const ShardForecast& f) { return shard_csv(f); }
std::string csv(const ShareForecast& f) { return to_csv(f.jobs); }
std::string csv(const SharingEvaluation& e) { return to_csv(e.points); }
std::string csv(const ServerEvaluation& e) { return to_csv(e.points); }
std::string csv(const TraceReport& r) { return to_csv(r.operators); }
/// All places of all jobs.
std::string csv(const AllocationForecast& f) {
  std::vector<AllocatedPlace> places;
  for (const AllocatedJob& job : f.jobs)
    places.insert(places.end(), job.places.begin(), job.places.end());
  return to_csv(places);
}
std::string csv(const ClusterSimulation& c) { return to_csv(c.policies); }
std::string csv(const SuggestedKernels& k) { return k.csv; }

std::string svg(const MemoryTimeline& t) { return memory_svg(t); }
std::string svg(const PowerTimeline& t) { return power_svg(t); }
std::string svg(const SharingEvaluation& e) { return sharing_evaluation_svg(e); }
std::string svg(const ServingPlan& p) { return plan_svg(p); }
std::string svg(const ClusterSimulation& c) { return simulation_svg(c); }
std::string svg(const AcceleratorOccupancy& o) { return occupancy_picture(o, "svg"); }

std::string text(const AcceleratorOccupancy& o) { return occupancy_picture(o, "text"); }
std::string perfetto(const PowerTimeline& t) { return power_trace_json(t); }
std::string perfetto(const TracedTimeline& t) { return t.json; }
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
        if constexpr (requires { html(a, style); })
          if (name == "html") return html(a, style);
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

std::string selected_json(const Answer& answer, std::span<const std::string> fields) {
  return std::visit(
      [&]<typename T>(const T& a) -> std::string {
        if constexpr (requires { &T::template fields<int>; }) return to_json(a, fields);
        throw Error(ErrorKind::kInput, "this answer is no record: it has no fields to choose from");
      },
      answer);
}

}  // namespace tilecast
