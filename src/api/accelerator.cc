// Forecasts of a forward pass on an accelerator: model → graph → kernels → layers → mapping →
// instructions → cycles.

#include "tilecast/accelerator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "accelerator/tiling.h"
#include "api/accelerator_pass.h"
#include "api/internal.h"
#include "api/pass.h"
#include "base/checked.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using accelerator::Design;
using accelerator::Layer;
using accelerator::MappedLayer;

/// Graphs of configurations are built with it; the accelerator's own widths count.
constexpr DType kGraphDType = DType::kFp16;

std::string sizes_text(const Layer& layer) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < accelerator::kDimCount; ++i)
    if (layer.sizes[i] > 1)
      parts.push_back(fmt::format("{} {}", accelerator::kDimNames[i], layer.sizes[i]));
  if (layer.stride > 1) parts.push_back(fmt::format("stride {}", layer.stride));
  return join(parts, ", ");
}

double energy_of(const accelerator::Machine& machine, const accelerator::NestTime& time) {
  double joule = 0;
  for (size_t i = 0; i < machine.memories.size(); ++i)
    joule +=
        static_cast<double>(time.activity.memory_bytes[i]) * machine.memories[i].energy_per_byte_j;
  for (size_t i = 0; i < machine.units.size(); ++i) joule += time.activity.unit_energy_j[i];
  return joule;
}

AcceleratorLayer row_of(const Design& design, const MappedLayer& mapped) {
  const accelerator::NestTime& time = mapped.time;
  AcceleratorLayer row{.where = "accelerator",
                       .mapping = mapping_text(mapped.mapping, mapped.layer),
                       .cycles = time.cycles,
                       .low_cycles = time.low_cycles,
                       .high_cycles = time.high_cycles,
                       .converged = time.converged,
                       .instructions = time.instructions,
                       .evaluated = time.evaluated};
  const accelerator::Machine& machine = design.machine;
  row.macs = mapped.layer.kind == accelerator::LayerKind::kElementwise ? 0 : mapped.layer.macs();
  row.bound = bound_of(machine, time);
  row.energy_j = energy_of(machine, time);
  const double ticks = time.cycles * static_cast<double>(accelerator::kTicksPerCycle);
  for (size_t i = 0; i < machine.units.size(); ++i)
    row.use.push_back(
        {machine.units[i].name, static_cast<double>(time.activity.unit_busy[i]) / ticks});
  for (size_t i = 0; i < machine.memories.size(); ++i) {
    row.use.push_back(
        {machine.memories[i].name, static_cast<double>(time.activity.memory_busy[i]) / ticks});
    if (machine.memories[i].type == "dram") row.bytes += time.activity.memory_bytes[i];
  }
  return row;
}

AcceleratorLayer host_row(const Design& design, const PassLayer& layer) {
  if (!design.host)
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("'{}': {} does not run the operator '{}', and its description states no "
                    "host that would ('host': {{\"bytes_per_cycle\": …}})",
                    shown_name(layer.name), design.id, layer.op));
  const double elements =
      static_cast<double>(layer.bytes) / static_cast<double>(layer.elements_bytes);
  const double element_bytes = design.flow.buffers.front().element_bytes;
  const auto bytes = static_cast<int64_t>(elements * element_bytes);
  AcceleratorLayer row{.where = "host", .bytes = bytes, .bound = "host"};
  row.cycles = static_cast<double>(bytes) / design.host->bytes_per_cycle;
  row.low_cycles = row.high_cycles = row.cycles;
  return row;
}

}  // namespace

void check_runs_on_accelerators(const Request& request) {
  if (request.kind != RequestKind::kPass || request.mode != Mode::kInference)
    throw Error(ErrorKind::kUnsupported,
                "accelerators run forward passes only: leave out `mode` training and `prompt`");
  const Request defaults;
  for (const OptionDef& option : request_options()) {
    if ((option.kinds & kPasses) == 0) continue;
    if (option.name == "batch" || option.name == "seq") continue;
    if (option.access.get(request, option) == option.access.get(defaults, option)) continue;
    throw Error(ErrorKind::kUnsupported,
                fmt::format("`{}` has no effect on an accelerator: its description states its data "
                            "types and how layers run; leave it out",
                            option.name));
  }
}

std::vector<PassLayer> pass_layers(const ModelRef& model_ref, const Request& request) {
  const Model& model = model_ref.content->model;
  check_runs_on_accelerators(request);
  const int64_t seq = request.seq.value_or(std::max<int64_t>(1, model.default_seq));
  Graph graph = model.build({.batch = request.batch, .seq = seq, .dtype = kGraphDType});
  if (model.has_modules) graph = decompose(std::move(graph), {});
  const Program program = lower(graph);
  std::vector<PassLayer> layers;
  for (const Launch& launch : program.launches) {
    const Kernel& kernel = program.kernels[launch.kernel];
    PassLayer layer{.name = launch.node->name,
                    .op = op_def(kernel.op).name,
                    .layer = layer_of(kernel, *launch.node),
                    .bytes = kernel.bytes(),
                    .elements_bytes = std::max<int64_t>(1, dtype_bits(kernel.dtype) / 8),
                    .count = program.count(launch)};
    const auto same = std::find_if(layers.begin(), layers.end(), [&](const PassLayer& other) {
      return other.op == layer.op && other.bytes == layer.bytes &&
             other.layer.has_value() == layer.layer.has_value() &&
             (!layer.layer || (layer.layer->layer == other.layer->layer &&
                               layer.layer->repeat == other.layer->repeat));
    });
    if (same == layers.end())
      layers.push_back(std::move(layer));
    else
      same->count += layer.count;
  }
  return layers;
}

