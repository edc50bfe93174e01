#include "tuning/beam.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/budget.h"

namespace tilecast::tuning {
namespace {

/// A prefix in the beam, with a legal set that begins with it.
struct Hypothesis {
  std::vector<int64_t> tokens, witness;
  Translator::Prefix state;
  size_t last = 0;  ///< the place of the last token in the translator's values
  double log_probability = 0;
};

/// A token that may follow a hypothesis.
struct Candidate {
  size_t hypothesis, place;
  double log_probability;
};

/// The tokens that the rules on the prefix allow, with probabilities among these.
void add_candidates(const std::vector<float>& log_probabilities, std::span<const int64_t> values,
                    const BoundRules& rules, Hypothesis& from, size_t index,
                    std::vector<Candidate>& candidates) {
  const size_t first = candidates.size();
  double total = 0;
  for (size_t v = 0; v < values.size(); ++v) {
    from.tokens.push_back(values[v]);
    if (rules.allows_last(from.tokens)) {
      const auto log_probability = static_cast<double>(log_probabilities[v]);
      total += std::exp(log_probability);
      candidates.push_back({index, v, log_probability});
    }
    from.tokens.pop_back();
  }
  const double among = std::log(std::max(total, 1e-300));
  for (size_t i = first; i < candidates.size(); ++i)
    candidates[i].log_probability += from.log_probability - among;
}

/// A copy with room for the next token: its vectors grow without moving.
Translator::Prefix with_room(const Translator::Prefix& prefix) {
  Translator::Prefix copy{prefix.length, {}, {}};
  const auto copy_all = [&](const auto& from, auto& to) {
    to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      to[i].reserve(from[i].size() / prefix.length * (prefix.length + 1));
      to[i].assign(from[i].begin(), from[i].end());
    }
  };
  copy_all(prefix.keys, copy.keys);
  copy_all(prefix.values, copy.values);
  return copy;
}

/// The hypothesis that the candidate leads to, without a state; nullopt if no legal set begins with
/// it.
std::optional<Hypothesis> extended(const Hypothesis& from, const Candidate& candidate,
                                   const BoundRules& rules, std::span<const int64_t> values) {
  Hypothesis next{from.tokens, {}, {}, candidate.place, candidate.log_probability};
  const int64_t value = values[candidate.place];
  next.tokens.push_back(value);
  if (from.witness.size() >= next.tokens.size() && from.witness[from.tokens.size()] == value) {
    next.witness = from.witness;
  } else if (auto witness = rules.complete(next.tokens, values)) {
    next.witness = *std::move(witness);
  } else {
    return std::nullopt;
  }
  return next;
}

}  // namespace

Sizes sizes_of(const ConvProblem& p) {
  Sizes s;
  const auto set = [&](const char* name, int64_t value) { s[name] = static_cast<double>(value); };
  const std::pair<const char*, int64_t> sizes[] = {{"n", p.n},
                                                   {"c", p.c},
                                                   {"h", p.h},
                                                   {"w", p.w},
                                                   {"k", p.k},
                                                   {"oh", p.oh},
                                                   {"ow", p.ow},
                                                   {"r", p.r},
                                                   {"s", p.s},
                                                   {"pad_h", p.pad_h},
                                                   {"pad_w", p.pad_w},
                                                   {"stride_h", p.stride_h},
                                                   {"stride_w", p.stride_w},
                                                   {"dil_h", p.dil_h},
                                                   {"dil_w", p.dil_w},
                                                   {"group", p.group},
                                                   {"bytes", dtype_bits(p.dtype) / 8}};
  for (const auto& [name, value] : sizes) set(name, value);
  set("forward", p.pass == ConvPass::kForward ? 1 : 0);
  set("input_gradient", p.pass == ConvPass::kInputGradient ? 1 : 0);
  set("weight_gradient", p.pass == ConvPass::kWeightGradient ? 1 : 0);
  set("fp32", p.dtype == DType::kFp32 ? 1 : 0);
  set("fp16", p.dtype == DType::kFp16 ? 1 : 0);
  set("bf16", p.dtype == DType::kBf16 ? 1 : 0);
  set("int8", p.dtype == DType::kInt8 ? 1 : 0);
  set("nhwc", p.channels_last ? 1 : 0);
  return s;
}

std::vector<LegalSet> search_parameters(const Translator& translator, const RuleFile& file,
                                        const ConvProblem& problem, const TunedChip& chip,
                                        size_t beam, size_t top) {
  if (!translator.solver(file.solver())) return {};
  return search_parameters(translator, file, {sizes_of(problem), source_text(problem, chip), chip},
                           beam, top);
}

std::vector<LegalSet> search_parameters(const Translator& translator, const RuleFile& file,
                                        const SearchProblem& problem, size_t beam, size_t top) {
  const std::optional<size_t> solver = translator.solver(file.solver());
  const BoundRules rules(file, problem.sizes);
  if (!solver || !rules.takes()) return {};
  const std::span<const int64_t> values = translator.values();
  auto first = rules.complete({}, values);
  if (!first) return {};
  const Translator::Source source = translator.read(problem.text, problem.chip, *solver);
  std::vector<Hypothesis> hypotheses(1);
  hypotheses[0].witness = *std::move(first);
  hypotheses[0].state = translator.start();
  hypotheses[0].last = values.size();  // the start
  for (size_t step = 0; step < file.tokens().size(); ++step) {
    Budget::here().check("searching parameters of a kernel");
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      Hypothesis& from = hypotheses[i];
      const std::vector<float> next = translator.next(source, from.state, from.last);
      add_candidates(next, values, rules, from, i, candidates);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.log_probability > b.log_probability;
                     });
    std::vector<Hypothesis> kept;
    for (const Candidate& candidate : candidates) {
      if (kept.size() == beam) break;
      const Hypothesis& from = hypotheses[candidate.hypothesis];
      auto next = extended(from, candidate, rules, values);
      if (!next) continue;
      // Nothing follows the last token.
      if (step + 1 < file.tokens().size()) next->state = with_room(from.state);
      kept.push_back(*std::move(next));
    }
    hypotheses = std::move(kept);
  }
  std::vector<LegalSet> sets;
  for (Hypothesis& h : hypotheses)
    if (sets.size() < top) sets.push_back({std::move(h.tokens), h.log_probability});
  return sets;
}

std::string format_tokens(const std::vector<int64_t>& tokens) {
  return fmt::format("{}", fmt::join(tokens, ","));
}

}  // namespace tilecast::tuning
