// Forecasts of a forward pass on an accelerator: model → graph → kernels → layers → mapping →
// instructions → cycles.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "accelerator/tiling.h"
#include "base/checked.h"
#include "base/text.h"
#include "scenario/accelerator/accelerator_scenario.h"
#include "scenario/accelerator/mappings.h"
#include "scenario/accelerator/pass.h"
#include "scenario/internal.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

using accelerator::Design;
using accelerator::Layer;
using accelerator::MappedLayer;

double energy_of(const accelerator::Machine& machine, const accelerator::NestTime& time) {
  double joule = 0;
  for (size_t i = 0; i < machine.memories.size(); ++i)
    joule += static_cast<double>(time.activity.memory_bytes[i]) *
             machine.memories[i].energy_per_byte_j.value_or(0);
  for (size_t i = 0; i < machine.units.size(); ++i) joule += time.activity.unit_energy_j[i];
  return joule;
}

AcceleratorLayer row_of(const Design& design, const MappedLayer& mapped) {
  const accelerator::NestTime& time = mapped.time;
  AcceleratorLayer row{.where = "accelerator",
                       .mapping = mapping_text(mapped.mapping, mapped.layer),
                       .cycles = {time.cycles, time.low_cycles, time.high_cycles},
                       .converged = time.converged,
                       .instructions = time.instructions,
                       .evaluated = time.evaluated};
  const accelerator::Machine& machine = design.machine;
  if (mapped.layer.kind == accelerator::LayerKind::kProduct ||
      mapped.layer.kind == accelerator::LayerKind::kDepthwise)
    row.macs = mapped.layer.macs();
  row.bound = bound_of(machine, time);
  if (machine.states_energy()) row.energy_j = energy_of(machine, time);
  const double ticks = time.cycles * static_cast<double>(accelerator::kTicksPerCycle);
  for (size_t i = 0; i < machine.units.size(); ++i)
    row.use.push_back({printable(machine.units[i].name),
                       static_cast<double>(time.activity.unit_busy[i]) / ticks});
  for (size_t i = 0; i < machine.memories.size(); ++i) {
    row.use.push_back({printable(machine.memories[i].name),
                       static_cast<double>(time.activity.memory_busy[i]) / ticks});
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
  AcceleratorLayer row{.where = "host", .macs = layer.macs, .bytes = bytes, .bound = "host"};
  const double cycles = static_cast<double>(bytes) / design.host->bytes_per_cycle +
                        static_cast<double>(layer.macs) / design.host->macs_per_cycle;
  row.cycles = {cycles, cycles, cycles};
  if (design.machine.states_energy()) row.energy_j = 0;
  return row;
}

}  // namespace

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

MappedLayer map_pass_layer(const PassLayer& layer, const Placed& placed, const Design& design,
                           const AcceleratorOptions& options, accelerator::NestTimes* times) {
  const accelerator::EvaluationLimits limits{.exact = options.exact};
  const Layer& given = placed.layer.layer;
  const std::string& text = layer.mapping.empty() ? options.mapping : layer.mapping;
  if (text.empty())
    return map_layer(design, given,
                     {.limits = limits,
                      .where = fmt::format("layer '{}'", shown_name(layer.name)),
                      .times = times});
  const std::string where =
      layer.mapping.empty()
          ? fmt::format("`mapping` for layer '{}'", shown_name(layer.name))
          : fmt::format("{}: layer '{}'", printable(options.mapping_file), shown_name(layer.name));
  const Layer run = accelerator::as_run(given, design.flow);
  return run_mapping(design, given, accelerator::parse_mapping(text, run, where), limits, where);
}

namespace {

/// The row of a layer, or of several that differ only in what follows them.
AcceleratorLayer row_of(const PassLayer& layer, const Placed& placed, const Design& design,
                        const AcceleratorOptions& options, accelerator::NestTimes* times) {
  AcceleratorLayer row;
  if (placed.where == Placed::Where::kAccelerator)
    row = row_of(design, map_pass_layer(layer, placed, design, options, times));
  else if (placed.where == Placed::Where::kHost)
    row = host_row(design, layer);
  else
    row = {.where = "store", .bound = "store"};
  row.name = layer.name;
  row.op = layer.op;
  row.fused = placed.fused;
  row.mapping_by_name = layer.mapping_by_name;
  if (layer.layer) {
    const bool runs = placed.where == Placed::Where::kAccelerator;
    const Layer& shown = runs ? placed.layer.layer : layer.layer->layer;
    row.kind = layer_kind_name(shown.kind);
    row.sizes = layer_sizes_text(shown);
  }
  return row;
}

/// Properties that two launches must share to be one row.
bool same_row(const AcceleratorLayer& row, const PassLayer& timed, const PassLayer& layer,
              const Placed& a, const Placed& b) {
  return row.op == layer.op && a.where == b.where && a.layer == b.layer && a.fused == b.fused &&
         timed.bytes == layer.bytes && timed.layer == layer.layer && same_mapping(timed, layer);
}

}  // namespace

