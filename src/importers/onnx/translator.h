#pragma once

// Translates the nodes of an ONNX graph to operators of the table, for given sizes of its symbolic
// dimensions. Every shape is known then, so computations on shapes are carried out; conditions are
// known and loops have a number of trips.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "importers/model.h"
#include "importers/onnx/file.h"
#include "ops/builder.h"

namespace tilecast {

/// Meaning of a name of the ONNX graph. At least one of the first three is set.
struct OnnxValue {
  TensorId tensor = -1;                          ///< in the graph that is built
  std::shared_ptr<const OnnxConstant> constant;  ///< its values, if they are known
  const OnnxTensor* initializer = nullptr;       ///< not yet in the graph
  /// The matrix that this is the transpose of; -1: none.
  TensorId transpose_of = -1;
  /// The quantized tensor and its scale that this was computed from (DequantizeLinear); -1: none.
  TensorId dequantized = -1;
  std::vector<OnnxValue> sequence;  ///< of tensors
  bool is_sequence = false;

  bool is_known() const { return tensor >= 0 || constant != nullptr || initializer != nullptr; }
};

/// Names of a graph, and of the graphs around it.
struct OnnxScope {
  OnnxScope* outer = nullptr;
  std::unordered_map<std::string, OnnxValue> values;
  /// Attributes of the call, in a function.
  const std::vector<OnnxAttribute>* attributes = nullptr;

  OnnxValue* find(const std::string& name);
};

class OnnxTranslator {
 public:
  OnnxTranslator(const OnnxFile& file, const GraphRequest& request, std::string where);

  /// Throws Error{kInput} for a graph that contradicts itself or has symbolic dimensions left,
  /// Error{kUnsupported} for an unknown operator unless the request skips those.
  Graph run();

  /// Sentences on what was assumed or left out.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend class OnnxCall;

  struct Skipped {
    std::string node, op;
    int64_t bytes = 0;  ///< of inputs and outputs
  };

  void count_uses(const std::vector<OnnxNode>& nodes);
  void add_inputs(OnnxScope& scope);
  int64_t size_of(const OnnxValueInfo& input, size_t axis, int64_t& batch_uses);
  void declare_shapes();
  void run_nodes(const std::vector<OnnxNode>& nodes, OnnxScope& scope);
  void run_node(const OnnxNode& node, OnnxScope& scope);
  void translate_node(const OnnxNode& node, OnnxScope& scope);
  void note(bool attention, bool packing);
  void run_function(const OnnxFunction& function, const OnnxNode& node, OnnxScope& scope);
  void run_if(const OnnxNode& node, OnnxScope& scope);
  void run_loop(const OnnxNode& node, OnnxScope& scope);
  void skip_node(const OnnxNode& node, OnnxScope& scope);
  void check_skipped();
  void check_dims() const;
  [[noreturn]] void fail_order(const std::vector<OnnxNode>& nodes, const OnnxNode& node,
                               const std::string& name) const;
  OnnxValue value_of(const OnnxNode& node, const std::string& name, OnnxScope& scope);
  TensorId tensor_of(OnnxValue& value);
  TensorId initializer_tensor(const OnnxTensor& initializer, bool swapped);
  TensorId constant_tensor(const OnnxConstant& constant, const std::string& name);
  bool is_parameter(const OnnxTensor& initializer) const;
  DType dtype_of(OnnxType type, const std::string& what) const;
  void count_elements(size_t elements);
  [[noreturn]] void fail(const std::string& message) const;

  const OnnxFile& file_;
  const GraphRequest& request_;
  std::string where_;
  Graph graph_;
  GraphBuilder b_;
  std::map<std::string, int64_t, std::less<>> dims_;  ///< given sizes by name
  std::set<std::string, std::less<>> used_dims_;
  bool batch_used_ = false, seq_used_ = false;
  std::unordered_map<std::string, Shape> declared_;  ///< shapes of values that are known
  std::unordered_map<std::string, std::set<std::string>> uses_;  ///< initializer → "Op#input"
  std::unordered_map<std::string, TensorId> same_;               ///< weights by their identity
  std::unordered_map<const OnnxTensor*, TensorId> tensors_, swapped_;
  std::optional<OnnxType> main_type_;
  std::vector<Skipped> skipped_;
  std::vector<std::string> warnings_;
  bool in_attention_ = false;  ///< PyTorch's scaled_dot_product_attention
  bool in_packing_ = false;    ///< of weights, which PyTorch stores packed
  int64_t nodes_run_ = 0;
  BudgetPart written_out_ = kGraphNodes;  ///< nodes of loops and functions, each time they run
  /// By domain and name.
  std::map<std::pair<std::string_view, std::string_view>, const OnnxFunction*> functions_;
  int64_t elements_ = 0;  ///< of constants that were computed, and of sequences
  int depth_ = 0;
};

/// The dtype that most weights of the file have; nullopt: no float weights.
std::optional<OnnxType> main_type(const OnnxFile& file);

}  // namespace tilecast
