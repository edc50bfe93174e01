// Kernels as torch.compile's Inductor makes them. A group of operators becomes one kernel:
// pointwise ones, batch norm with stored statistics, casts, copies and concatenations of few
// tensors, with at most one softmax, norm or sum among them. Sources: torch/_inductor/scheduler.py
// (what fuses), lowering.py (what is pointwise), graph.py (decide_layout_opt), all of PyTorch 2.4.
//
// Groups have levels: a group is one level above the highest group that it reads. An operator joins
// a group only if all else that it reads is of a lower level, so that no kernel waits for itself.
//
// Not modelled: pooling as a pointwise kernel, products as templates (max-autotune), sums of few
// results in two kernels, several sums of one group.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/fused_kernel.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

constexpr size_t kMostNodes = 64;        // of a kernel: torch/_inductor/config.py, max_fusion_size
constexpr size_t kMostConcatenated = 8;  // config.py, max_pointwise_cat_inputs

bool launches(const Node& node) { return op_def(node.op).work != nullptr; }

/// Sums, means and extremes over dimensions: one kernel with what computes their elements.
bool reduces(const Node& node) {
  static const OpId reductions[] = {require_op("reduce_mean"), require_op("reduce_sum"),
                                    require_op("reduce_max"), require_op("reduce_min")};
  return std::find(std::begin(reductions), std::end(reductions), node.op) != std::end(reductions);
}

/// FLOPs for each element if Inductor computes the operator element by element.
std::optional<int64_t> flops_by_element(const Graph& graph, const Node& node) {
  static const OpId batch_norm = require_op("batch_norm"), stream = require_op("stream"),
                    cat = require_op("cat");
  const OpDef& def = op_def(node.op);
  if (def.pointwise_flops) return def.pointwise_flops;
  const int64_t elements = element_count(graph.tensor(node.outputs[0]).shape);
  if (node.op == batch_norm)
    return integer_or(node, "training", 0) == 0 ? std::optional<int64_t>(2) : std::nullopt;
  if (node.op == cat)
    return node.inputs.size() <= kMostConcatenated ? std::optional<int64_t>(0) : std::nullopt;
  if (node.op != stream || node.outputs.size() != 1) return std::nullopt;
  for (const char* other : {"unmapped", "unmeasured", "read_bytes"}) {
    if (node.find_attribute(other) != nullptr) return std::nullopt;
  }
  const bool by_element = std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
    return element_count(graph.tensor(id).shape) <= elements;
  });
  return by_element ? std::optional<int64_t>(integer_or(node, "flops", 0) / elements)
                    : std::nullopt;
}

/// What Python variables keep in memory: compiled code has none.
void drop_holds(Graph& graph) {
  static const OpId hold = require_op("hold");
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (Segment& segment : graph.segments) {
    const auto first = graph.nodes.begin() + segment.first_node;
    segment.first_node = static_cast<int32_t>(kept.size());
    std::remove_copy_if(std::make_move_iterator(first),
                        std::make_move_iterator(first + segment.node_count),
                        std::back_inserter(kept), [](const Node& node) { return node.op == hold; });
    segment.node_count = static_cast<int32_t>(kept.size()) - segment.first_node;
  }
  graph.nodes = std::move(kept);
}

/// Operators that write into their operand get memory of their own, as AOTAutograd rewrites them;
/// parameters and other tensors from outside are still written.
void rewrite_in_place(Graph& graph) {
  const std::vector<bool> made = made_tensors(graph);
  std::vector<TensorId> now(graph.tensors.size());
  for (size_t id = 0; id < now.size(); ++id) now[id] = static_cast<TensorId>(id);
  for (const Node& node : graph.nodes) {
    for (const TensorId id : node.outputs) {
      Tensor& tensor = graph.tensor(id);
      const TensorId base = tensor.storage;
      if (base == id || !made[static_cast<size_t>(base)]) continue;
      const bool whole = element_count(tensor.shape) == element_count(graph.tensor(base).shape);
      if (launches(node) && whole) now[static_cast<size_t>(base)] = id;
      tensor.storage = now[static_cast<size_t>(base)];
    }
  }
}

/// Groups the nodes of one segment. `uses`: how often each tensor is read.
class Grouping {
 public:
  Grouping(const Graph& graph, const std::vector<int>& uses, int32_t first, int32_t count)
      : graph_(graph),
        uses_(uses),
        first_(first),
        count_(count),
        group_of_tensor_(graph.tensors.size(), -1) {
    group_of_node_.reserve(static_cast<size_t>(count));
    for (int32_t i = first; i < first + count; ++i) group_of_node_.push_back(place(i));
  }

