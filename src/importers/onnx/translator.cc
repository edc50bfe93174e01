#include "importers/onnx/translator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/clean_names.h"
#include "importers/onnx/call.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Nodes that run, with loops and functions written out: files of any size may have some, larger
/// ones in proportion. A function that is called for each of 128 layers makes a file run 128 times
/// as long as it is; functions that call functions would make 1 kB run for hours.
constexpr int64_t kAnyNodes = 60'000, kMostGrowth = 20;
constexpr int kDeepestGraph = 32;

/// Names that exporters give to the number of sequences, and to their length.
bool means_batch(const std::string& name) {
  const std::string word = lower_case(name);
  return word == "n" || word == "b" || word.find("batch") != std::string::npos;
}
bool means_seq(const std::string& name) {
  const std::string word = lower_case(name);
  return word.find("past") == std::string::npos &&
         (word == "s" || word == "t" || word == "length" || word.find("seq") != std::string::npos);
}

int64_t count_nodes(const std::vector<OnnxNode>& nodes) {
  auto count = static_cast<int64_t>(nodes.size());
  for (const OnnxNode& node : nodes) {
    for (const OnnxAttribute& attribute : node.attributes) {
      if (attribute.graph != nullptr) count += count_nodes(attribute.graph->nodes);
    }
  }
  return count;
}

/// All nodes of the file, of its functions and of graphs in nodes.
int64_t count_nodes(const OnnxFile& file) {
  int64_t count = count_nodes(file.graph.nodes);
  for (const OnnxFunction& function : file.functions) count += count_nodes(function.nodes);
  return count;
}

}  // namespace

OnnxValue* OnnxScope::find(const std::string& name) {
  for (OnnxScope* scope = this; scope != nullptr; scope = scope->outer) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return &found->second;
  }
  return nullptr;
}

OnnxTranslator::OnnxTranslator(const OnnxFile& file, const GraphRequest& request, std::string where)
    : file_(file),
      request_(request),
      where_(std::move(where)),
      b_(graph_),
      main_type_(main_type(file)) {
  for (const auto& [name, size] : request.dims) dims_[name] = size;
  written_out_.usual = std::min(kGraphNodes.usual, kAnyNodes + kMostGrowth * count_nodes(file));
  for (const OnnxFunction& function : file.functions)
    functions_.emplace(
        std::pair<std::string_view, std::string_view>(function.domain, function.name), &function);
}

void OnnxTranslator::count_elements(size_t elements) {
  elements_ += static_cast<int64_t>(elements);
  Budget::here().allow(kKnownElements, elements_, where_);
}

void OnnxTranslator::fail(const std::string& message) const {
  throw Error(ErrorKind::kInput, where_ + ": " + message);
}

Graph OnnxTranslator::run() {
  b_.begin_segment("main", 1);
  OnnxScope scope;
  count_uses(file_.graph.nodes);
  for (const OnnxTensor& tensor : file_.graph.initializers) {
    OnnxValue value{.constant = tensor.values, .initializer = &tensor};
    // The values of a float vector are weights, not sizes.
    if (is_float(tensor.type) && !tensor.shape.empty() && element_count(tensor.shape) > 1)
      value.constant = nullptr;
    if (!scope.values.emplace(tensor.name, std::move(value)).second)
      fail(fmt::format("the initializer '{}' is there twice", shown_name(tensor.name)));
  }
  add_inputs(scope);
  declare_shapes();
  run_nodes(file_.graph.nodes, scope);
  check_skipped();
  for (const OnnxValueInfo& output : file_.graph.outputs) {
    OnnxValue* value = scope.find(output.name);
    if (value == nullptr)
      fail(fmt::format("the output '{}' is not computed by any node", shown_name(output.name)));
    for (const OnnxValue& part :
         value->is_sequence ? value->sequence : std::vector<OnnxValue>{*value}) {
      const bool computed =
          part.tensor >= 0 && graph_.tensor(part.tensor).kind == TensorKind::kActivation;
      const auto& outputs = graph_.outputs;
      if (computed && std::find(outputs.begin(), outputs.end(), part.tensor) == outputs.end())
        graph_.outputs.push_back(part.tensor);
    }
  }
  if (graph_.outputs.empty()) fail("no output is computed from the inputs; expected a model");
  clean_names(graph_);
  return std::move(graph_);
}

