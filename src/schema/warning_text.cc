// Warnings as sentences.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "schema/warning_table.h"

namespace tilecast {
namespace {

using FactValue = std::variant<int64_t, double, std::string>;

bool has_type(const FactValue& value, FactKind kind) {
  switch (kind) {
    case FactKind::kText:
      return std::holds_alternative<std::string>(value);
    case FactKind::kNumber:
    case FactKind::kSeconds:
      return std::holds_alternative<double>(value);
    case FactKind::kWhole:
    case FactKind::kFlag:
    case FactKind::kBytes:
      break;
  }
  return std::holds_alternative<int64_t>(value);
}

const FactValue* find_value(const Warning& warning, std::string_view name) {
  for (const WarningFact& fact : warning.facts) {
    if (fact.name == name) return &fact.value;
  }
  return nullptr;
}

/// A warning has the facts of its code and no others.
void check_facts(const Warning& warning, const WarningDef& def) {
  size_t known = 0;
  for (const FactDef& fact : def.facts) {
    const FactValue* value = find_value(warning, fact.name);
    TILECAST_CHECK(value != nullptr || fact.optional) << def.name << ": " << fact.name;
    if (value == nullptr) continue;
    TILECAST_CHECK(has_type(*value, fact.kind)) << def.name << ": " << fact.name;
    ++known;
  }
  TILECAST_CHECK(known == warning.facts.size())
      << def.name << ": a fact that the code does not have";
}

std::string shown(const FactDef& fact, const FactValue* value) {
  if (value == nullptr) return std::string(fact.absent);
  std::string text;
  switch (fact.kind) {
    case FactKind::kText:
      text = std::get<std::string>(*value);
      break;
    case FactKind::kWhole:
      text = fmt::to_string(std::get<int64_t>(*value));
      break;
    case FactKind::kFlag:
      text = std::get<int64_t>(*value) != 0 ? fact.if_1 : fact.if_0;
      break;
    case FactKind::kBytes:
      text = format_bytes(std::get<int64_t>(*value));
      break;
    case FactKind::kNumber:
      text = fmt::format("{:.3g}", std::get<double>(*value));
      break;
    case FactKind::kSeconds:
      text = format_seconds(std::get<double>(*value));
      break;
  }
  return text.append(fact.after);
}

/// "34 %"; "less than 1 %" where rounding would say 0 %.
std::string share_text(double share) {
  return share < 0.005 ? "less than 1 %" : fmt::format("{:.0f} %", 100 * share);
}

std::string word(const Warning& warning, const WarningDef& def, std::string_view name) {
  if (name == "subject") return warning.subject;
  if (name == "step") return warning.subject.empty() ? "" : warning.subject + ": ";
  if (name == "share") return share_text(warning.share);
  if (name == "share:.0f") return fmt::format("{:.0f} %", 100 * warning.share);
  if (name == "share:.1f") return fmt::format("{:.1f} %", 100 * warning.share);
  const auto fact = std::find_if(def.facts.begin(), def.facts.end(),
                                 [&](const FactDef& one) { return one.name == name; });
  TILECAST_CHECK(fact != def.facts.end()) << def.name << ": {" << name << "}";
  return shown(*fact, find_value(warning, name));
}

}  // namespace

std::string_view warning_code_name(WarningCode code) { return warning_def(code).name; }

std::string warning_text(const Warning& warning) {
  const WarningDef& def = warning_def(warning.code);
  check_facts(warning, def);
  if (def.text != nullptr) return def.text(warning);
  std::string text;
  std::string_view rest = def.sentence;
  for (size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
    const size_t close = rest.find('}', open);
    text.append(rest.substr(0, open));
    text += word(warning, def, rest.substr(open + 1, close - open - 1));
    rest.remove_prefix(close + 1);
  }
  return text.append(rest);
}

std::vector<std::string> warning_texts(const std::vector<Warning>& warnings) {
  std::vector<std::string> texts;
  texts.reserve(warnings.size());
  for (const Warning& warning : warnings) texts.push_back(warning_text(warning));
  return texts;
}

std::vector<std::string> warning_code_names(const std::vector<Warning>& warnings) {
  std::vector<std::string> names;
  names.reserve(warnings.size());
  for (const Warning& warning : warnings) names.emplace_back(warning_code_name(warning.code));
  return names;
}

}  // namespace tilecast
