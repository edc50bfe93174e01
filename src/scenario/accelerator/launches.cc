// From a model to the launches of its forward pass, and what a dataflow makes of each: a layer of
// its own, a part of the store of the layer before it, or work of the host.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "base/text.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "scenario/accelerator/accelerator_scenario.h"
#include "scenario/accelerator/pass.h"
#include "scenario/internal.h"
#include "scenario/pass/pass.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using accelerator::Layer;
using accelerator::LayerKind;

/// Graphs of configurations are built with it; the accelerator's own widths count.
constexpr DType kGraphDType = DType::kFp16;
constexpr size_t kNone = static_cast<size_t>(-1);

/// For each launch, the one that reads its output, if there is only one.
class Links {
 public:
  Links(const Graph& graph, const Program& program)
      : graph_(graph), next_(program.launches.size(), kNone), before_(next_) {
    std::map<TensorId, size_t> maker;  // launch, by storage
    std::map<TensorId, int> readers;   // nodes, by storage
    for (const Launch& launch : program.launches)
      for (const TensorId id : read_by(launch)) ++readers[id];
    for (const TensorId id : graph.outputs) ++readers[graph.tensor(id).storage];
    for (const Segment& segment : graph.segments)
      for (const Carry& carry : segment.carries) ++readers[graph.tensor(carry.next).storage];
    for (size_t i = 0; i < program.launches.size(); ++i) {
      const Launch& launch = program.launches[i];
      std::vector<size_t> makers;
      for (const TensorId id : read_by(launch))
        if (const auto it = maker.find(id); it != maker.end())
          makers.push_back(readers[id] == 1 ? it->second : kNone);
      if (makers.size() == 1 && makers[0] != kNone &&
          program.launches[makers[0]].block == launch.block) {
        before_[i] = makers[0];
        next_[makers[0]] = i;
      }
      for (const TensorId id : launch.node->outputs) maker[graph.tensor(id).storage] = i;
    }
  }
  size_t before(size_t launch) const { return before_[launch]; }
  size_t next(size_t launch) const { return next_[launch]; }

 private:
  /// Storages of the inputs, each once. A view launches nothing.
  std::vector<TensorId> read_by(const Launch& launch) const {
    std::vector<TensorId> ids;
    for (const TensorId id : launch.node->inputs) {
      const TensorId storage = graph_.tensor(id).storage;
      if (std::find(ids.begin(), ids.end(), storage) == ids.end()) ids.push_back(storage);
    }
    return ids;
  }

  const Graph& graph_;
  std::vector<size_t> next_, before_;
};

bool is_pointwise(const std::optional<KernelLayer>& layer) {
  return layer &&
         (layer->layer.kind == LayerKind::kElementwise || layer->layer.kind == LayerKind::kPooling);
}

/// The neighbours that can share a store: pointwise layers and poolings, and what they begin with.
void add_neighbours(std::vector<PassLayer>& launches, const Links& links) {
  constexpr size_t kMost = 8;
  const auto linked = [&](size_t i) { return LinkedLaunch{launches[i].op, launches[i].layer}; };
  for (size_t i = 0; i < launches.size(); ++i) {
    PassLayer& launch = launches[i];
    for (size_t at = i; is_pointwise(launches[at].layer) && links.before(at) != kNone;) {
      at = links.before(at);
      launch.before.insert(launch.before.begin(), linked(at));
      if (launch.before.size() == kMost) break;
    }
    for (size_t at = links.next(i); at != kNone && is_pointwise(launches[at].layer);
         at = links.next(at)) {
      launch.after.push_back(linked(at));
      if (launch.after.size() == kMost) break;
    }
  }
}

/// Follows a chain of launches: where each one runs, and what the store of the last layer applies.
class Chain {
 public:
  explicit Chain(const accelerator::Dataflow& flow) : flow_(flow) {}
  Placed::Where add(std::string_view op, const std::optional<KernelLayer>& layer) {
    if (started_ && placed_.where != Placed::Where::kHost && flow_.applies(op) && applies(layer))
      return Placed::Where::kStore;
    started_ = true;
    placed_ = {};
    if (!layer || !flow_.runs(layer->layer.kind)) return placed_.where;
    placed_ = {.where = Placed::Where::kAccelerator, .layer = *layer, .fused = {}};
    return placed_.where;
  }
  const Placed& placed() const { return placed_; }

