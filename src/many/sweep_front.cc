#include "many/sweep_front.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

/// Leaves the front. A point can only be beaten by those before it in the
/// order of costs; with two fields the last one of them has the least second cost.
void SweepFront::reduce(std::vector<Point>& points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.costs, a.index) < std::tie(b.costs, b.index);
  });
  std::vector<Point> front;
  for (Point& point : points) {
    const auto last = point.costs.size() > 2 || front.empty() ? front.rend() : front.rbegin() + 1;
    if (std::none_of(front.rbegin(), last, [&](const Point& other) {
          return other.costs == point.costs || beats(other, point);
        }))
      front.push_back(std::move(point));
  }
  points = std::move(front);
}

void SweepFront::take(const std::vector<std::string>& cells) {
  Point point;
  for (const FrontField& field : fields_) {
    const std::optional<double> number = parse_number<double>(cells[field.column]);
    if (!number || std::isnan(*number)) return;
    point.costs.push_back(field.more_is_better ? -*number : *number);
  }
  point.index = parse_number<int64_t>(cells.front()).value_or(0);
  std::vector<std::string> names;
  for (const size_t column : groups_) names.push_back(cells[column]);
  Group& group = alike_[names];
  group.points.push_back(std::move(point));
  if (group.points.size() < group.most) return;
  reduce(group.points);
  group.most = std::max(group.most, 2 * group.points.size());
}

std::vector<int64_t> SweepFront::points() const {
  std::vector<int64_t> indices;
  for (const auto& [names, group] : alike_) {
    std::vector<Point> front = group.points;
    reduce(front);
    std::sort(front.begin(), front.end(), [](const Point& a, const Point& b) {
      return std::tie(a.costs.front(), a.index) < std::tie(b.costs.front(), b.index);
    });
    for (const Point& point : front) indices.push_back(point.index);
  }
  return indices;
}

}  // namespace tilecast