void OnnxTranslator::count_uses(const std::vector<OnnxNode>& nodes) {
  for (const OnnxNode& node : nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool product = node.op == "MatMul" && i == 1;
      uses_[node.inputs[i]].insert(product ? node.op : fmt::format("{}#{}", node.op, i));
    }
    for (const OnnxAttribute& attribute : node.attributes) {
      if (attribute.graph != nullptr) count_uses(attribute.graph->nodes);
    }
  }
}

/// The size of a symbolic dimension: given by name, or the request's batch or length.
int64_t OnnxTranslator::size_of(const OnnxValueInfo& input, size_t axis, int64_t& batch_uses) {
  const OnnxValueInfo::Dim& dim = (*input.shape)[axis];
  if (dim.value) {
    if (*dim.value < 0)
      fail(fmt::format("input '{}': a dimension of {}; expected 0 or more", shown_name(input.name),
                       *dim.value));
    return *dim.value;
  }
  const std::string name = dim.name.empty() ? fmt::format("{}[{}]", input.name, axis) : dim.name;
  if (const auto given = dims_.find(name); given != dims_.end()) {
    used_dims_.insert(name);
    return given->second;
  }
  if (means_batch(name) || (axis == 0 && dim.name.empty())) {
    ++batch_uses;
    batch_used_ = true;
    return request_.batch;
  }
  if (means_seq(name) && request_.seq > 1) {
    seq_used_ = true;
    return request_.seq;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: input '{}': dimension {} is the symbol '{}', which has no size; "
                          "give one with `dim` '{}=N'{}",
                          where_, shown_name(input.name), axis, shown_name(name), shown_name(name),
                          means_seq(name) ? " or `seq` N" : ""));
}

void OnnxTranslator::add_inputs(OnnxScope& scope) {
  int64_t batch_uses = 0;
  for (const OnnxValueInfo& input : file_.graph.inputs) {
    if (scope.values.contains(input.name)) continue;  // old files list initializers as inputs
    if (!input.is_tensor)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: input '{}' is no tensor; only tensors are supported", where_,
                              shown_name(input.name)));
    if (!input.shape)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: input '{}' has no shape; export the model with shapes", where_,
                              shown_name(input.name)));
    Shape shape;
    for (size_t axis = 0; axis < input.shape->size(); ++axis)
      shape.push_back(size_of(input, axis, batch_uses));
    element_count(shape);
    scope.values[input.name] = {.tensor =
                                    b_.input(input.name, shape, dtype_of(input.type, input.name))};
  }
  check_dims();
}

void OnnxTranslator::check_dims() const {
  for (const auto& [name, size] : dims_) {
    if (used_dims_.contains(name)) continue;
    std::set<std::string> known;
    for (const OnnxValueInfo& input : file_.graph.inputs) {
      for (size_t axis = 0; input.shape && axis < input.shape->size(); ++axis) {
        const OnnxValueInfo::Dim& dim = (*input.shape)[axis];
        if (!dim.value)
          known.insert(dim.name.empty() ? fmt::format("{}[{}]", input.name, axis) : dim.name);
      }
    }
    fail(fmt::format("`dim` {}: no input has this symbolic dimension; {}", shown_name(name),
                     known.empty()
                         ? "all its dimensions are fixed"
                         : "known: " + printable(join({known.begin(), known.end()}, ", "))));
  }
  if (request_.batch != 1 && !batch_used_)
    fail("the file fixes its shapes; omit `batch`, or export the model with a dynamic batch");
  if (request_.seq > 1 && !seq_used_)
    fail("no input has a symbolic dimension that is a length; omit `seq`, or use `dim`");
}

/// The shapes of values that the file declares, where all dimensions are known.
void OnnxTranslator::declare_shapes() {
  std::map<std::string, int64_t, std::less<>> sizes = dims_;
  if (!request_.skip_unsupported) return;
  for (const auto* infos : {&file_.graph.values, &file_.graph.outputs}) {
    for (const OnnxValueInfo& info : *infos) {
      if (!info.shape) continue;
      Shape shape;
      for (const OnnxValueInfo::Dim& dim : *info.shape) {
        if (dim.value) shape.push_back(*dim.value);
        const auto given = sizes.find(dim.name);
        if (!dim.value && given != sizes.end()) shape.push_back(given->second);
        if (!dim.value && given == sizes.end() && means_batch(dim.name))
          shape.push_back(request_.batch);
      }
      const bool whole = std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d >= 0; });
      if (whole && shape.size() == info.shape->size()) declared_[info.name] = shape;
    }
  }
}

