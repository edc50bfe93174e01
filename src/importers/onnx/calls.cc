// Operators of PyTorch that its exporter writes as several nodes although PyTorch runs them as one
// kernel. The exporter notes in each node which call it is a part of.

#include "importers/onnx/calls.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace tilecast {
namespace {

bool is_recurrent(const std::string& aten) {
  return aten == "lstm" || aten == "gru" || aten.starts_with("rnn_");
}

/// Whether a part of such a call may be joined with others or marked.
bool concerns(const std::string& aten) {
  return aten == "addcmul" || aten == "im2col" || aten == "_native_batch_norm_legit" ||
         is_embedding_bag(aten) || is_recurrent(aten);
}

class Joiner {
 public:
  explicit Joiner(OnnxGraph& graph) : graph_(graph) {}

  void run() {
    count_readers(graph_);
    for (const OnnxTensor& tensor : graph_.initializers) {
      stored_.insert(tensor.name);
      if (std::all_of(tensor.shape.begin(), tensor.shape.end(),
                      [](int64_t size) { return size == 1; }))
        single_.insert(tensor.name);
    }
    for (const OnnxNode& node : graph_.nodes) {
      if (node.op == "Constant") stored_.insert(node.outputs.begin(), node.outputs.end());
    }
    dead_.resize(graph_.nodes.size(), false);
    for (size_t first = 0; first < graph_.nodes.size();) {
      const std::string& call = graph_.nodes[first].call;
      size_t end = first + 1;
      while (!call.empty() && end < graph_.nodes.size() && graph_.nodes[end].call == call) ++end;
      // The exporter's own optimization drops the notes of some nodes in between.
      if (is_embedding_bag(graph_.nodes[first].aten)) {
        for (size_t n = end; n < graph_.nodes.size(); ++n) {
          if (graph_.nodes[n].call == call) end = n + 1;
          if (!graph_.nodes[n].call.empty() && graph_.nodes[n].call != call) break;
        }
      }
      if (!call.empty()) join(first, end);
      first = end;
    }
    std::vector<OnnxNode> kept;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!dead_[n]) kept.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(kept);
  }

 private:
  void count_readers(const OnnxGraph& graph) {
    for (const OnnxNode& node : graph.nodes) {
      for (const std::string& input : node.inputs) ++readers_[input];
      for (const OnnxAttribute& attribute : node.attributes) {
        if (attribute.graph != nullptr) count_readers(*attribute.graph);
      }
    }
    for (const OnnxValueInfo& output : graph.outputs) ++readers_[output.name];
  }

  void join(size_t first, size_t end) {
    makers_.clear();
    for (size_t n = first; n < end; ++n) {
      for (const std::string& output : graph_.nodes[n].outputs) makers_[output] = n;
    }
    const std::string& aten = graph_.nodes[first].aten;
    if (aten == "addcmul" && end > first + 1 && join_addcmul(graph_.nodes[end - 1]))
      remove_unread(first, end - 1);
    if (aten == "im2col" && join_windows(first, graph_.nodes[end - 1]))
      remove_unread(first, end - 1);
    if (aten == "_native_batch_norm_legit") {
      size_t joined = first;
      for (size_t n = first; n < end; ++n)
        if (join_batch_norm(graph_.nodes[n])) joined = n;
      remove_unread(first, joined);
    }
    if (is_embedding_bag(aten) && join_bags(first, end)) remove_unread(first, end - 1);
    if (is_recurrent(aten)) mark_packing(first, end);
  }

