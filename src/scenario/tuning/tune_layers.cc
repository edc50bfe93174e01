#include "scenario/tuning/tune_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ops/op_def.h"
#include "scenario/pass/pass.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using tuning::ConvPass;
using tuning::ConvProblem;

/// The operators of convolutions: gradients read dy, x and the weight.
const std::map<std::string_view, ConvPass, std::less<>> kOperators = {
    {"conv2d", ConvPass::kForward},
    {"conv2d_input_backward", ConvPass::kInputGradient},
    {"conv2d_weight_backward", ConvPass::kWeightGradient},
    {"conv", ConvPass::kForward},
    {"conv_input_backward", ConvPass::kInputGradient},
    {"conv_weight_backward", ConvPass::kWeightGradient}};

/// Both numbers of a list, or its default where the node states none.
std::pair<int64_t, int64_t> pair_of(const Node& node, std::string_view name, int64_t fallback) {
  const AttributeValue* value = node.find_attribute(name);
  if (value == nullptr) return {fallback, fallback};
  const auto& list = std::get<std::vector<int64_t>>(*value);
  return {list.at(0), list.at(1)};
}

int64_t integer_of(const Node& node, std::string_view name) {
  const AttributeValue* value = node.find_attribute(name);
  return value == nullptr ? 0 : std::get<int64_t>(*value);
}

/// Why MIOpen's 2-D solvers have no such problem; "" if they have.
std::string set_window(ConvProblem& p, const Node& node, std::string_view op) {
  if (op.starts_with("conv2d")) {
    p.stride_h = p.stride_w = std::max<int64_t>(1, integer_of(node, "stride"));
    p.pad_h = p.pad_w = integer_of(node, "padding");
    p.channels_last = integer_of(node, "channels_last") != 0;
    // Audio is an image of height 1, over which nothing moves.
    if (p.h == 1 && p.r == 1) p.stride_h = 1, p.pad_h = 0;
    return "";
  }
  if (integer_of(node, "transposed") != 0) return "it is transposed";
  std::tie(p.stride_h, p.stride_w) = pair_of(node, "strides", 1);
  std::tie(p.dil_h, p.dil_w) = pair_of(node, "dilations", 1);
  const AttributeValue* value = node.find_attribute("pads");
  if (value == nullptr) return "";
  // Before all axes, then after them.
  const auto& pads = std::get<std::vector<int64_t>>(*value);
  if (pads.size() == 4 && (pads[0] != pads[2] || pads[1] != pads[3]))
    return "its padding differs between the sides of an axis";
  p.pad_h = pads.at(0);
  p.pad_w = pads.at(1);
  return "";
}

/// nullopt: left out, with a warning.
std::optional<ConvProblem> problem_of(const Graph& graph, const Node& node, ConvPass pass,
                                      std::vector<std::string>& warnings) {
  const std::string_view op = op_def(node.op).name;
  const size_t first = pass == ConvPass::kForward ? 0 : 1;
  const auto tensor = [&](TensorId id) { return graph.tensors[static_cast<size_t>(id)]; };
  const Tensor x = tensor(node.inputs.at(first)), w = tensor(node.inputs.at(first + 1));
  const auto leave_out = [&](std::string_view why) {
    warnings.push_back(fmt::format("{}: {}; left out", node.name, why));
    return std::nullopt;
  };
  if (x.shape.size() != 4) return leave_out("it is no convolution in 2-D");
  ConvProblem p{.pass = pass,
                .dtype = tensor(node.outputs.at(0)).dtype,
                .n = x.shape[0],
                .c = x.shape[1],
                .h = x.shape[2],
                .w = x.shape[3],
                .k = w.shape[0],
                .r = w.shape[2],
                .s = w.shape[3]};
  if (p.dtype == DType::kTf32) p.dtype = DType::kFp32;
  p.group = std::max<int64_t>(1, integer_of(node, "groups"));
  const std::string why = set_window(p, node, op);
  if (!why.empty()) return leave_out(why);
  if (tuning::miopen_precision(p.dtype).empty())
    return leave_out(fmt::format("MIOpen has no {}", dtype_name(p.dtype)));
  complete_problem(p, node.name);
  return p;
}

}  // namespace

std::vector<NamedProblem> convolutions_of(const Model& model, const Device& device,
                                          const Request& request,
                                          std::vector<std::string>& warnings) {
  const CheckedPass pass = checked_pass(model, device, request);
  const Graph graph = build_graph(model, pass.request, pass.precision);
  std::vector<NamedProblem> problems;
  for (const Node& node : graph.nodes) {
    const auto known = kOperators.find(op_def(node.op).name);
    if (known == kOperators.end()) continue;
    const auto problem = problem_of(graph, node, known->second, warnings);
    if (!problem) continue;
    const bool seen = std::any_of(problems.begin(), problems.end(), [&](const NamedProblem& other) {
      return other.problem == *problem;
    });
    if (!seen) problems.push_back({node.name, *problem});
  }
  if (problems.empty() && warnings.empty())
    throw Error(ErrorKind::kUnsupported, model.name + ": the model has no convolution");
  return problems;
}

}  // namespace tilecast