  /// The groups' nodes in an order in which each group comes after those that it reads.
  std::vector<std::vector<int32_t>> ordered() const {
    std::vector<std::vector<int32_t>> members(groups_.size());
    for (int32_t i = 0; i < count_; ++i)
      members[found(group_of_node_[static_cast<size_t>(i)])].push_back(first_ + i);
    std::vector<bool> taken(groups_.size(), false);
    std::vector<std::vector<int32_t>> order;
    std::vector<std::pair<size_t, bool>> open;  // group, and whether what it reads has been visited
    for (const int32_t group : group_of_node_) {
      open.emplace_back(found(group), false);
      while (!open.empty()) {
        const auto [current, visited] = open.back();
        open.pop_back();
        if (visited) order.push_back(std::move(members[current]));
        if (visited || taken[current]) continue;
        taken[current] = true;
        open.emplace_back(current, true);
        for (const int32_t node : members[current]) visit_inputs(node, current, open);
      }
    }
    return order;
  }

 private:
  struct Group {
    int32_t level = 0;
    int64_t elements = 0;  ///< of each operator's result; 0: nothing joins
    size_t nodes = 0;
    int reads = 0;  ///< of its results, by others
    bool has_rows = false;
    Phase phase = Phase::kForward;
    Counts counts = Counts::kAll;
    int32_t joined = -1;  ///< the group that took this one
  };

  Group& group(int32_t number) { return groups_[static_cast<size_t>(number)]; }
  const Group& group(int32_t number) const { return groups_[static_cast<size_t>(number)]; }

  size_t found(int32_t group) const {
    auto at = static_cast<size_t>(group);
    while (groups_[at].joined >= 0) at = static_cast<size_t>(groups_[at].joined);
    return at;
  }
  int32_t producer(TensorId id) const {
    const int32_t group = group_of_tensor_[static_cast<size_t>(id)];
    return group < 0 ? -1 : static_cast<int32_t>(found(group));
  }

  void visit_inputs(int32_t node, size_t reader, std::vector<std::pair<size_t, bool>>& open) const {
    for (const TensorId id : graph_.nodes[static_cast<size_t>(node)].inputs) {
      const int32_t group = producer(id);
      if (group >= 0 && static_cast<size_t>(group) != reader)
        open.emplace_back(static_cast<size_t>(group), false);
    }
  }

  int32_t place(int32_t index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    const int32_t number = group_for(node);
    Group& own = group(number);
    own.nodes += launches(node) ? 1 : 0;
    for (const TensorId id : node.inputs) own.reads -= producer(id) == number ? 1 : 0;
    for (const TensorId id : node.outputs) {
      group_of_tensor_[static_cast<size_t>(id)] = number;
      own.reads += uses_[static_cast<size_t>(id)];
    }
    return number;
  }

  int32_t group_for(const Node& node) {
    int32_t level = -1;  // of tensors from outside
    for (const TensorId id : node.inputs) {
      const int32_t read = producer(id);
      if (read >= 0) level = std::max(level, group(read).level);
    }
    const bool view = !launches(node);
    const bool sums = reduces(node);
    const bool rows = sums || op_def(node.op).row_fusion.has_value();
    const bool computes = rows || flops_by_element(graph_, node).has_value();
    const bool joins = view || (computes && node.phase != Phase::kOptimizer);
    const TensorId whole = sums ? node.inputs[0] : node.outputs[0];
    const int64_t elements = element_count(graph_.tensor(whole).shape);
    if (joins && level >= 0) {
      const int32_t common = common_group(node, level, elements, rows);
      if (common >= 0) return common;
    }
    groups_.push_back({.level = view ? level : level + 1,
                       .elements = joins && !view && !sums ? elements : 0,
                       .has_rows = rows,
                       .phase = node.phase,
                       .counts = node.counts});
    return static_cast<int32_t>(groups_.size()) - 1;
  }

  /// Whether the node is the only one that reads the group: then the group can run as late as it.
  bool is_only_reader(const Node& node, int32_t number) const {
    const auto reads = std::count_if(node.inputs.begin(), node.inputs.end(),
                                     [&](TensorId id) { return producer(id) == number; });
    return group(number).elements > 0 && group(number).reads == static_cast<int>(reads);
  }

  /// The groups of this level that the node reads, and lower ones that nothing else reads, as one;
  /// -1 if it cannot join all of this level.
  int32_t common_group(const Node& node, int32_t level, int64_t elements, bool rows) {
    std::vector<int32_t> of_level, lower;
    for (const TensorId id : node.inputs) {
      const int32_t number = producer(id);
      if (number < 0) continue;
      const bool is_of_level = group(number).level == level;
      if (!is_of_level && !is_only_reader(node, number)) continue;
      std::vector<int32_t>& read = is_of_level ? of_level : lower;
      if (std::find(read.begin(), read.end(), number) == read.end()) read.push_back(number);
    }
    size_t nodes = 1, with_rows = rows ? 1 : 0;
    int reads = 0;
    std::vector<int32_t> joined;
    const auto join = [&](int32_t number) {
      const Group& one = group(number);
      const bool fits =
          one.elements == elements && one.phase == node.phase &&
          (one.counts == Counts::kMemoryOnly) == (node.counts == Counts::kMemoryOnly) &&
          nodes + one.nodes <= kMostNodes && with_rows + (one.has_rows ? 1 : 0) <= 1;
      if (!fits) return false;
      joined.push_back(number);
      nodes += one.nodes;
      reads += one.reads;
      with_rows += one.has_rows ? 1 : 0;
      return true;
    };
    if (!std::all_of(of_level.begin(), of_level.end(), join)) return -1;
    std::for_each(lower.begin(), lower.end(), join);
    const int32_t into = joined.front();
    Group& all = group(into);
    all.nodes = nodes - 1;
    all.reads = reads;
    all.has_rows = with_rows > 0;
    for (size_t i = 1; i < joined.size(); ++i) group(joined[i]).joined = into;
    return into;
  }