 private:
  /// A pooling needs the rows and columns of the layer whose store applies it.
  bool applies(const std::optional<KernelLayer>& layer) {
    if (!layer || layer->layer.kind == LayerKind::kElementwise) return layer.has_value();
    if (layer->layer.kind != LayerKind::kPooling || flow_.flattens) return false;
    Layer& carrier = placed_.layer.layer;
    const Layer& pool = layer->layer;
    const bool has_rows =
        carrier.kind == LayerKind::kProduct || carrier.kind == LayerKind::kDepthwise;
    if (!has_rows || placed_.layer.repeat != 1 || carrier.pool_elements != 1 ||
        carrier.sizes[1] != pool.sizes[1] || carrier.sizes[0] != pool.sizes[0])
      return false;
    carrier.pool_elements = pool.sizes[5] * pool.sizes[6];
    carrier.pool_stride = pool.stride;
    return true;
  }

  const accelerator::Dataflow& flow_;
  bool started_ = false;
  Placed placed_;
};

bool is_of_ranks(const std::string& option) {
  constexpr std::string_view kOptions[] = {"cluster", "nodes", "dp", "tp", "pp", "cp", "ep"};
  return std::find(std::begin(kOptions), std::end(kOptions), option) != std::end(kOptions);
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
                fmt::format("`{}` has no effect on an accelerator: {}; leave it out", option.name,
                            is_of_ranks(option.name)
                                ? "a pass is forecast on one, clusters are of GPUs"
                                : "its description states its data types and how layers run"));
  }
}

std::vector<PassLayer> pass_launches(const ModelRef& model_ref, const Request& request) {
  const Model& model = model_ref.content->model;
  check_runs_on_accelerators(request);
  const int64_t seq = request.seq.value_or(std::max<int64_t>(1, model.default_seq));
  check_model(model, request, seq);
  Graph graph = model.build({.batch = request.batch, .seq = seq, .dtype = kGraphDType});
  if (model.has_modules) graph = decompose(std::move(graph), {});
  const Program program = lower(graph);
  std::vector<PassLayer> launches;
  for (const Launch& launch : program.launches) {
    const Kernel& kernel = program.kernels[launch.kernel];
    launches.push_back({.name = launch.node->name,
                        .op = op_def(kernel.op).name,
                        .layer = layer_of(kernel, *launch.node, graph),
                        .bytes = kernel.bytes(),
                        .macs = macs_of(kernel),
                        .elements_bytes = std::max<int64_t>(1, dtype_bits(kernel.dtype) / 8),
                        .count = program.count(launch)});
  }
  add_neighbours(launches, Links(graph, program));
  return launches;
}

bool same_mapping(const PassLayer& a, const PassLayer& b) {
  return a.mapping == b.mapping && a.mapping_by_name == b.mapping_by_name &&
         (!a.mapping_by_name || a.name == b.name);
}

std::vector<PassLayer> merge_equal(std::vector<PassLayer> launches) {
  std::vector<PassLayer> merged;
  for (PassLayer& launch : launches) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const PassLayer& other) {
      return other.op == launch.op && other.bytes == launch.bytes && other.layer == launch.layer &&
             other.before == launch.before && other.after == launch.after &&
             same_mapping(other, launch);
    });
    if (same == merged.end())
      merged.push_back(std::move(launch));
    else
      same->count += launch.count;
  }
  return merged;
}

Placed place(const PassLayer& layer, const accelerator::Dataflow& flow) {
  Chain chain(flow);
  for (const LinkedLaunch& launch : layer.before) chain.add(launch.op, launch.layer);
  const Placed::Where where = chain.add(layer.op, layer.layer);
  if (where != Placed::Where::kAccelerator) return {.where = where, .layer = {}, .fused = {}};
  Placed placed = chain.placed();
  for (const LinkedLaunch& launch : layer.after) {
    if (chain.add(launch.op, launch.layer) != Placed::Where::kStore) break;
    placed.layer = chain.placed().layer;
    placed.fused.emplace_back(launch.op);
  }
  return placed;
}

accelerator::Design open_design(const std::string& spec, const AcceleratorOptions& options) {
  const accelerator::ParameterValues values(options.parameters.begin(), options.parameters.end());
  accelerator::Design design = accelerator::open_accelerator(spec, values);
  for (const std::string& op : design.flow.store_applies) {
    const auto& table = op_table();
    if (std::any_of(table.begin(), table.end(), [&](const OpDef& def) { return def.name == op; }))
      continue;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: dataflow '{}': store_applies: unknown operator '{}'; 'tilecast "
                            "ops' lists them",
                            design.machine.where, design.flow.name, shown_name(op)));
  }
  return design;
}

}  // namespace tilecast
