// The lines of a rule file, in this order:
//   solver ConvAsm1x1U                    the solver's name
// ranges stated | seen                  whose ranges: the solver's own, or the databases'
//   takes r == 1 and s == 1               a condition on the problem
//   let e = 4 / bytes                     a name for later lines
//   token read_size 1 2 3 4               a parameter and its values; 1..8: all whole numbers
//   require k_mult % e == 0               a condition on problem and tokens
// A line may use the names of lines before it. "#" begins a comment.

#include "tuning/rule_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::tuning {
namespace {

constexpr size_t kMostTokens = 64, kMostValues = 4096, kMostLines = 2000;

constexpr std::array<std::string_view, 30> kSizeNames = {"n",
                                                         "c",
                                                         "h",
                                                         "w",
                                                         "k",
                                                         "oh",
                                                         "ow",
                                                         "r",
                                                         "s",
                                                         "pad_h",
                                                         "pad_w",
                                                         "stride_h",
                                                         "stride_w",
                                                         "dil_h",
                                                         "dil_w",
                                                         "group",
                                                         "bytes",
                                                         "forward",
                                                         "input_gradient",
                                                         "weight_gradient",
                                                         "fp32",
                                                         "fp16",
                                                         "bf16",
                                                         "int8",
                                                         "nhwc",
                                                         "m",
                                                         "batch",
                                                         "trans_a",
                                                         "trans_b",
                                                         "matrix_unit"};

std::string_view take_word(std::string_view& line) {
  line = trim(line);
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line = trim(line.substr(end));
  return word;
}

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '_';
  });
}

}  // namespace

std::span<const std::string_view> size_names() { return kSizeNames; }

class RuleParser {
 public:
  RuleParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  RuleFile parse() {
    file_.sizes_.assign(kSizeNames.begin(), kSizeNames.end());
    collect_definitions();
    for (const std::string& raw : split(text_, '\n')) {
      if (++line_ > kMostLines) fail(fmt::format("more than {} lines", kMostLines));
      const std::string_view line = trim(std::string_view(raw).substr(0, raw.find('#')));
      if (!line.empty()) read(line);
    }
    if (file_.solver_.empty()) fail("the file names no solver");
    if (file_.tokens_.empty()) fail("the file has no token");
    std::stable_sort(file_.rules_.begin(), file_.rules_.end(),
                     [](const auto& a, const auto& b) { return a.last < b.last; });
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kInput, fmt::format("{}: line {}: {}", where_, line_, what));
  }
  std::string place() const { return fmt::format("{}: line {}", where_, line_); }

  /// Places of definitions come before places of tokens, so all must be known first.
  void collect_definitions() {
    for (const std::string& raw : split(text_, '\n')) {
      std::string_view line = trim(std::string_view(raw).substr(0, raw.find('#')));
      if (take_word(line) == "let") ++definitions_;
    }
    places_ = kSizeNames.size() + definitions_;
  }

  void read(std::string_view line) {
    const std::string_view word = take_word(line);
    if (word == "solver") {
      if (!file_.solver_.empty()) fail("a second solver; a file has one");
      file_.solver_ = line;
    } else if (word == "ranges") {
      if (line != "stated" && line != "seen")
        fail(fmt::format("ranges is '{}'; expected stated or seen", shown_name(line)));
    } else if (word == "takes") {
      const auto [condition, last] = bound(Expression::parse_condition(line, place()));
      if (last > 0) fail("'takes' is about the problem; use 'require' for tokens");
      file_.conditions_.push_back({line_, std::string(line), condition, 0});
    } else if (word == "let") {
      define(line);
    } else if (word == "token") {
      add_token(line);
    } else if (word == "require") {
      const auto [condition, last] = bound(Expression::parse_condition(line, place()));
      if (last == 0) fail("'require' names no token; use 'takes' for the problem");
      file_.rules_.push_back({line_, std::string(line), condition, last});
    } else {
      fail(fmt::format("'{}' begins no line; expected solver, ranges, takes, let, token or require",
                       shown_name(word)));
    }
  }

  void define(std::string_view line) {
    const std::string name(take_word(line));
    if (!is_name(name) || take_word(line) != "=") fail("expected let NAME = EXPRESSION");
    if (known(name)) fail(fmt::format("'{}' is there already", shown_name(name)));
    const auto [value, last] = bound(Expression::parse(line, place()));
    file_.definitions_.push_back({name, value, last});
    file_.sizes_.push_back(name);
  }

  void add_token(std::string_view line) {
    Token token{std::string(take_word(line)), {}};
    if (!is_name(token.name)) fail("expected token NAME VALUE ...");
    if (known(token.name)) fail(fmt::format("'{}' is there already", shown_name(token.name)));
    while (!line.empty()) add_values(token, take_word(line));
    std::sort(token.values.begin(), token.values.end());
    if (token.values.empty()) fail(fmt::format("token {} has no values", token.name));
    if (std::adjacent_find(token.values.begin(), token.values.end()) != token.values.end())
      fail(fmt::format("token {} has a value twice", token.name));
    if (file_.tokens_.size() == kMostTokens) fail(fmt::format("more than {} tokens", kMostTokens));
    file_.tokens_.push_back(std::move(token));
  }

  void add_values(Token& token, std::string_view text) {
    const size_t dots = text.find("..");
    const int64_t first = number(text.substr(0, dots));
    const int64_t last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
    if (last < first || last - first >= static_cast<int64_t>(kMostValues) ||
        token.values.size() > kMostValues)
      fail(fmt::format("'{}' is no range of at most {} numbers", shown_name(text), kMostValues));
    for (int64_t value = first; value <= last; ++value) token.values.push_back(value);
  }

  int64_t number(std::string_view text) const {
    const auto value = parse_number<int64_t>(text);
    if (!value || *value < 0) fail(fmt::format("'{}' is no whole number", shown_name(text)));
    return *value;
  }

  bool known(std::string_view name) const { return place_of(name).has_value(); }

  std::optional<size_t> place_of(std::string_view name) const {
    const auto size = std::find(file_.sizes_.begin(), file_.sizes_.end(), name);
    if (size != file_.sizes_.end()) return size - file_.sizes_.begin();
    for (size_t i = 0; i < file_.tokens_.size(); ++i)
      if (file_.tokens_[i].name == name) return places_ + i;
    return std::nullopt;
  }

  /// The expression and how many tokens must be known before it has a value.
  std::pair<BoundExpression, size_t> bound(const Expression& expression) const {
    size_t last = 0;
    const auto place_of_name = [&](std::string_view name) {
      const std::optional<size_t> found = place_of(name);
      if (!found) return found;
      if (*found >= places_) last = std::max(last, *found - places_ + 1);
      if (*found >= kSizeNames.size() && *found < places_)
        last = std::max(last, file_.definitions_[*found - kSizeNames.size()].last);
      return found;
    };
    BoundExpression result = expression.bind(place_of_name, place());
    return {std::move(result), last};
  }

  std::string_view text_;
  const std::string& where_;
  size_t line_ = 0, definitions_ = 0, places_ = 0;
  RuleFile file_;
};

