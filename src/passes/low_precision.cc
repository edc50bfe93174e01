#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked.h"
#include "ops/op_def.h"
#include "passes/output_layer.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tilecast {
namespace {

QuantScheme scheme_of_scales(const LowPrecisionForm& form) {
  if (form.dtype == DType::kFp4) return QuantScheme::kFp4;
  return form.recipe == Fp8Recipe::kBlockwise ? QuantScheme::kFp8Block : QuantScheme::kFp8;
}

/// NVFP4's second scale is of the whole tensor.
int64_t scaled_first(const LowPrecisionForm& form) {
  return form.dtype == DType::kFp4 || form.recipe == Fp8Recipe::kTensorwise ? 1 : 0;
}

const char* cast_of(const LowPrecisionForm& form) {
  return form.dtype == DType::kFp4 ? "fp4_cast" : "fp8_cast";
}

/// One pass over a forward graph.
class NarrowProducts {
 public:
  NarrowProducts(const Graph& from, const LowPrecisionForm& form)
      : from_(from),
        form_(form),
        adapters_(std::any_of(from.nodes.begin(), from.nodes.end(), [&](const Node& node) {
          return node.op == linear_ && from.tensor(node.inputs[1]).frozen;
        })) {}

  Graph run() {
    const auto rule = [this](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
      return rewrite(b, node, std::move(inputs));
    };
    return Rewriter(from_, rule).run();
  }

 private:
  struct Copies {
    TensorId rows, transposed;
  };

  /// Linear layers with weights of their own. The output layer, routers and small gates stay in 16
  /// bits (Megatron-LM: their modules are not Transformer Engine's), adapters too.
  bool is_narrow(const Node& node) const {
    if (node.op != linear_ || is_output_layer(from_, node)) return false;
    const Tensor& weight = from_.tensor(node.inputs[1]);
    if (weight.kind != TensorKind::kWeight || (adapters_ && !weight.frozen)) return false;
    return weight.role != Role::kRouter && weight.role != Role::kGate;
  }

  std::vector<TensorId> rewrite(GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const Segment& segment = b.graph().segments.back();
    const bool wide = segment.role == Role::kSixteenBits;
    if (node.op == experts_ && !wide) {
      Node own = node;
      own.set_attribute("products", scheme_of_scales(form_));
      own.set_attribute("scaled_first", scaled_first(form_));
      return b.add("experts", std::move(inputs), node.name, std::move(own.attributes));
    }
    if (wide || !is_narrow(node))
      return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
    // Transposed copies of activations and their gradients are for the gradient of the weight.
    const bool transposes = form_.transposes && !from_.tensor(node.inputs[1]).frozen;
    const Copies x = copies_of(b, inputs[0], node.name, transposes),
                 w = weight_copies(b, inputs[1]);
    std::vector<TensorId> operands = {inputs[0], inputs[1],    x.rows,
                                      w.rows,    x.transposed, w.transposed};
    if (inputs.size() == 3) operands.push_back(inputs[2]);
    return b.add(form_.dtype == DType::kFp4 ? "fp4_linear" : "fp8_linear", std::move(operands),
                 node.name,
                 {{"scheme", scheme_of_scales(form_)},
                  {"transposed", transposes ? 1 : 0},
                  {"scaled_first", scaled_first(form_)},
                  {"weight_again", form_.transposes && !form_.keeps_transposed ? 1 : 0},
                  {"weight_layout", attribute<int64_t>(node, "weight_layout")}});
  }

