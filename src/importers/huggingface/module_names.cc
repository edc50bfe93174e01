// Decides which modules a list in a quantization config refers to.

#include <algorithm>

#include "base/ascii.h"
#include "base/budget.h"
#include "importers/huggingface/quantization.h"
#include "importers/model.h"

namespace tilecast {
namespace {

/// "*" matches any text, also the empty one.
bool glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Whether the pattern matches what stands before one of the dots.
bool glob_start(std::string_view pattern, std::string_view text) {
  for (size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.', dot + 1)) {
    if (glob(pattern, text.substr(0, dot))) return true;
  }
  return false;
}

/// Whether the pattern matches a sequence of whole components of the module's dotted name.
bool glob_part(const std::string& pattern, std::string_view module) {
  const std::string_view literal = std::string_view(pattern).substr(0, pattern.find('*'));
  for (size_t start = 0;; ++start) {
    const std::string_view rest = module.substr(start);
    if (rest.starts_with(literal) && (glob(pattern, rest) || glob_start(pattern, rest)))
      return true;
    start = module.find('.', start);
    if (start == std::string_view::npos) return false;
  }
}

/// Whether std::regex interprets the pattern as Python's `re` does, with a small automaton. Other
/// escaped letters have a different meaning in Python (\A, \Z), large counts multiply the number of
/// states, and no published config has longer patterns.
bool is_readable(std::string_view regex) {
  constexpr size_t kLongest = 500;
  constexpr std::string_view kEscapes = "dDwWsSbBnrtfv";
  if (regex.empty() || regex.size() > kLongest) return false;
  size_t counts = 0;
  for (size_t i = 0; i < regex.size(); ++i) {
    const auto next = [&](size_t ahead) {
      return i + ahead < regex.size() ? regex[i + ahead] : char{0};
    };
    if (regex[i] == '\\') {
      if (is_digit(next(1)) ||
          (is_letter(next(1)) && kEscapes.find(regex[i + 1]) == std::string_view::npos))
        return false;
      ++i;
    } else if (regex[i] == '{') {
      const size_t close = regex.find('}', i);
      const std::string_view count = regex.substr(i + 1, std::min(close, regex.size()) - i - 1);
      constexpr size_t kMaxCounts = 3, kOneOrTwoDigits = 3;  // "2" or "1,3"
      if (++counts > kMaxCounts || count.size() > kOneOrTwoDigits ||
          (count.size() == 2 && count[1] != ',') || (count.size() == 3 && count[1] != ','))
        return false;
    }
  }
  return true;
}

/// libstdc++ can match without backtracking, which bounds the time by the product of the lengths.
constexpr auto kSyntax =
#ifdef __GLIBCXX__
    std::regex::ECMAScript | std::regex_constants::__polynomial;
#else
    std::regex::ECMAScript;
#endif

/// Prefixes that checkpoints put before the names of layers.
std::string_view without_wrappers(std::string_view name) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view wrapper :
         {"model.", "language_model.", "transformer.", "backbone."}) {
      if (!name.starts_with(wrapper)) continue;
      name.remove_prefix(wrapper.size());
      changed = true;
    }
  }
  return name;
}

/// The names of a module of the graph in published checkpoints.
std::vector<std::string> names_of(std::string_view module) {
  std::vector<std::string> names = {std::string(module)};
  const auto also = [&](std::string_view part, std::string_view other) {
    for (size_t i = 0, count = names.size(); i < count; ++i) {
      const size_t at = names[i].find(part);
      if (at == std::string::npos) continue;
      std::string name = names[i];
      names.push_back(name.replace(at, part.size(), other));
    }
  };
  // A fused projection of several stored matrices, which share a scheme.
  also(".qkv_proj", ".q_proj");
  also(".gate_up_proj", ".gate_proj");
  also(".qkv_a_proj", ".kv_a_proj_with_mqa");
  if (module.ends_with(".experts")) {
    const std::string whole(module);
    names.push_back(whole + ".0.down_proj");
    names.push_back(whole + ".0.w2");
  }
  also(".shared_experts.", ".shared_expert.");
  // GLM-5 excludes the weights of its indexer's heads under this name.
  also(".indexer.weights_proj", ".indexers_proj");
  also(".mlp.", ".block_sparse_moe.");
  also(".mlp.", ".feed_forward.");
  return names;
}

}  // namespace

bool ModuleNames::add(const std::string& name) {
  constexpr std::string_view kRegex = "re:";
  // Each is tried for every layer; published lists have up to 6.
  constexpr size_t kMaxPatterns = 50;
  if (name.starts_with(kRegex)) {
    const std::string pattern = name.substr(kRegex.size());
    if (!is_readable(pattern) || patterns_.size() >= kMaxPatterns) return false;
    try {
      patterns_.emplace_back(pattern, kSyntax);
    } catch (const std::regex_error&) {
      return false;
    }
    return true;
  }
  const std::string_view bare = without_wrappers(name);
  if (bare.empty()) return true;  // the prefix of all modules, which a list would not name
  if (bare.find('*') == std::string_view::npos) {
    exact_.emplace(bare);
  } else {
    // Published lists have up to 154 of them; each is tried for every layer, too.
    constexpr size_t kMaxGlobs = 1000, kLongestGlob = 500;
    if (globs_.size() >= kMaxGlobs || bare.size() > kLongestGlob) return false;
    globs_.emplace_back(bare);
  }
  return true;
}

bool ModuleNames::match_patterns(const std::string& name) const {
  // The pattern matches the whole name in the checkpoint from its start; names in the graph lack
  // the prefixes.
  for (const char* wrapper : {"model.", "", "language_model.model.", "model.language_model.",
                              "language_model.", "transformer.", "backbone."}) {
    const std::string whole = wrapper + name;
    for (const std::regex& pattern : patterns_) {
      if (std::regex_search(whole, pattern, std::regex_constants::match_continuous)) return true;
    }
  }
  return false;
}

bool ModuleNames::match(std::string_view module) const {
  if (empty()) return false;
  go_on("looking for the quantized modules of a config");
  for (const std::string& name : names_of(module)) {
    std::vector<size_t> starts = {0};
    for (size_t i = 0; i < name.size(); ++i) {
      if (name[i] == '.') starts.push_back(i + 1);
    }
    for (size_t first = 0; first < starts.size(); ++first) {
      for (size_t last = first; last < starts.size(); ++last) {
        const size_t end = last + 1 < starts.size() ? starts[last + 1] - 1 : name.size();
        if (exact_.count(name.substr(starts[first], end - starts[first])) > 0) return true;
      }
    }
    const auto fits = [&](const std::string& pattern) { return glob_part(pattern, name); };
    if (std::any_of(globs_.begin(), globs_.end(), fits) || match_patterns(name)) return true;
  }
  return false;
}

QuantScheme Quantization::of(std::string_view module) const {
  // The list of excluded modules takes precedence, as in vLLM 0.10 (compressed_tensors.py,
  // get_scheme).
  if (excluded.match(module)) return QuantScheme::kNone;
  for (const auto& [own, names] : named) {
    if (names.match(module)) return own;
  }
  const bool expert = module.ends_with(".experts");
  const bool plain = module == "lm_head" || is_router(module) || module.starts_with("embed");
  if (plain || (experts_only && !expert)) return QuantScheme::kNone;
  return scheme;
}

}  // namespace tilecast
