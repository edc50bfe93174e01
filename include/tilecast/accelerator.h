#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilecast/evaluate.h"
#include "tilecast/forecast.h"
#include "tilecast/report.h"

namespace tilecast {

/// Share of the time that an object of an accelerator is busy.
struct ObjectUse {
  std::string object;
  double ratio = 0;
};

/// A layer on an accelerator; identical layers are one row.
struct AcceleratorLayer {
  std::string name;
  std::string op;
  /// "accelerator", "host", or "store": applied as the layer before it stores its outputs, without
  /// cycles of its own.
  std::string where;
  std::string kind;   ///< of the layer: "product", "depthwise", "pooling", "elementwise"
  std::string sizes;  ///< "k 64, c 256, p 56, q 56"
  std::vector<std::string> fused;  ///< operators that its store applies
  std::string mapping;
  bool mapping_by_name = false;  ///< a file of mappings states it for this layer only
  int64_t count = 1;
  double cycles = 0;  ///< of one
  double low_cycles = 0, high_cycles = 0;
  bool converged = true;
  double instructions = 0;
  int64_t evaluated = 0;           ///< instructions that were run to know the rest
  int64_t macs = 0;                ///< of one; the host's included
  int64_t bytes = 0;               ///< moved to and from memory outside the chip
  std::optional<double> energy_j;  ///< of one; nullopt: the description states none
  std::string bound;  ///< "compute", "load", "store", "memory", "fetch", "dependency" or "host"
  std::vector<ObjectUse> use;

  std::vector<std::pair<std::string, double>> use_by_object() const {
    std::vector<std::pair<std::string, double>> ratios;
    for (const ObjectUse& one : use) ratios.emplace_back(one.object, one.ratio);
    return ratios;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorLayer", "A layer on an accelerator; identical layers are one row.");
    field("name", "", "in the model", &AcceleratorLayer::name);
    field("op", "", "operator", &AcceleratorLayer::op);
    field("where", "",
          "\"store\": applied as the layer before it stores its outputs, without cycles of its own",
          &AcceleratorLayer::where, {"accelerator", "host", "store"});
    field("count", "", "number of identical layers", &AcceleratorLayer::count);
    field("cycles", "cycles", "of one, as the next", &AcceleratorLayer::cycles);
    field("low_cycles", "cycles", "at least, of a layer without a fixed point",
          &AcceleratorLayer::low_cycles);
    field("high_cycles", "cycles", "at most", &AcceleratorLayer::high_cycles);
    field("converged", "", "whether it reached a fixed point", &AcceleratorLayer::converged);
    field("instructions", "", "of one", &AcceleratorLayer::instructions);
    field("evaluated_instructions", "", "that were run to know the rest",
          &AcceleratorLayer::evaluated);
    field("macs", "", "multiplications of one, those of the host as well", &AcceleratorLayer::macs);
    field("bytes", "bytes", "moved to and from memory outside the chip", &AcceleratorLayer::bytes);
    field("energy_j", "J", "of one; null: the description states no energy",
          &AcceleratorLayer::energy_j);
    field("bound", "", "what limits it", &AcceleratorLayer::bound,
          {"compute", "load", "store", "memory", "fetch", "dependency", "host", ""});
    field("mapping", "", "how it is tiled and ordered", &AcceleratorLayer::mapping);
    field("kind", "", "of the layer", &AcceleratorLayer::kind);
    field("sizes", "", "of its loops", &AcceleratorLayer::sizes);
    field("fused", "", "operators that its store applies", &AcceleratorLayer::fused);
    field("utilization_ratio", "", "share of the time that each object is busy",
          &AcceleratorLayer::use_by_object);
  }
};

struct AcceleratorForecast {
  std::string model;
  std::string accelerator, accelerator_name;
  std::vector<std::pair<std::string, double>> parameters;
  std::string dataflow, operand_dtype, accumulator_dtype;
  int64_t batch = 1, seq = 0;
  double clock_hz = 0;
  double cycles = 0, low_cycles = 0, high_cycles = 0;
  double host_cycles = 0;
  int64_t macs = 0;  ///< all
  int64_t host_macs = 0;
  int64_t pe_count = 0;
  double on_chip_bytes = 0;
  double energy_j = 0;
  bool has_energy = false;  ///< an object of the description states its energy
  double instructions = 0;
  int64_t evaluated = 0;
  std::vector<AcceleratorLayer> layers;
  std::vector<std::string> warnings;

