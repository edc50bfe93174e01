// Which modules a list in a quantization config means.

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/quantization.h"

namespace tilecast {
namespace {

/// "*" stands for any text, nothing included.
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

/// Whether the pattern means the module from one of its components on, to its end or to another
/// component's.
bool glob_part(const std::string& pattern, std::string_view module) {
  const std::string_view literal = std::string_view(pattern).substr(0, pattern.find('*'));
  for (size_t start = 0;; ++start) {
    const std::string_view rest = module.substr(start);
    if (rest.starts_with(literal) && (glob(pattern, rest) || glob(pattern + ".*", rest)))
      return true;
    start = module.find('.', start);
    if (start == std::string_view::npos) return false;
  }
}

/// "a(b|c)d" → "abd", "acd"; groups inside groups and more than `kMostAlternatives` stay as they
/// are.
std::vector<std::string> alternatives(const std::string& regex) {
  constexpr size_t kMostAlternatives = 256;
  std::vector<std::string> results = {""};
  for (size_t at = 0; at < regex.size();) {
    const size_t open = regex.find('(', at);
    const size_t close = open == std::string::npos ? open : regex.find(')', open);
    if (close == std::string::npos) {
      for (std::string& result : results) result += regex.substr(at);
      break;
    }
    std::string inside = regex.substr(open + 1, close - open - 1);
    if (inside.starts_with("?:")) inside.erase(0, 2);
    const std::vector<std::string> choices = split(inside, '|');
    if (inside.find('(') != std::string::npos ||
        results.size() * choices.size() > kMostAlternatives)
      return {regex};
    std::vector<std::string> longer;
    for (const std::string& result : results) {
      for (const std::string& choice : choices)
        longer.push_back(result + regex.substr(at, open - at) + choice);
    }
    results = std::move(longer);
    at = close + 1;
  }
  return results;
}

/// A regular expression as a glob; what has more than ".*", "\." and anchors stays as it is and
/// matches nothing.
std::string glob_of_regex(std::string_view regex) {
  std::string result;
  for (size_t i = 0; i < regex.size(); ++i) {
    const std::string_view rest = regex.substr(i);
    if (rest.starts_with(".*") || rest.starts_with("\\.")) {
      result += rest[0] == '.' ? '*' : '.';
      ++i;
    } else if (rest[0] != '^' && rest[0] != '$') {
      result += rest[0];
    }
  }
  return result;
}

/// Wrappers that checkpoints put around the layers.
std::string_view without_wrappers(std::string_view name) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view wrapper : {"model.", "language_model.", "transformer."}) {
      if (!name.starts_with(wrapper)) continue;
      name.remove_prefix(wrapper.size());
      changed = true;
    }
  }
  return name;
}

/// The names that published checkpoints have for a module of a graph.
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
  // One product of several stored matrices: they share a scheme.
  also(".qkv_proj", ".q_proj");
  also(".gate_up_proj", ".gate_proj");
  also(".qkv_a_proj", ".kv_a_proj_with_mqa");
  if (module.ends_with(".experts")) {
    const std::string whole(module);
    names.push_back(whole + ".0.down_proj");
    names.push_back(whole + ".0.w2");
  }
  also(".shared_experts.", ".shared_expert.");
  also(".mlp.", ".block_sparse_moe.");
  also(".mlp.", ".feed_forward.");
  return names;
}

}  // namespace

void ModuleNames::add(const std::string& name) {
  const auto keep = [this](const std::string& glob) {
    const std::string_view bare = without_wrappers(glob);
    if (bare.empty()) return;
    if (bare.find('*') == std::string_view::npos) {
      exact_.emplace(bare);
    } else {
      globs_.emplace_back(bare);
    }
  };
  if (!name.starts_with("re:")) return keep(name);
  for (const std::string& regex : alternatives(name.substr(3))) keep(glob_of_regex(regex));
}

bool ModuleNames::match(std::string_view module) const {
  if (empty()) return false;
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
    if (std::any_of(globs_.begin(), globs_.end(), fits)) return true;
  }
  return false;
}

Scheme Quantization::of(std::string_view module) const {
  for (const auto& [own, names] : named) {
    if (names.match(module)) return own;
  }
  const bool expert = module.ends_with(".experts");
  const bool plain = module == "lm_head" || module.ends_with(".gate") ||
                     module.ends_with("_gate") || module.starts_with("embed");
  if (plain || (experts_only && !expert) || excluded.match(module)) return Scheme::kNone;
  return scheme;
}

}  // namespace tilecast
