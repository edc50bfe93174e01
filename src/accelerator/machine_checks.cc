#include "accelerator/machine_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"

namespace tilecast::accelerator {
namespace {

bool is_stage(const std::string& kind) {
  return kind == "InstructionFetchStage" || kind == "PipelineStage" || kind == "ExecuteStage";
}
bool is_unit(const std::string& kind) {
  return kind == "FunctionalUnit" || kind == "MemoryAccessUnit";
}
bool is_storage(const std::string& kind) { return kind == "Memory" || kind == "RegisterFile"; }

void check_kinds(const ObjectGraph& graph, const std::string& where) {
  for (size_t i = 0; i < graph.names.size(); ++i) {
    const auto check = [&](const std::vector<int>& targets, const char* edge, auto accepts) {
      for (const int target : targets) {
        const std::string& kind = graph.kinds[static_cast<size_t>(target)];
        if (!accepts(kind))
          fail_input(
              where,
              fmt::format("object '{}': '{}' names '{}', which is a {}", shown_name(graph.names[i]),
                          edge, shown_name(graph.names[static_cast<size_t>(target)]), kind));
      }
    };
    check(graph.forward[i], "forward", [](const std::string& kind) {
      return kind == "PipelineStage" || kind == "ExecuteStage";
    });
    check(graph.contains[i], "contains", is_unit);
    check(graph.reads[i], "reads", is_storage);
    check(graph.writes[i], "writes", is_storage);
  }
}

/// Objects reached over forward and contains edges; throws where forward edges form a cycle.
class Walk {
 public:
  Walk(const ObjectGraph& graph, const std::string& where)
      : reached(graph.names.size()), graph_(graph), where_(where), open_(graph.names.size()) {}

  void visit(int object) {
    const auto i = static_cast<size_t>(object);
    if (open_[i])
      fail_input(where_,
                 fmt::format("forward edges form a cycle through '{}'; an instruction must get "
                             "to a unit",
                             shown_name(graph_.names[i])));
    if (reached[i]) return;
    reached[i] = true;
    open_[i] = true;
    for (const int next : graph_.forward[i]) visit(next);
    for (const int unit : graph_.contains[i]) reached[static_cast<size_t>(unit)] = true;
    open_[i] = false;
  }
  std::vector<bool> reached;

 private:
  const ObjectGraph& graph_;
  const std::string& where_;
  std::vector<bool> open_;
};

void check_storage(const ObjectGraph& graph, const std::string& where) {
  const auto names_it = [](const std::vector<std::vector<int>>& edges, int object) {
    return std::any_of(edges.begin(), edges.end(), [&](const std::vector<int>& targets) {
      return std::find(targets.begin(), targets.end(), object) != targets.end();
    });
  };
  for (size_t i = 0; i < graph.names.size(); ++i) {
    if (!is_storage(graph.kinds[i])) continue;
    const bool read = names_it(graph.reads, static_cast<int>(i));
    if (!read && names_it(graph.writes, static_cast<int>(i)))
      fail_input(where, fmt::format("object '{}' is written and never read; a unit must list it in "
                                    "'reads', or nothing needs it",
                                    shown_name(graph.names[i])));
  }
}

}  // namespace

void check_objects(const ObjectGraph& graph, const std::string& where) {
  check_kinds(graph, where);
  Walk walk(graph, where);
  // First from the fetch stages; what is left may still form a cycle of its own.
  for (size_t i = 0; i < graph.names.size(); ++i)
    if (graph.kinds[i] == "InstructionFetchStage") walk.visit(static_cast<int>(i));
  const std::vector<bool> reached = walk.reached;
  for (size_t i = 0; i < graph.names.size(); ++i)
    if (is_stage(graph.kinds[i])) walk.visit(static_cast<int>(i));
  for (size_t i = 0; i < graph.names.size(); ++i) {
    if (!reached[i] && !is_storage(graph.kinds[i]))
      fail_input(where,
                 fmt::format("object '{}': no instruction can reach it; connect it with 'forward' "
                             "or 'contains' to an InstructionFetchStage",
                             shown_name(graph.names[i])));
  }
  check_storage(graph, where);
}

std::vector<int> path_to_unit(const ObjectGraph& graph, int unit) {
  std::vector<int> path;
  const auto search = [&](const auto& self, int object) -> bool {
    const auto i = static_cast<size_t>(object);
    path.push_back(object);
    const std::vector<int>& inside = graph.contains[i];
    if (std::find(inside.begin(), inside.end(), unit) != inside.end()) return true;
    for (const int next : graph.forward[i])
      if (self(self, next)) return true;
    path.pop_back();
    return false;
  };
  for (size_t i = 0; i < graph.names.size(); ++i)
    if (graph.kinds[i] == "InstructionFetchStage" && search(search, static_cast<int>(i))) break;
  return path;
}

const std::vector<std::string>& instruction_attributes() {
  static const std::vector<std::string> names = {
      "n", "k", "c", "p", "q", "r", "s", "rows", "bytes", "requests", "misses", "fresh", "pool"};
  return names;
}

void check_names(const Expression& expression, const std::vector<Parameter>& parameters,
                 const std::string& where) {
  std::vector<std::string> known = instruction_attributes();
  for (const Parameter& parameter : parameters) known.push_back(parameter.name);
  for (const std::string& name : expression.names()) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail_input(where, fmt::format("'{}': unknown name '{}'{}", shown_name(expression.text()),
                                    shown_name(name), did_you_mean(name, known)));
  }
}

}  // namespace tilecast::accelerator
