// Decides which modules a list in a quantization config refers to.

#include <algorithm>
#include <mutex>

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
bool glob_part(std::string_view pattern, std::string_view module) {
  const std::string_view literal = pattern.substr(0, pattern.find('*'));
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

/// Keeps the longest of the texts between calls of `end`.
class LongestText {
 public:
  void add(char c) { now_ += c; }
  /// The last letter is optional.
  void drop() {
    if (!now_.empty()) now_.pop_back();
  }
  void end() {
    if (now_.size() > longest_.size()) longest_ = now_;
    now_.clear();
  }
  std::string take() {
    end();
    return std::move(longest_);
  }

 private:
  std::string now_, longest_;
};

/// The longest part between two "*".
std::string needed_by_glob(std::string_view glob) {
  LongestText text;
  for (const char c : glob) {
    if (c == '*')
      text.end();
    else
      text.add(c);
  }
  return text.take();
}

/// The last character of the class or group that begins at `at`.
size_t end_of_brackets(std::string_view regex, size_t at) {
  size_t groups = 0;
  bool in_class = false;
  for (; at < regex.size(); ++at) {
    const char c = regex[at];
    if (c == '\\') {
      ++at;
    } else if (in_class) {
      in_class = c != ']';
    } else {
      in_class = c == '[';
      groups += c == '(' ? 1 : 0;
      groups -= c == ')' ? 1 : 0;
    }
    if (!in_class && groups == 0) return at;
  }
  return at;
}

/// A text that is part of all that the regular expression matches: letters that stand for
/// themselves, outside of groups. Most names lack it, and finding that out takes a hundredth of the
/// time of the expression.
std::string needed_by_regex(std::string_view regex) {
  // The first has no text that both sides need; of the others, which are rare, the end is in doubt.
  for (const char* unclear : {"|", "[]", "[^]", "[["}) {
    if (regex.find(unclear) != std::string_view::npos) return "";
  }
  LongestText text;
  for (size_t i = 0; i < regex.size(); ++i) {
    const char c = regex[i];
    if (c == '\\' && i + 1 < regex.size() && !is_letter(regex[i + 1])) {
      text.add(regex[++i]);
      continue;
    }
    if (std::string_view("\\[](){}^$.+*?").find(c) == std::string_view::npos) {
      text.add(c);
      continue;
    }
    if (c == '*' || c == '?' || c == '{') text.drop();
    text.end();
    if (c == '\\') ++i;
    if (c == '[' || c == '(') i = end_of_brackets(regex, i);
    if (c == '{') i = std::min(regex.find('}', i), regex.size());
  }
  return text.take();
}

/// Steps (`kNameSteps`) that a letter of a name takes at most: the automaton follows all ways side
/// by side, and counts repeat them.
size_t steps_of(std::string_view regex) {
  constexpr size_t kOfWay = 10;  // 60 ns, measured
  size_t ways = 1;
  for (size_t i = 0; i < regex.size(); ++i) {
    if (std::string_view("*+?|{").find(regex[i]) != std::string_view::npos) ++ways;
  }
  for (size_t i = regex.find('{'); i != std::string_view::npos; i = regex.find('{', i + 1)) {
    size_t most = 1, now = 0;
    for (const char c : regex.substr(i + 1, regex.find('}', i) - i - 1)) {
      now = is_digit(c) ? 10 * now + static_cast<size_t>(c - '0') : 0;
      most = std::max(most, now);
    }
    ways *= most;
  }
  return kOfWay * ways;
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
      patterns_.push_back(
          {std::regex(pattern, kSyntax), needed_by_regex(pattern), steps_of(pattern)});
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
    globs_.push_back({std::string(bare), needed_by_glob(bare)});
  }
  return true;
}

bool ModuleNames::match_exact(const std::string& name) const {
  if (exact_.empty()) return false;
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
  return false;
}

bool ModuleNames::match_globs(std::string_view name, NameSteps& steps) const {
  constexpr size_t kOfSearch = 4;  // for the part that is needed: 20 ns
  steps.add(kOfSearch * globs_.size());
  for (const Glob& glob : globs_) {
    if (name.find(glob.needed) == std::string_view::npos) continue;
    steps.add(glob.text.size() + name.size());
    if (glob_part(glob.text, name)) return true;
  }
  return false;
}

bool ModuleNames::match_patterns(const std::string& name, NameSteps& steps) const {
  if (patterns_.empty()) return false;
  // The pattern matches the whole name in the checkpoint from its start; names in the graph lack
  // the prefixes.
  for (const char* wrapper : {"model.", "", "language_model.model.", "model.language_model.",
                              "language_model.", "transformer.", "backbone."}) {
    const std::string whole = wrapper + name;
    for (const Pattern& pattern : patterns_) {
      if (whole.find(pattern.needed) == std::string::npos) continue;
      steps.add(pattern.letter_steps * whole.size());
      if (std::regex_search(whole, pattern.regex, std::regex_constants::match_continuous))
        return true;
    }
  }
  return false;
}

bool ModuleNames::match(std::string_view module, NameSteps& steps) const {
  if (empty()) return false;
  for (const std::string& name : names_of(module)) {
    if (match_exact(name) || match_globs(name, steps) || match_patterns(name, steps)) return true;
  }
  return false;
}

void NameSteps::add(size_t steps) {
  go_on("looking for the quantized modules of a config");
  taken_ += static_cast<int64_t>(steps);
  Budget::here().allow(kNameSteps, taken_, where_);
}

QuantScheme Quantization::of(std::string_view module, NameSteps& steps) const {
  // The list of excluded modules takes precedence, as in vLLM 0.10 (compressed_tensors.py,
  // get_scheme).
  if (excluded.match(module, steps)) return QuantScheme::kNone;
  for (const auto& [own, names] : named) {
    if (names.match(module, steps)) return own;
  }
  const bool expert = module.ends_with(".experts");
  const bool plain = module == "lm_head" || is_router(module) || module.starts_with("embed");
  if (plain || (experts_only && !expert)) return QuantScheme::kNone;
  return scheme;
}

QuantScheme ModuleSchemes::of(std::string_view module) {
  const std::string name(module);
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = known_.find(name); found != known_.end()) return found->second;
  }
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  return known_.emplace(name, quantization_.of(module, steps_)).first->second;
}

}  // namespace tilecast