std::string bound_of(const accelerator::Machine& machine, const accelerator::NestTime& time) {
  const double ticks = time.cycles * static_cast<double>(accelerator::kTicksPerCycle);
  double most = 0.5 * ticks;
  std::string bound = "dependency";
  const auto consider = [&](accelerator::Ticks busy, const char* name) {
    if (static_cast<double>(busy) <= most) return;
    most = static_cast<double>(busy);
    bound = name;
  };
  for (const accelerator::Ticks busy : time.activity.fetch_busy) consider(busy, "fetch");
  for (size_t i = 0; i < machine.memories.size(); ++i)
    if (machine.memories[i].type != "sram") consider(time.activity.memory_busy[i], "memory");
  for (size_t i = 0; i < machine.units.size(); ++i) {
    const accelerator::Unit& unit = machine.units[i];
    const bool stores = std::any_of(unit.writes.begin(), unit.writes.end(), [&](int memory) {
      return machine.memories[static_cast<size_t>(memory)].type != "sram";
    });
    consider(time.activity.unit_busy[i], !unit.accesses_memory ? "compute"
                                         : stores              ? "store"
                                                               : "load");
  }
  return bound;
}

MappedLayer map_pass_layer(const PassLayer& layer, const Design& design,
                           const AcceleratorOptions& options) {
  const accelerator::EvaluationLimits limits{.exact = options.exact};
  const Layer& given = layer.layer->layer;
  if (options.mapping.empty()) return map_layer(design, given, {.limits = limits});
  const std::string where = fmt::format("`mapping` for layer '{}'", shown_name(layer.name));
  const Layer run = accelerator::as_run(given, design.flow);
  return run_mapping(design, given, accelerator::parse_mapping(options.mapping, run, where), limits,
                     where);
}

AcceleratorForecast time_layers(const std::vector<PassLayer>& layers, const Design& design,
                                const AcceleratorOptions& options) {
  AcceleratorForecast forecast;
  for (const PassLayer& layer : layers) {
    const bool runs = layer.layer && design.flow.runs(layer.layer->layer.kind);
    AcceleratorLayer row;
    if (runs)
      row = row_of(design, map_pass_layer(layer, design, options));
    else
      row = host_row(design, layer);
    row.name = layer.name;
    row.op = layer.op;
    row.count = layer.count * (runs ? layer.layer->repeat : 1);
    if (layer.layer) row.sizes = sizes_text(layer.layer->layer);
    const auto count = static_cast<double>(row.count);
    forecast.cycles += row.cycles * count;
    forecast.low_cycles += row.low_cycles * count;
    forecast.high_cycles += row.high_cycles * count;
    if (!runs) forecast.host_cycles += row.cycles * count;
    forecast.macs = checked_add(forecast.macs, checked_multiply(row.macs, row.count));
    forecast.energy_j += row.energy_j * count;
    forecast.instructions += row.instructions * count;
    forecast.evaluated += row.evaluated;
    forecast.layers.push_back(std::move(row));
  }
  return forecast;
}

bool is_accelerator(const std::string& spec) { return accelerator::names_accelerator(spec); }
std::vector<std::string> accelerator_ids() { return accelerator::bundled_accelerators(); }

AcceleratorForecast forecast_accelerator(const ModelRef& model, const std::string& spec,
                                         const Request& request,
                                         const AcceleratorOptions& options) {
  const accelerator::ParameterValues values(options.parameters.begin(), options.parameters.end());
  const Design design = accelerator::open_accelerator(spec, values);
  AcceleratorForecast forecast = time_layers(pass_layers(model, request), design, options);
  forecast.model = model.name();
  forecast.accelerator = design.id;
  forecast.accelerator_name = design.name;
  for (const accelerator::Parameter& parameter : design.machine.parameters)
    forecast.parameters.emplace_back(parameter.name, parameter.value);
  forecast.dataflow = design.flow.name;
  forecast.operand_dtype = design.operand_dtype;
  forecast.accumulator_dtype = design.accumulator_dtype;
  forecast.batch = request.batch;
  forecast.seq = request.seq.value_or(std::max<int64_t>(1, model.content->model.default_seq));
  forecast.clock_hz = design.machine.clock_hz;
  forecast.pe_count = design.machine.pe_count();
  forecast.on_chip_bytes = design.on_chip_bytes();
  forecast.has_energy = forecast.energy_j > 0;
  std::vector<std::string> host;
  for (const AcceleratorLayer& layer : forecast.layers)
    if (layer.where == "host" && std::find(host.begin(), host.end(), layer.op) == host.end())
      host.push_back(layer.op);
  if (!host.empty())
    forecast.warnings.push_back(fmt::format("the host core runs {}: {:.0f} % of the cycles",
                                            join(host, ", "),
                                            100 * forecast.host_cycles / forecast.cycles));
  const auto open = std::count_if(forecast.layers.begin(), forecast.layers.end(),
                                  [](const AcceleratorLayer& layer) { return !layer.converged; });
  if (open > 0)
    forecast.warnings.push_back(fmt::format(
        "{} layers did not reach a fixed point: the interval states by how much they may be wrong, "
        "--exact runs all instructions",
        open));
  return forecast;
}

}  // namespace tilecast
