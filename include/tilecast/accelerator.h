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
  int64_t evaluated = 0;  ///< instructions that were run to know the rest
  int64_t macs = 0;       ///< of one, the host's included
  int64_t bytes = 0;      ///< moved to and from memory outside the chip
  double energy_j = 0;
  std::string bound;  ///< "compute", "load", "store", "memory", "fetch", "dependency" or "host"
  std::vector<ObjectUse> use;
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
std::string accelerator_json(const AcceleratorForecast& forecast);
std::string accelerator_csv(const AcceleratorForecast& forecast);
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
};
/// `accelerator`: what they were measured on; "": that whose id begins the name of the file.
std::optional<std::vector<AcceleratorEvaluation>> evaluate_accelerators(
    const std::string& path, const std::string& accelerator = "");
std::string accelerator_evaluation_table(const std::vector<AcceleratorEvaluation>& files,
                                         const TableStyle& style);
std::string accelerator_evaluation_json(const std::vector<AcceleratorEvaluation>& files);

/// Runs all combinations of a sweep's lists; see docs/explanation/accelerators.md. Results are
/// appended to `output` (CSV) as they are computed; those that are there already are not computed
/// again.
struct SweepResult {
  std::string pareto_front;           ///< lines of the output
  std::vector<std::string> warnings;  ///< about combinations that failed
};
SweepResult run_sweep(const std::string& spec_file, const std::string& output, int64_t threads);

}  // namespace tilecast