std::vector<Sizes> sample_sizes() {
  std::vector<Sizes> samples;
  const auto add = [&](double channels, double side, double window, double pass, double bytes,
                       double bf16) {
    Sizes s;
    for (const std::string_view name : kSizeNames) s[std::string(name)] = 0;
    s["n"] = s["m"] = 64;
    s["c"] = s["k"] = channels;
    s["h"] = s["w"] = s["oh"] = s["ow"] = side;
    s["r"] = s["s"] = window;
    s["pad_h"] = s["pad_w"] = (window - 1) / 2;
    for (const char* one : {"stride_h", "stride_w", "dil_h", "dil_w", "group", "batch"}) s[one] = 1;
    s["bytes"] = bytes;
    s[bytes == 4 ? "fp32" : bytes == 1 ? "int8" : bf16 != 0 ? "bf16" : "fp16"] = 1;
    s[pass == 0 ? "forward" : pass == 1 ? "input_gradient" : "weight_gradient"] = 1;
    samples.push_back(std::move(s));
  };
  for (const double channels : {64, 256})
    for (const double side : {14, 56})
      for (const double window : {1, 3})
        for (const double pass : {0, 1, 2})
          for (const double bytes : {4, 2, 1}) add(channels, side, window, pass, bytes, 0);
  for (const double pass : {0, 1, 2}) add(256, 56, 1, pass, 2, 1);
  return samples;
}

RuleFile RuleFile::parse(std::string_view text, const std::string& where) {
  RuleFile file = RuleParser(text, where).parse();
  file.check_satisfiable(where);
  return file;
}

void RuleFile::check_satisfiable(const std::string& where) const {
  const std::vector<Sizes> samples = sample_sizes();
  std::vector<int64_t> all;
  for (const Token& token : tokens_)
    all.insert(all.end(), token.values.begin(), token.values.end());
  bool taken = false;
  for (const Sizes& sizes : samples) {
    const BoundRules bound(*this, sizes);
    taken = taken || bound.takes();
    if (bound.complete({}, all)) return;
  }
  if (!taken)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: line {}: 'takes' holds for none of {} usual convolutions", where,
                            conditions_.front().line, samples.size()));
  // The rule without which a set exists, or the first of several.
  for (size_t i = 0; i < rules_.size(); ++i) {
    RuleFile without = *this;
    without.rules_.erase(without.rules_.begin() + static_cast<ptrdiff_t>(i));
    for (const Sizes& sizes : samples)
      if (BoundRules(without, sizes).complete({}, all))
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: line {}: 'require {}' cannot be met: no set of parameters of "
                                "any of {} usual convolutions does",
                                where, rules_[i].line, shown_name(rules_[i].text), samples.size()));
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: the rules contradict each other: no set of parameters of any of {} "
                          "usual convolutions meets all",
                          where, samples.size()));
}

}  // namespace tilecast::tuning