  double latency_s() const { return cycles / clock_hz; }
  double utilization_ratio() const {
    const double peak = cycles * static_cast<double>(pe_count);
    return peak > 0 ? static_cast<double>(macs - host_macs) / peak : 0;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorForecast", "The forecast of a forward pass on an accelerator.");
    field("schema_version", "", "of this schema", [](const AcceleratorForecast&) { return 1; });
    field("model", "", "name of the model", &AcceleratorForecast::model);
    field("gpu", "", "id of the accelerator", &AcceleratorForecast::accelerator);
    field("gpu_name", "", "its name", &AcceleratorForecast::accelerator_name);
    field("parameters", "", "of the description", &AcceleratorForecast::parameters);
    field("dataflow", "", "of the description", &AcceleratorForecast::dataflow);
    field("dtype", "", "of operands", &AcceleratorForecast::operand_dtype);
    field("accumulator_dtype", "", "of sums", &AcceleratorForecast::accumulator_dtype);
    field("mode", "", "inference",
          [](const AcceleratorForecast&) { return std::string_view("inference"); }, {"inference"});
    field("batch", "", "sequences", &AcceleratorForecast::batch);
    field("seq", "tokens", "length of a sequence", &AcceleratorForecast::seq);
    field("clock_hz", "Hz", "of the accelerator", &AcceleratorForecast::clock_hz);
    field("cycles", "cycles", "of the pass", &AcceleratorForecast::cycles);
    field("low_cycles", "cycles", "at least", &AcceleratorForecast::low_cycles);
    field("high_cycles", "cycles", "at most", &AcceleratorForecast::high_cycles);
    field("host_cycles", "cycles", "of operators that the accelerator does not run",
          &AcceleratorForecast::host_cycles);
    field("latency_s", "s", "time of the pass", &AcceleratorForecast::latency_s);
    field("latency_low_s", "s", "at least",
          [](const AcceleratorForecast& x) { return x.low_cycles / x.clock_hz; });
    field("latency_high_s", "s", "at most",
          [](const AcceleratorForecast& x) { return x.high_cycles / x.clock_hz; });
    field("macs", "", "multiplications of the pass", &AcceleratorForecast::macs);
    field("host_macs", "", "of these, on the host", &AcceleratorForecast::host_macs);
    field("pe_count", "", "multipliers", &AcceleratorForecast::pe_count);
    field("on_chip_bytes", "bytes", "memories of the chip", &AcceleratorForecast::on_chip_bytes);
    field("energy_j", "J", "of the pass; null: the description states no energy",
          [](const AcceleratorForecast& x) { return x.has_energy ? &x.energy_j : nullptr; });
    field("utilization_ratio", "", "multiplications / (cycles x multipliers)",
          &AcceleratorForecast::utilization_ratio);
    field("instructions", "", "of the pass", &AcceleratorForecast::instructions);
    field("evaluated_instructions", "", "that were run to know the rest",
          &AcceleratorForecast::evaluated);
    field("layers", "", "rows of identical layers", &AcceleratorForecast::layers);
    field("warnings", "", "sentences that readers of the numbers should know",
          &AcceleratorForecast::warnings);
  }
};

struct AcceleratorOptions {
  bool exact = false;   ///< run all instructions instead of extrapolating from fixed points
  std::string mapping;  ///< one mapping for all layers ("order=… tile=…"); "": a mapper chooses
  std::string mapping_file;  ///< mappings by layer, as `accelerator_mappings` writes them
  std::vector<std::pair<std::string, double>> parameters;  ///< on top of the parameters of `spec`
};

/// A text with '=' is one mapping for all layers, another text the path of a file of mappings.
void set_mapping(AcceleratorOptions& options, const std::string& text_or_path);

/// Whether `--gpu` names an accelerator that is described by its objects: a bundled one, or a file.
bool is_accelerator(const std::string& spec);
std::vector<std::string> accelerator_ids();

/// One forward pass of the model on the accelerator. Throws Error; also for an operator that
/// neither the accelerator nor its host runs.
AcceleratorForecast forecast_accelerator(const ModelRef& model, const std::string& spec,
                                         const Request& request,
                                         const AcceleratorOptions& options = {});

std::string accelerator_table(const AcceleratorForecast& forecast, const TableStyle& style);
/// The mappings of all layers, for AcceleratorOptions::mapping_file.
std::string accelerator_mappings(const AcceleratorForecast& forecast);

/// When an instruction is in an object.
struct OccupiedObject {
  size_t object = 0;  ///< index into AcceleratorOccupancy::objects
  std::string operation;
  double start_cycles = 0, end_cycles = 0;
};
/// The first instructions of the layer that takes most cycles.
struct AcceleratorOccupancy {
  std::string title;  ///< layer, model, accelerator, sizes, mapping
  std::vector<std::string> objects;
  std::vector<OccupiedObject> shown;
  double instructions = 0;  ///< of the layer
  double cycles = 1;        ///< at which the last one shown ends
  double clock_hz = 1;
};
AcceleratorOccupancy accelerator_occupancy(const ModelRef& model, const std::string& spec,
                                           const Request& request,
                                           const AcceleratorOptions& options);
/// As "text", "svg" or "perfetto" (Chrome's trace format; a cycle is shown as a microsecond).
std::string occupancy_picture(const AcceleratorOccupancy& occupancy, const std::string& format);

/// Measured cycles of layers under given mappings: the files of shared/data/accelerators. nullopt
/// if the file has another layout.
struct AcceleratorEvaluation {
  std::string file, accelerator;
  int64_t rows = 0, left_out = 0;
  double mape_percent = 0, median_percent = 0, p90_percent = 0, bias_ratio = 0;
  std::optional<double> rank_correlation;  ///< mean over layers with five mappings or more
  /// Leave one layer out: `fitted` parameters are fitted again without each layer.
  double held_out_mape_percent = 0, held_out_median_percent = 0;
  std::vector<std::string> fitted;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorEvaluation", "Forecast against measured cycles of one file.");
    field("file", "", "its name", &AcceleratorEvaluation::file);
    field("gpu", "", "id of the accelerator", &AcceleratorEvaluation::accelerator);
    field("count", "", "rows that were compared", &AcceleratorEvaluation::rows);
    field("left_out", "", "rows that were not", &AcceleratorEvaluation::left_out);
    field("mape_percent", "%", "mean absolute error", &AcceleratorEvaluation::mape_percent);
    field("median_percent", "%", "median of the absolute errors",
          &AcceleratorEvaluation::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors",
          &AcceleratorEvaluation::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured",
          &AcceleratorEvaluation::bias_ratio);
    field("rank_correlation", "",
          "mean over layers with five mappings or more; null: there are none",
          &AcceleratorEvaluation::rank_correlation);
    field("held_out_mape_percent", "%",
          "the same with the fitted parameters fitted again without each layer",
          &AcceleratorEvaluation::held_out_mape_percent);
    field("held_out_median_percent", "%",
          "the same with the fitted parameters fitted again without each layer",
          &AcceleratorEvaluation::held_out_median_percent);
    field("fitted", "", "parameters that were fitted", &AcceleratorEvaluation::fitted);
  }
};
struct AcceleratorEvaluations {
  std::vector<AcceleratorEvaluation> accelerators;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorEvaluations", "Errors of accelerators.");
    field("schema_version", "", "of this schema", [](const AcceleratorEvaluations&) { return 1; });
    field("accelerators", "", "one entry for each file", &AcceleratorEvaluations::accelerators);
  }
};
/// `accelerator`: what they were measured on; "": that whose id begins the name of the file.
std::optional<std::vector<AcceleratorEvaluation>> evaluate_accelerators(
    const std::string& path, const std::string& accelerator = "");
std::string accelerator_evaluation_table(const std::vector<AcceleratorEvaluation>& files,
                                         const TableStyle& style);

/// Runs all combinations of a sweep's lists; see docs/explanation/accelerators.md. Results are
/// appended to `output` (CSV) as they are computed; those that are there already are not computed
/// again.
struct SweepResult {
  std::string pareto_front;           ///< lines of the output
  std::vector<std::string> warnings;  ///< about combinations that failed
};
SweepResult run_sweep(const std::string& spec_file, const std::string& output, int64_t threads);

}  // namespace tilecast
