// Operators of a trace without any work of a GPU: of a program on CPUs, or an execution trace,
// which states no times. Their work is known all the same.

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "profile/operators.h"

namespace tilecast {
namespace {

/// Operators that give a view or memory, and run no kernel.
bool runs_nothing(std::string_view name) {
  static constexpr std::string_view kNames[] = {"_conj",
                                                "_reshape_alias",
                                                "_unsafe_view",
                                                "alias",
                                                "as_strided",
                                                "as_strided_",
                                                "broadcast_to",
                                                "chunk",
                                                "contiguous",
                                                "detach",
                                                "detach_",
                                                "diagonal",
                                                "empty",
                                                "empty_like",
                                                "empty_strided",
                                                "expand",
                                                "expand_as",
                                                "flatten",
                                                "is_nonzero",
                                                "item",
                                                "lift_fresh",
                                                "movedim",
                                                "narrow",
                                                "new_empty",
                                                "new_empty_strided",
                                                "numpy_T",
                                                "permute",
                                                "real",
                                                "reshape",
                                                "resize_",
                                                "resolve_conj",
                                                "resolve_neg",
                                                "result_type",
                                                "select",
                                                "set_",
                                                "slice",
                                                "split",
                                                "split_with_sizes",
                                                "squeeze",
                                                "squeeze_",
                                                "swapaxes",
                                                "t",
                                                "t_",
                                                "to",
                                                "transpose",
                                                "transpose_",
                                                "unbind",
                                                "unflatten",
                                                "unfold",
                                                "unsafe_split",
                                                "unsqueeze",
                                                "unsqueeze_",
                                                "view",
                                                "view_as"};
  return std::find(std::begin(kNames), std::end(kNames), without_aten(name)) != std::end(kNames);
}

struct OpenOperator {
  size_t index = 0;
  bool known_within = false;  ///< an operator that it called has work
  bool is_leaf = true;        ///< it called none that runs anything
  bool is_part = false;       ///< of an operator that a GPU runs as one kernel
};

/// Products with a bias are one kernel on GPUs; on CPUs they call a copy and a product.
bool is_whole(const OperatorCall& call) { return product_place(without_aten(call.name)) == 1; }

}  // namespace

RecordedOperators recorded_operators(const ProfilerTrace& trace) {
  RecordedOperators result;
  std::vector<std::optional<CallWork>> works;
  works.reserve(trace.calls.size());
  for (const OperatorCall& call : trace.calls)
    works.push_back(runs_nothing(call.name) ? std::nullopt : work_of(call));
  std::map<int32_t, OperatorGroup> groups;
  std::map<int32_t, std::vector<OpenOperator>> threads;
  const auto close = [&](std::vector<OpenOperator>& stack) {
    const OpenOperator one = stack.back();
    stack.pop_back();
    const int32_t call = trace.operators[one.index].call;
    const bool known = works[static_cast<size_t>(call)].has_value();
    const std::string& name = trace.calls[static_cast<size_t>(call)].name;
    if (one.is_part) return;
    if (known && (!one.known_within || is_whole(trace.calls[static_cast<size_t>(call)]))) {
      OperatorGroup& group = groups[call];
      group.call = call;
      group.calls += 1;
    } else if (!known && one.is_leaf && !runs_nothing(name)) {
      ++result.unknown[name];
    }
    if (stack.empty()) return;
    stack.back().known_within = stack.back().known_within || known || one.known_within;
    stack.back().is_leaf = stack.back().is_leaf && runs_nothing(name);
  };
  for (size_t i = 0; i < trace.operators.size(); ++i) {
    const HostOperator& op = trace.operators[i];
    std::vector<OpenOperator>& stack = threads[op.thread];
    while (!stack.empty() && trace.operators[stack.back().index].end_ns() <= op.start_ns)
      close(stack);
    const bool part =
        !stack.empty() &&
        (stack.back().is_part ||
         is_whole(trace.calls[static_cast<size_t>(trace.operators[stack.back().index].call)]));
    stack.push_back({.index = i, .is_part = part});
  }
  for (auto& [thread, stack] : threads)
    while (!stack.empty()) close(stack);
  for (auto& [call, group] : groups) {
    group.kernel = -1;
    group.work = *works[static_cast<size_t>(call)];
    group.kind = group.work.by_traffic ? TracedKind::kTraffic : TracedKind::kForecast;
    result.groups.push_back(std::move(group));
  }
  return result;
}

}  // namespace tilecast
