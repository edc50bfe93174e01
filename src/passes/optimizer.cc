#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "passes/main_gradients.h"
#include "passes/optimizer_steps.h"
#include "passes/passes.h"

namespace tilecast {

namespace {

/// Parameters that are updated together, or alike one after the other.
struct Group {
  Optimizer optimizer = Optimizer::kNone;
  DType dtype = DType::kFp32;
  Shape shape;                  ///< of one update
  int64_t updates = 1;          ///< one after the other
  int64_t elements_before = 0;  ///< of the parameter before, at most
};

/// torch.optim.Muon takes matrices only: its users give embeddings, the output layer, norms and
/// biases to AdamW (github.com/KellerJordan/Muon; Megatron-LM, core/optimizer/muon.py).
Optimizer optimizer_of(const Tensor& weight, Optimizer asked) {
  return asked == Optimizer::kMuon && !weight.hidden_matrix ? Optimizer::kAdamW : asked;
}

bool updates_alone(Optimizer optimizer, OptimizerImpl impl) {
  const bool torch_lists = optimizer == Optimizer::kSgd || optimizer == Optimizer::kAdam ||
                           optimizer == Optimizer::kAdamW;
  return !torch_lists || impl == OptimizerImpl::kForLoop;
}

bool updates_matrices(Optimizer optimizer) {
  return optimizer == Optimizer::kMuon || optimizer == Optimizer::kAdafactor;
}

/// All parameters of a dtype are updated together, in the order of the dtypes; or each is updated
/// alone, parameters of one size next to each other.
std::vector<Group> groups_of(const Graph& graph, const OptimizerStep& step) {
  using Key = std::tuple<Optimizer, DType, Shape>;
  std::map<Key, Group> groups;
  int64_t before = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight || tensor.frozen) continue;
    const Optimizer optimizer = optimizer_of(tensor, step.optimizer);
    const bool alone = updates_alone(optimizer, step.impl);
    // Divided by all shards below.
    const bool fewer = step.shards > 1 && is_expert_weight(tensor);
    const int64_t own = element_count(tensor.shape);
    const int64_t elements =
        fewer ? std::llround(static_cast<double>(own) * step.expert_ranks) : own;
    const int64_t repeat = graph.repeat_of(tensor.segment);
    Shape shape = {elements};
    if (updates_matrices(optimizer) && !tensor.shape.empty()) shape = tensor.shape;
    Group& group = groups[{optimizer, tensor.dtype, alone ? shape : Shape{}}];
    const bool fresh = group.shape.empty();
    group.optimizer = optimizer;
    group.dtype = tensor.dtype;
    group.elements_before = std::max(group.elements_before, before);
    before = own;
    if (alone) {
      group.updates = fresh ? repeat : checked_add(group.updates, repeat);
      group.shape = std::move(shape);
    } else {
      const int64_t all = checked_multiply(elements, repeat);
      group.shape = {fresh ? all : checked_add(group.shape[0], all)};
    }
  }
  std::vector<Group> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

/// Muon's are updated before those of the AdamW beside it.
bool comes_before(const Group& a, const Group& b) { return a.optimizer > b.optimizer; }

/// What the 256 codes of both 8-bit states stand for (create_dynamic_map), once for all parameters.
void add_code_tables(GraphBuilder& builder) {
  constexpr int64_t kCodes = 256;
  for (const char* name : {"qmap1", "qmap2"})
    builder.tensor({.name = name, .shape = {kCodes}, .kind = TensorKind::kOptimizer});
}

}  // namespace

void accumulate_in_fp32(Graph& graph) {
  std::vector<bool> wide(graph.tensors.size(), false);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    Tensor& tensor = graph.tensors[i];
    if (tensor.kind != TensorKind::kGradient || tensor.dtype != DType::kBf16) continue;
    tensor.dtype = DType::kFp32;
    wide[i] = true;
  }
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty() || !wide[static_cast<size_t>(node.inputs[0])]) continue;
    for (const TensorId id : node.outputs) graph.tensor(id).dtype = DType::kFp32;
  }
  validate_if_debug(graph);
}

void add_optimizer(Graph& graph, const OptimizerStep& step) {
  if (step.optimizer == Optimizer::kNone) return;
  std::vector<Group> groups = groups_of(graph, step);
  std::stable_sort(groups.begin(), groups.end(), comes_before);
  GraphBuilder builder(graph);
  bool together = false;  // in one segment
  bool tables = false;
  for (Group& group : groups) {
    const bool main = step.main_params == MainParams::kFp32 && dtype_bits(group.dtype) < 32;
    const bool alone = updates_alone(group.optimizer, step.impl);
    if (step.shards > 1) group.shape = {ceil_divide(element_count(group.shape), step.shards)};
    tables = tables || has_8bit_states(group.optimizer, group.shape);
    if (alone || !together) builder.begin_segment("optimizer", group.updates);
    together = !alone;
    OptimizerSteps steps(graph, group.dtype, group.shape);
    if (group.optimizer == Optimizer::kAdafactor) steps.set_elements_before(group.elements_before);
    if (step.scaled_gradients) steps.unscale();
    if (step.on_host) {
      steps.on_host(step.main_params);
    } else if (main) {
      steps.on_main_copies(group.optimizer, step.impl);
    } else {
      steps.run(group.optimizer, step.impl);
    }
  }
  if (tables) add_code_tables(builder);
  validate_if_debug(graph);
}

}  // namespace tilecast