  /// Of activations, which several products may read; all of these have trained weights, or none.
  Copies copies_of(GraphBuilder& b, TensorId x, const std::string& name, bool transposes) {
    const auto [known, fresh] = known_.try_emplace(x, Copies{});
    if (!fresh) return known->second;
    std::vector<Attribute> attributes = {{"transposed", transposes ? 1 : 0},
                                         {"scaled_first", scaled_first(form_)}};
    // The gradient of the weight multiplies transformed columns.
    if (form_.dtype == DType::kFp4) attributes.push_back({"hadamard", transposes ? 1 : 0});
    const std::vector<TensorId> outputs =
        b.add(cast_of(form_), {x}, name + ".cast", std::move(attributes));
    TensorId other = outputs.back();
    if (!transposes) {
      const Shape shape = b.graph().tensor(x).shape;
      const int64_t columns = shape.back(), rows = element_count(shape) / columns;
      const TensorId flat =
          b.op("view", {other}, name + ".view", {{"shape", Shape{rows, columns}}});
      other = b.op("transpose", {flat}, name + ".transpose", {{"order", Shape{1, 0}}});
    }
    return known->second = {outputs.front(), other};
  }

  /// Weights are cast when they have changed, not in each micro-batch (Transformer Engine's
  /// is_first_microbatch), so their copies stay in memory: in both layouts where products need it.
  Copies weight_copies(GraphBuilder& b, TensorId weight) {
    const auto [known, fresh] = known_.try_emplace(weight, Copies{});
    if (!fresh) return known->second;
    // A copy: adding a tensor may move the weight.
    const Tensor of =
        b.graph().tensor(weight);  // NOLINT(performance-unnecessary-copy-initialization)
    const auto buffer = [&](const char* suffix, Shape shape) {
      Tensor copy{.name = fmt::format("{}.{}{}", of.name, dtype_name(form_.dtype), suffix),
                  .shape = std::move(shape),
                  .dtype = form_.dtype,
                  .kind = TensorKind::kBuffer,
                  .segment = of.segment};
      // With the scales of blocks of 16 x 16, which are stored for each row.
      if (form_.dtype == DType::kFp4)
        copy.stored_bytes =
            scheme_bytes(QuantScheme::kFp4, element_count(copy.shape), DType::kBf16);
      return b.tensor(std::move(copy));
    };
    const TensorId rows = buffer("", of.shape);
    const TensorId transposed = form_.transposes && form_.keeps_transposed
                                    ? buffer("_transposed", {of.shape[1], of.shape[0]})
                                    : rows;
    return known->second = {rows, transposed};
  }

  const OpId linear_ = require_op("linear"), experts_ = require_op("experts");
  const Graph& from_;
  const LowPrecisionForm& form_;
  /// Are trained; the weights that linear layers multiply are frozen. (Stored sinusoids are frozen
  /// too.)
  const bool adapters_;
  std::map<TensorId, Copies> known_;
};

}  // namespace

void train_in_low_precision(Graph& graph, const LowPrecisionForm& form) {
  graph = NarrowProducts(graph, form).run();
  validate_if_debug(graph);
}

void cast_weights(Graph& graph, const LowPrecisionForm& form) {
  int64_t elements = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kBuffer || tensor.dtype != form.dtype) continue;
    const int64_t all =
        checked_multiply(element_count(tensor.shape), graph.repeat_of(tensor.segment));
    elements = checked_add(elements, all);
  }
  const bool both = form.transposes && form.keeps_transposed;
  elements /= both ? 2 : 1;
  if (elements == 0) return;
  GraphBuilder b(graph);
  b.begin_segment(fmt::format("{}_weights", dtype_name(form.dtype)), 1);
  b.set_phase(Phase::kOptimizer);
  const TensorId weights = b.tensor({.name = "parameters",
                                     .shape = {1, elements},
                                     .dtype = DType::kBf16,
                                     .kind = TensorKind::kReference,
                                     .segment = b.current_segment()});
  const std::vector<TensorId> copies =
      b.add(cast_of(form), {weights}, fmt::format("optimizer.{}", cast_of(form)),
            {{"transposed", both ? 1 : 0}, {"scaled_first", scaled_first(form)}});
  for (const TensorId id : copies) graph.tensor(id).kind = TensorKind::kReference;
  validate_if_debug(graph);
}

}  // namespace tilecast
