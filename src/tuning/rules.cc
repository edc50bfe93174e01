#include "tuning/rules.h"

#include <algorithm>

#include "base/embedded.h"
#include "tuning/rule_parser.h"

namespace tilecast::tuning {
namespace {

/// Prefixes that a search for one legal set visits at most. The search orders values so that small
/// sets come first; the bundled rules need at most some thousands (rules_test.cc).
constexpr size_t kMostVisits = 200000;

}  // namespace

bool RuleFile::takes(const Sizes& sizes) const { return BoundRules(*this, sizes).takes(); }

BoundRules::BoundRules(const RuleFile& rules, const Sizes& sizes) : rules_(rules) {
  places_.resize(rules.sizes_.size() + rules.tokens_.size());
  const size_t given = rules.sizes_.size() - rules.definitions_.size();
  for (size_t i = 0; i < given; ++i) {
    const auto it = sizes.find(rules.sizes_[i]);
    places_[i] = it == sizes.end() ? 0 : it->second;
  }
  define(0);
  takes_ =
      std::all_of(rules.conditions_.begin(), rules.conditions_.end(),
                  [&](const RuleFile::Rule& rule) { return rule.condition.evaluate(places_) > 0; });
}

/// Definitions whose last token is number `known`.
void BoundRules::define(size_t known) const {
  const size_t given = rules_.sizes_.size() - rules_.definitions_.size();
  for (size_t i = 0; i < rules_.definitions_.size(); ++i)
    if (rules_.definitions_[i].last == known)
      places_[given + i] = rules_.definitions_[i].value.evaluate(places_);
}

bool BoundRules::meets(size_t known) const {
  for (const RuleFile::Rule& rule : rules_.rules_) {
    if (rule.last > known) break;
    if (rule.last == known && !(rule.condition.evaluate(places_) > 0)) return false;
  }
  return true;
}

bool BoundRules::allows_last(std::span<const int64_t> prefix) const {
  const size_t count = prefix.size();
  if (!takes_ || count == 0 || count > rules_.tokens_.size()) return false;
  const std::vector<int64_t>& values = rules_.tokens_[count - 1].values;
  if (!std::binary_search(values.begin(), values.end(), prefix.back())) return false;
  for (size_t i = 0; i < count; ++i) {
    places_[rules_.sizes_.size() + i] = static_cast<double>(prefix[i]);
    define(i + 1);
  }
  return meets(count);
}

bool BoundRules::accepts(std::span<const int64_t> tokens) const {
  if (tokens.size() != rules_.tokens_.size()) return false;
  for (size_t count = 1; count <= tokens.size(); ++count)
    if (!allows_last(tokens.first(count))) return false;
  return true;
}

std::string BoundRules::broken_rule(std::span<const int64_t> tokens) const {
  if (!takes_) {
    for (const RuleFile::Rule& rule : rules_.conditions_)
      if (!(rule.condition.evaluate(places_) > 0)) return rule.text;
  }
  if (tokens.size() != rules_.tokens_.size()) return "the number of parameters";
  for (size_t count = 1; count <= tokens.size(); ++count) {
    if (allows_last(tokens.first(count))) continue;
    for (const RuleFile::Rule& rule : rules_.rules_)
      if (rule.last == count && !(rule.condition.evaluate(places_) > 0)) return rule.text;
    return "the values of " + rules_.tokens_[count - 1].name;
  }
  return "";
}

std::optional<std::vector<int64_t>> BoundRules::complete(std::vector<int64_t> prefix,
                                                         std::span<const int64_t> values) const {
  if (!takes_) return std::nullopt;
  const size_t first = prefix.size(), last = rules_.tokens_.size();
  if (first == last) return prefix;
  // The position that each level of the search tries next.
  std::vector<size_t> next(last + 1, 0);
  size_t visits = 0;
  while (visits++ < kMostVisits) {
    const size_t level = prefix.size();
    if (level == last) return prefix;
    const std::vector<int64_t>& choices = rules_.tokens_[level].values;
    if (next[level] == choices.size()) {
      if (level == first) return std::nullopt;
      next[level] = 0;
      prefix.pop_back();
      continue;
    }
    const int64_t value = choices[next[level]++];
    if (std::find(values.begin(), values.end(), value) == values.end()) continue;
    prefix.push_back(value);
    if (!allows_last(prefix)) prefix.pop_back();
  }
  return std::nullopt;
}

std::vector<const RuleFile*> bundled_rules() {
  static const std::vector<RuleFile> files = [] {
    std::vector<RuleFile> all;
    for (const EmbeddedFile& file : embedded_files("tuning/rules/"))
      all.push_back(RuleFile::parse(file.content, "data/" + std::string(file.path)));
    return all;
  }();
  std::vector<const RuleFile*> rules;
  for (const RuleFile& file : files) rules.push_back(&file);
  return rules;
}

const RuleFile* find_rules(std::string_view solver) {
  for (const RuleFile* rules : bundled_rules())
    if (rules->solver() == solver) return rules;
  return nullptr;
}

}  // namespace tilecast::tuning
