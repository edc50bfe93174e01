#include "many/sweep_front.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "tilecast/request.h"

namespace tilecast {
namespace {

using Better = SweepField::Better;

[[noreturn]] void refuse_front(const std::string& name, const std::string& why) {
  throw OptionError(fmt::format("`pareto` '{}': {}", shown_name(name), why));
}

std::vector<std::string> known_names(const SweepSpec& spec) {
  std::vector<std::string> names;
  for (const SweepField& field : sweep_fields()) {
    if (field.better == Better::kNeither) continue;
    names.emplace_back(field.name);
    if (!field.other_name.empty()) names.emplace_back(field.other_name);
  }
  for (const SweepColumn& column : spec.columns())
    if (column.values.type() != SweepType::kText) names.push_back(column.name);
  return names;
}

/// A field of the results, or a column of the spec; the name without min: or max:.
FrontField field_named(const std::string& name, std::optional<bool> more, const SweepSpec& spec) {
  const auto fields = sweep_fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].better == Better::kNeither) continue;
    if (name == fields[i].name || (!name.empty() && name == fields[i].other_name))
      return {.column = 1 + spec.columns().size() + i,
              .name = std::string(fields[i].name),
              .more_is_better = more.value_or(fields[i].better == Better::kMore)};
  }
  for (size_t c = 0; c < spec.columns().size(); ++c) {
    const SweepColumn& column = spec.columns()[c];
    if (column.name != name || column.values.type() == SweepType::kText) continue;
    if (!more)
      refuse_front(name, fmt::format("is a column of the spec: say which is better, min:{} or "
                                     "max:{}",
                                     name, name));
    return {.column = 1 + c, .name = name, .more_is_better = *more};
  }
  const std::vector<std::string> known = known_names(spec);
  refuse_front(name, fmt::format("no number of a row has this name{}; known: {}",
                                 did_you_mean(name, known), join(known, ", ")));
}

}  // namespace

std::vector<FrontField> front_fields(const std::vector<std::string>& names, const SweepSpec& spec) {
  std::vector<FrontField> fields;
  for (const std::string& given : names) {
    std::optional<bool> more;
    std::string name = given;
    if (given.starts_with("min:") || given.starts_with("max:")) {
      more = given.starts_with("max:");
      name = given.substr(4);
    }
    fields.push_back(field_named(name, more, spec));
    for (size_t i = 0; i + 1 < fields.size(); ++i)
      if (fields[i].column == fields.back().column) refuse_front(given, "is given twice");
  }
  return fields;
}

SweepFront::SweepFront(std::vector<FrontField> fields, std::vector<size_t> groups)
    : fields_(std::move(fields)), groups_(std::move(groups)) {}

bool SweepFront::beats(const Point& a, const Point& b) {
  for (size_t i = 0; i < a.costs.size(); ++i)
    if (a.costs[i] > b.costs[i]) return false;
  return a.costs != b.costs;
}

void SweepFront::take(const std::vector<std::string>& cells) {
  Point point;
  for (const FrontField& field : fields_) {
    const std::optional<double> number = parse_number<double>(cells[field.column]);
    if (!number) return;
    point.costs.push_back(field.more_is_better ? -*number : *number);
  }
  point.index = parse_number<int64_t>(cells.front()).value_or(0);
  std::vector<std::string> group;
  for (const size_t column : groups_) group.push_back(cells[column]);
  std::vector<Point>& others = alike_[group];
  if (std::any_of(others.begin(), others.end(),
                  [&](const Point& other) { return beats(other, point); }))
    return;
  std::erase_if(others, [&](const Point& other) { return beats(point, other); });
  others.push_back(std::move(point));
}

std::vector<int64_t> SweepFront::points() const {
  std::vector<int64_t> indices;
  for (const auto& [group, points] : alike_) {
    std::vector<Point> sorted = points;
    std::sort(sorted.begin(), sorted.end(), [](const Point& a, const Point& b) {
      return std::tie(a.costs.front(), a.index) < std::tie(b.costs.front(), b.index);
    });
    for (const Point& point : sorted) indices.push_back(point.index);
  }
  return indices;
}

}  // namespace tilecast