  const Graph& graph_;
  const std::vector<int>& uses_;
  int32_t first_, count_;
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_tensor_, group_of_node_;
};

class Compiler {
 public:
  explicit Compiler(Graph& graph) : graph_(graph), uses_(use_counts(graph)) {
    // What writes a part of a tensor needs the rest of it.
    for (const Node& node : graph.nodes) {
      for (const TensorId id : node.outputs) {
        const TensorId base = graph.tensor(id).storage;
        if (base != id && launches(node)) uses_[static_cast<size_t>(base)] += 1;
      }
    }
  }

  void run() {
    std::vector<Node> after;
    for (Segment& segment : graph_.segments) {
      const auto start = static_cast<int32_t>(after.size());
      for (const std::vector<int32_t>& group :
           Grouping(graph_, uses_, segment.first_node, segment.node_count).ordered()) {
        std::vector<Node> nodes;
        for (const int32_t index : group)
          nodes.push_back(std::move(graph_.nodes[static_cast<size_t>(index)]));
        emit(std::move(nodes), after);
      }
      segment.first_node = start;
      segment.node_count = static_cast<int32_t>(after.size()) - start;
    }
    graph_.nodes = std::move(after);
  }

 private:
  /// One kernel for those that launch. Views of its results that others read come after it.
  void emit(std::vector<Node> nodes, std::vector<Node>& after) const {
    if (std::count_if(nodes.begin(), nodes.end(), launches) < 2) {
      for (Node& node : nodes) after.push_back(std::move(node));
      return;
    }
    std::unordered_map<TensorId, int> outside;  // reads elsewhere of what the group makes
    for (const Node& node : nodes) {
      for (const TensorId id : node.outputs) outside[id] = uses_[static_cast<size_t>(id)];
    }
    for (const Node& node : nodes) {
      for (const TensorId id : node.inputs) {
        const auto found = outside.find(id);
        if (found != outside.end()) found->second -= 1;
      }
    }
    std::vector<Node> kernels, views;
    int64_t flops = 0;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (launches(*node)) {
        flops += reduces(*node) ? 1 : flops_by_element(graph_, *node).value_or(0);
        kernels.push_back(std::move(*node));
      } else if (outside.at(node->outputs[0]) > 0) {
        const auto base = outside.find(node->inputs[0]);
        if (base != outside.end()) base->second += 1;
        views.push_back(std::move(*node));
      }
    }
    std::reverse(kernels.begin(), kernels.end());
    after.push_back(fused_kernel(
        graph_, kernels, flops, [&](TensorId id) { return outside.contains(id); },
        [&](TensorId id) { return outside.at(id) > 0; }));
    for (auto view = views.rbegin(); view != views.rend(); ++view)
      after.push_back(std::move(*view));
  }

  Graph& graph_;
  std::vector<int> uses_;
};

/// Whether Inductor stores images by pixel: where the sum of the convolutions' FLOPs, each by how
/// much faster or slower its kind was found to be, falls.
bool stores_by_pixel(const Graph& graph) {
  static const OpId convolutions[] = {require_op("conv2d"), require_op("conv")};
  constexpr double kGrouped = 1.358, kFewerOut = 0.725, kSmall = 0.783, kOther = 0.823;
  constexpr int64_t kFewChannels = 64;
  double flops = 0, weighted = 0;
  for (const Node& node : graph.nodes) {
    if (node.op != convolutions[0] && node.op != convolutions[1]) continue;
    const Shape& weight = graph.tensor(node.inputs[1]).shape;
    if (weight.size() != 4) continue;
    const double work = static_cast<double>(element_count(graph.tensor(node.outputs[0]).shape)) *
                        static_cast<double>(weight[1] * weight[2] * weight[3]);
    const bool grouped = integer_or(node, "groups", 1) > 1 && weight[1] > 1;
    const bool fewer_out = weight[0] * 2 <= weight[1] && weight[2] > 1;
    const bool small = weight[0] <= kFewChannels && weight[1] <= kFewChannels;
    flops += work;
    weighted += work * (grouped ? kGrouped : fewer_out ? kFewerOut : small ? kSmall : kOther);
  }
  return weighted < flops;
}

}  // namespace

void compile_with_inductor(Graph& graph, bool chooses_layout) {
  if (chooses_layout && stores_by_pixel(graph))
    set_memory_format(graph, MemoryFormat::kChannelsLast);
  drop_holds(graph);
  rewrite_in_place(graph);
  Compiler(graph).run();
  validate_if_debug(graph);
}

}  // namespace tilecast