  /// Sums of rows, one for each bag, which the exporter writes as a gather of all rows and a loop
  /// over the bags: table, ids and offsets.
  bool join_bags(size_t first, size_t end) {
    OnnxNode& last = graph_.nodes[end - 1];
    std::string table, ids;
    const auto loop = std::find_if(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(first),
                                   graph_.nodes.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](const OnnxNode& node) { return node.op == "Loop"; });
    if (loop == graph_.nodes.begin() + static_cast<std::ptrdiff_t>(end)) return false;
    for (size_t n = first; n < end && table.empty(); ++n) {
      const OnnxNode& node = graph_.nodes[n];
      if (node.op != "Gather" || node.inputs.size() != 2 || maker(node.inputs[0]) != nullptr)
        continue;
      const OnnxNode* flat = maker(node.inputs[1]);
      if (flat != nullptr && (flat->op != "Reshape" || flat->inputs.empty())) continue;
      table = node.inputs[0];
      ids = flat == nullptr ? node.inputs[1] : flat->inputs[0];
    }
    std::string offsets = offsets_of_bags(first, end);
    const bool folded = offsets.empty();
    if (folded) offsets = stored_offsets(*loop);
    const bool known = !table.empty() && !ids.empty() && !offsets.empty() && table != offsets;
    // The node must be the call's one result, after the loop.
    const bool result = (last.op == "CastLike" || last.op == "Cast" || last.op == "Identity" ||
                         last.op == "ConcatFromSequence") &&
                        last.outputs.size() == 1 && maker(ids) == nullptr;
    if (!known || !result) return false;
    if (folded) {
      // Stored offsets have the end of the last bag.
      constexpr size_t kLastOffset = 7;
      if (last.call_arguments.empty()) last.call_arguments = loop->call_arguments;
      last.call_arguments.resize(std::max(last.call_arguments.size(), kLastOffset + 1));
      last.call_arguments[kLastOffset] = "True";
    }
    last.op = kTorchEmbeddingBag;
    last.domain = kTorchDomain;
    last.attributes.clear();
    replace_inputs(last, {table, ids, offsets});
    return true;
  }

  /// Offsets that follow from shapes: the loop cuts them out of an initializer.
  std::string stored_offsets(const OnnxNode& loop) const {
    const OnnxAttribute* const body = loop.find("body");
    if (body == nullptr || body->graph == nullptr) return "";
    for (const OnnxNode& node : body->graph->nodes) {
      if (node.op == "Slice" && !node.inputs.empty() && stored_.contains(node.inputs[0]))
        return node.inputs[0];
    }
    return "";
  }

  /// The offsets: all of them, or those to which the end of the last bag is added.
  std::string offsets_of_bags(size_t first, size_t end) const {
    for (size_t n = first; n < end; ++n) {
      const OnnxNode& node = graph_.nodes[n];
      const bool counts = node.op == "Size" || (node.op == "Concat" && node.inputs.size() == 2);
      if (counts && !node.inputs.empty() && maker(node.inputs[0]) == nullptr) return node.inputs[0];
    }
    return "";
  }

  /// The node of this call that makes a value; nullptr: none.
  const OnnxNode* maker(const std::string& name) const {
    const auto found = makers_.find(name);
    return found == makers_.end() ? nullptr : &graph_.nodes[found->second];
  }

  /// The tensors of a product of this call, without constants that the call itself makes. `reader`
  /// reads it, so that a cycle ends. Stops at more factors than a call has.
  std::vector<std::string> factors(const OnnxNode& reader, const std::string& product) const {
    constexpr size_t kMostFactors = 3;  // c, y, z
    std::vector<std::string> all;
    std::vector<std::pair<const OnnxNode*, std::string>> open = {{&reader, product}};
    while (!open.empty() && all.size() <= kMostFactors) {
      const auto [from, name] = open.back();
      open.pop_back();
      const OnnxNode* node = maker(name);
      if (node == nullptr || node >= from) {
        all.push_back(name);
      } else if (node->op == "Mul" && readers_.at(name) == 1) {
        for (size_t i = node->inputs.size(); i-- > 0;) open.emplace_back(node, node->inputs[i]);
      } else if (node->op != "Constant" && node->op != "CastLike") {
        all.push_back(name);
      }
    }
    return all;
  }

  /// x + (c · y) · z
  bool join_addcmul(OnnxNode& sum) {
    constexpr size_t kTensors = 2;  // y and z
    if (sum.op != "Add" || sum.inputs.size() != 2) return false;
    const bool second = maker(sum.inputs[1]) != nullptr;
    const std::string x = sum.inputs[second ? 0 : 1], product = sum.inputs[second ? 1 : 0];
    if (maker(x) != nullptr) return false;
    std::vector<std::string> inputs = factors(sum, product);
    // Exporters store the constant c, folded.
    if (inputs.size() == kTensors + 1)
      if (const auto c = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const auto& name) { return single_.contains(name); });
          c != inputs.end())
        inputs.erase(c);
    if (inputs.size() != kTensors || inputs[0] == product) return false;
    inputs.insert(inputs.begin(), x);
    sum.op = kTorchAddcmul;
    sum.domain = kTorchDomain;
    replace_inputs(sum, std::move(inputs));
    return true;
  }

  /// Windows side by side, which the exporter gathers: back from the result to the tensor. The
  /// sizes of the windows are in the note; the shape of the result stays beside the tensor.
  bool join_windows(size_t first, OnnxNode& last) {
    if (last.op != "Reshape" || last.inputs.size() != 2 || last.call_numbers.size() != 8)
      return false;
    std::string x = last.inputs[0];
    for (const OnnxNode* node = maker(x); node != nullptr; node = maker(x)) {
      const bool moves = node->op == "Transpose" || node->op == "Gather" || node->op == "Pad";
      if (!moves || node->inputs.empty() || readers_.at(x) != 1 || node < &graph_.nodes[first] ||
          node >= &last)
        return false;
      x = node->inputs[0];
      if (maker(x) != nullptr && maker(x) >= node) return false;  // a cycle
    }
    last.op = kTorchWindows;
    last.domain = kTorchDomain;
    replace_inputs(last, {x, last.inputs[1]});
    return true;
  }

  /// By the statistics of the batch, which the call computes itself.
  bool join_batch_norm(OnnxNode& norm) {
    constexpr size_t kStatistics = 3;  // from this input on
    if (norm.op != "BatchNormalization" || norm.inputs.size() != 5) return false;
    if (maker(norm.inputs[3]) == nullptr || maker(norm.inputs[4]) == nullptr) return false;
    replace_inputs(norm, {norm.inputs.begin(), norm.inputs.begin() + kStatistics});
    std::erase_if(norm.attributes,
                  [](const OnnxAttribute& a) { return a.name == "training_mode"; });
    OnnxAttribute training;
    training.name = "training_mode";
    training.integer = 1;
    norm.attributes.push_back(std::move(training));
    return true;
  }

  /// Nodes that order the weights of a recurrent layer as ONNX does: nothing but stored tensors
  /// goes in.
  void mark_packing(size_t first, size_t end) {
    std::set<std::string> packed;
    for (size_t n = first; n < end; ++n) {
      OnnxNode& node = graph_.nodes[n];
      const bool layer = node.op == "LSTM" || node.op == "GRU" || node.op == "RNN";
      const bool from_stored =
          std::all_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& input) {
            return input.empty() || stored_.contains(input) || packed.contains(input);
          });
      const bool of_shapes = node.op == "Shape";  // of the states: where the gates' parts are
      if (layer || !(from_stored || of_shapes)) continue;
      packed.insert(node.outputs.begin(), node.outputs.end());
      node.packs_weights = true;
    }
  }

  void replace_inputs(OnnxNode& node, std::vector<std::string> inputs) {
    for (const std::string& input : inputs) ++readers_[input];
    for (const std::string& input : node.inputs) --readers_[input];
    node.inputs = std::move(inputs);
  }

  /// Nodes from `first` to before `end` whose results nothing reads.
  void remove_unread(size_t first, size_t end) {
    for (size_t n = end; n-- > first;) {
      const OnnxNode& node = graph_.nodes[n];
      if (std::any_of(node.outputs.begin(), node.outputs.end(),
                      [&](const std::string& output) { return readers_[output] > 0; }))
        continue;
      uncount(node);
      dead_[n] = true;
    }
  }

  /// A node, with the graphs of its attributes, no longer reads anything.
  void uncount(const OnnxNode& node) {
    for (const std::string& input : node.inputs) --readers_[input];
    for (const OnnxAttribute& attribute : node.attributes) {
      if (attribute.graph == nullptr) continue;
      for (const OnnxNode& inner : attribute.graph->nodes) uncount(inner);
      for (const OnnxValueInfo& output : attribute.graph->outputs) --readers_[output.name];
    }
  }

  OnnxGraph& graph_;
  std::unordered_map<std::string, int64_t> readers_;  ///< how many inputs and outputs name a value
  std::unordered_map<std::string, size_t> makers_;    ///< of this call: by output, the node
  std::set<std::string> stored_;                      ///< initializers and constants
  std::set<std::string> single_;                      ///< initializers of one element
  std::vector<bool> dead_;                            ///< by node
};

}  // namespace

void join_torch_calls(OnnxGraph& graph) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                               [](const OnnxNode& node) { return concerns(node.aten); });
  if (any) Joiner(graph).run();
}

}  // namespace tilecast