void OnnxTranslator::run_nodes(const std::vector<OnnxNode>& nodes, OnnxScope& scope) {
  if (++depth_ > kDeepestGraph) fail("functions and graphs are nested too deeply");
  for (const OnnxNode& node : nodes) {
    for (const std::string& input : node.inputs) {
      if (!input.empty() && scope.find(input) == nullptr) fail_order(nodes, node, input);
    }
    for (const std::string& output : node.outputs) {
      if (!output.empty() && scope.values.contains(output))
        fail(
            fmt::format("node '{}': its output '{}' is already the output of another node, or an "
                        "input",
                        shown_name(node.name), shown_name(output)));
    }
    go_on("translating an ONNX file");
    const int64_t most = Budget::here().most(written_out_);
    if (++nodes_run_ > most)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: more than {} nodes, with loops and functions written out; the "
                              "file has {}; `max-memory` allows more",
                              where_, most, count_nodes(file_)));
    run_node(node, scope);
  }
  --depth_;
}

/// A node reads what no earlier node makes: the names are wrong, or the nodes form a cycle.
void OnnxTranslator::fail_order(const std::vector<OnnxNode>& nodes, const OnnxNode& node,
                                const std::string& name) const {
  std::unordered_map<std::string, const OnnxNode*> makers;
  for (const OnnxNode& other : nodes) {
    for (const std::string& output : other.outputs) makers.emplace(output, &other);
  }
  // Back along the first input that a later node makes.
  std::vector<const OnnxNode*> way = {&node};
  std::set<const OnnxNode*> seen = {&node};
  for (std::string wanted = name; makers.contains(wanted);) {
    const OnnxNode* maker = makers.at(wanted);
    way.push_back(maker);
    if (!seen.insert(maker).second) {
      std::vector<std::string> names;
      const auto start = std::find(way.begin(), way.end(), maker);
      for (auto it = start; it != way.end() && names.size() < 8; ++it)
        names.push_back("'" + shown_name((*it)->name) + "'");
      fail("the nodes form a cycle: " + join(names, " reads from "));
    }
    wanted.clear();
    for (const std::string& input : maker->inputs) {
      if (wanted.empty() && makers.contains(input) && makers.at(input) >= &node) wanted = input;
    }
  }
  fail(fmt::format("node '{}' ({}) reads '{}', which {}", shown_name(node.name),
                   shown_name(node.op), shown_name(name),
                   makers.contains(name) ? "a later node computes; expected sorted nodes"
                                         : "no node, input or initializer defines"));
}

OnnxValue OnnxTranslator::value_of(const OnnxNode&, const std::string& name, OnnxScope& scope) {
  const OnnxValue* found = scope.find(name);
  return found != nullptr ? *found : OnnxValue{};
}

/// Properties of all graph nodes that are added from now on.
void OnnxTranslator::note(bool attention, bool packing) {
  in_attention_ = attention;
  in_packing_ = packing;
  b_.set_attention_core(attention);
  b_.set_counts(packing ? Counts::kMemoryOnly : Counts::kAll);
}

/// With what PyTorch's exporter notes of the node, also for the nodes within it.
void OnnxTranslator::run_node(const OnnxNode& node, OnnxScope& scope) {
  const bool attention = in_attention_, packing = in_packing_;
  note(attention || node.aten == "scaled_dot_product_attention", packing || node.packs_weights);
  translate_node(node, scope);
  note(attention, packing);
}

void OnnxTranslator::translate_node(const OnnxNode& node, OnnxScope& scope) {
  if (const auto found = functions_.find({node.domain, node.op}); found != functions_.end())
    return run_function(*found->second, node, scope);
  if (node.domain.empty() && node.op == "If") return run_if(node, scope);
  if (node.domain.empty() && node.op == "Loop") return run_loop(node, scope);
  const OnnxOp* op = find_onnx_op(node);
  if (op == nullptr) return skip_node(node, scope);
  OnnxCall call(*this, node, scope);
  if (node.domain.empty() && fold_constants(call)) return;
  try {
    op->translate(call);
  } catch (const Error& error) {
    // The shape rules of the table name their node, but not the file.
    const std::string message = error.what();
    if (message.starts_with(where_)) throw;
    throw Error(error.kind(), fmt::format("{}: node '{}' ({}): {}", where_, shown_name(node.name),
                                          shown_name(node.op), message));
  }
}

}  // namespace tilecast
