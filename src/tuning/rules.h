#pragma once

// The rules of one solver: which tuning parameters ("tokens") it has, in which order, what values
// each may take, and which inequalities over tokens and problem sizes a legal set meets. A file of
// data/tuning/rules is the one place of a solver; docs/explanation/tuning.md describes its lines.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expression.h"

namespace tilecast::tuning {

/// The sizes of a problem by name, as rules see them.
using Sizes = std::map<std::string, double, std::less<>>;

struct Token {
  std::string name;
  std::vector<int64_t> values;  ///< ascending
};

/// The rules with a problem's sizes filled in. Its functions are quick and never throw.
class BoundRules;

class RuleFile {
 public:
  /// Throws Error{kInput} with file and line: a line that is none, an unknown name, a rule that no
  /// set of parameters meets on any of the sample problems of the file's kind.
  static RuleFile parse(std::string_view text, const std::string& where);

  const std::string& solver() const { return solver_; }
  std::span<const Token> tokens() const { return tokens_; }
  /// Whether the solver takes a problem of such sizes at all.
  bool takes(const Sizes& sizes) const;

 private:
  friend class BoundRules;
  friend class RuleParser;
  struct Rule {
    size_t line = 0;
    std::string text;
    BoundExpression condition;
    size_t last = 0;  ///< tokens that must be known to check it: 0, none
  };
  struct Definition {
    std::string name;
    BoundExpression value;
    size_t last = 0;
  };
  void check_satisfiable(const std::string& where) const;

  std::string solver_;
  std::vector<Token> tokens_;
  std::vector<std::string> sizes_;  ///< names of problem sizes that it uses, then definitions
  std::vector<Definition> definitions_;
  std::vector<Rule> conditions_;  ///< of the problem
  std::vector<Rule> rules_;       ///< by `last`
};

class BoundRules {
 public:
  /// `rules` must outlive it.
  BoundRules(const RuleFile& rules, const Sizes& sizes);

  /// Whether the solver takes the problem.
  bool takes() const { return takes_; }
  /// Whether all tokens are in range and all rules hold. Too few or too many tokens: false.
  bool accepts(std::span<const int64_t> tokens) const;
  /// The first rule that the tokens break, as the file has it; "" if none.
  std::string broken_rule(std::span<const int64_t> tokens) const;
  /// Whether the last of `prefix` is in range and meets all rules on it and those before; these are
  /// taken as checked.
  bool allows_last(std::span<const int64_t> prefix) const;
  /// A legal set that begins with a prefix whose tokens are allowed, with tokens out of `values`
  /// only; nullopt if there is none: look-ahead, by depth-first search.
  std::optional<std::vector<int64_t>> complete(std::vector<int64_t> prefix,
                                               std::span<const int64_t> values) const;

 private:
  void define(size_t known) const;
  bool meets(size_t known) const;

  const RuleFile& rules_;
  /// Sizes, definitions, tokens: where BoundExpressions read. Scratch space, so one search has one.
  mutable std::vector<double> places_;
  bool takes_ = true;
};

/// Rule files of data/tuning/rules by solver; nullptr if there is none.
const RuleFile* find_rules(std::string_view solver);
std::vector<const RuleFile*> bundled_rules();

}  // namespace tilecast::tuning
