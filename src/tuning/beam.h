#pragma once

// Beam search for tuning parameters: the translator says what is likely, the rules what is legal.

#include <optional>
#include <string>
#include <vector>

#include "tuning/rules.h"
#include "tuning/translator.h"

namespace tilecast::tuning {

struct LegalSet {
  std::vector<int64_t> tokens;
  /// Natural, of all tokens: those that the rules forbid are left out of each step's sum.
  double log_probability = 0;
};

/// The sizes of a problem as rules see them.
Sizes sizes_of(const ConvProblem& problem);

/// Facts of a problem that a search needs.
struct SearchProblem {
  Sizes sizes;
  SourceText text;
  TunedChip chip;
};

/// The `top` most likely legal sets that a beam of `beam` prefixes finds, the best first. A prefix
/// stays in the beam only if a legal set begins with it, so the beam never runs empty; the result
/// is empty only if the solver does not take the problem or has no legal set for it.
std::vector<LegalSet> search_parameters(const Translator& translator, const RuleFile& rules,
                                        const SearchProblem& problem, size_t beam, size_t top);
std::vector<LegalSet> search_parameters(const Translator& translator, const RuleFile& rules,
                                        const ConvProblem& problem, const TunedChip& chip,
                                        size_t beam, size_t top);

/// "1,16,4,64": as MIOpen's databases write a set.
std::string format_tokens(const std::vector<int64_t>& tokens);

}  // namespace tilecast::tuning