AcceleratorForecast time_layers(const std::vector<PassLayer>& layers, const Design& design,
                                const AcceleratorOptions& options, accelerator::NestTimes* times) {
  AcceleratorForecast forecast{.has_energy = design.machine.states_energy()};
  std::vector<std::pair<const PassLayer*, Placed>> timed;  // by row
  for (const PassLayer& layer : layers) {
    Placed placed = place(layer, design.flow);
    size_t at = 0;
    while (at < timed.size() &&
           !same_row(forecast.layers[at], *timed[at].first, layer, timed[at].second, placed))
      ++at;
    if (at == timed.size()) {
      forecast.layers.push_back(row_of(layer, placed, design, options, times));
      forecast.layers.back().count = 0;
      forecast.evaluated += forecast.layers.back().evaluated;
      timed.emplace_back(&layer, placed);
    }
    forecast.layers[at].count += layer.count * std::max<int64_t>(1, placed.layer.repeat);
  }
  for (const AcceleratorLayer& row : forecast.layers) {
    const auto count = static_cast<double>(row.count);
    const int64_t macs = checked_multiply(row.macs, row.count);
    forecast.cycles.value += row.cycles * count;
    forecast.cycles.low += row.cycles.low * count;
    forecast.cycles.high += row.cycles.high * count;
    forecast.macs = checked_add(forecast.macs, macs);
    forecast.energy_j += row.energy_j.value_or(0) * count;
    forecast.instructions += row.instructions * count;
    if (row.where != "host") continue;
    forecast.host_cycles += row.cycles * count;
    forecast.host_macs = checked_add(forecast.host_macs, macs);
  }
  return forecast;
}

std::vector<std::string> accelerator_ids() { return accelerator::bundled_accelerators(); }

std::string timing_key(const AcceleratorRef& device) {
  return accelerator::timing_key(open_design(device.spec, device.options));
}

namespace {

/// `layers`: the layers of the pass, shared with other designs; nullptr: they are made here. A file
/// of mappings has its own layers.
AcceleratorForecast time_pass_on(const Design& design, const ModelRef& model,
                                 const Request& request, const AcceleratorOptions& options,
                                 SharedLayers* layers) {
  if (layers != nullptr && options.mapping_file.empty())
    return time_layers(layers->of(model, request), design, options,
                       layers->times().of(design).get());
  std::vector<PassLayer> launches = pass_launches(model, request);
  if (!options.mapping_file.empty()) assign_mappings(launches, design, options);
  return time_layers(merge_equal(std::move(launches)), design, options);
}

AcceleratorForecast forecast_on(const AcceleratorRef& target, const ModelRef& model,
                                const Request& request, SharedLayers* layers) {
  const Design design = open_design(target.spec, target.options);
  AcceleratorForecast forecast = time_pass_on(design, model, request, target.options, layers);
  forecast.model = model.name();
  forecast.accelerator = design.id;
  forecast.accelerator_name = design.name;
  for (const accelerator::Parameter& parameter : design.machine.parameters)
    forecast.parameters.emplace_back(printable(parameter.name), parameter.value);
  forecast.dataflow = design.flow.name;
  forecast.operand_dtype = design.operand_dtype;
  forecast.accumulator_dtype = design.accumulator_dtype;
  forecast.batch = request.batch;
  forecast.seq = request.seq.value_or(std::max<int64_t>(1, model.content->model.default_seq));
  if (!model.content->model.fixed_seq) forecast.input = "seq " + format_integer(forecast.seq);
  forecast.clock_hz = design.machine.clock_hz;
  forecast.pe_count = design.machine.pe_count();
  forecast.on_chip_bytes = design.on_chip_bytes();
  std::vector<std::string> host;
  for (const AcceleratorLayer& layer : forecast.layers)
    if (layer.where == "host" && std::find(host.begin(), host.end(), layer.op) == host.end())
      host.push_back(layer.op);
  if (!host.empty())
    forecast.warnings.push_back(fmt::format(
        "the host core runs {}: {:.0f} % of the cycles, {:.0f} % of the MACs", join(host, ", "),
        100 * forecast.host_cycles / forecast.cycles,
        forecast.macs > 0
            ? 100 * static_cast<double>(forecast.host_macs) / static_cast<double>(forecast.macs)
            : 0));
  const auto open = std::count_if(forecast.layers.begin(), forecast.layers.end(),
                                  [](const AcceleratorLayer& layer) { return !layer.converged; });
  if (open > 0)
    forecast.warnings.push_back(fmt::format(
        "{} layers did not reach a fixed point: the interval states by how much they may be wrong, "
        "--exact runs all instructions",
        open));
  return forecast;
}

}  // namespace

AcceleratorForecast forecast_accelerator(const ModelRef& model, const std::string& spec,
                                         const Request& request,
                                         const AcceleratorOptions& options) {
  check_runs_on_accelerators(request);
  return forecast_on({spec, options}, model, request, nullptr);
}

Result run_accelerator(const Inquiry& inquiry) {
  return forecast_on(*inquiry.accelerator(), inquiry.model, inquiry.request, inquiry.layers);
}

}  // namespace tilecast
