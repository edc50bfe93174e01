#include "base/json_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/json.h"

namespace tilecast {
namespace {

/// Walks over text that is JSON.
class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : text_(text) { skip_white(); }

  size_t at() const { return at_; }

  /// Goes to the value inside; false: there is none, and the place is unchanged.
  bool enter(const JsonStep& step) {
    const size_t start = at_;
    if (at_ < text_.size() && text_[at_] == (step.is_key ? '{' : '[')) {
      ++at_;
      for (size_t i = 0; go_to_item(); ++i) {
        if (step.is_key ? take_key() == step.key : i == step.index) return true;
        skip_value();
      }
    }
    at_ = start;
    return false;
  }

 private:
  void skip_white() {
    while (at_ < text_.size() && is_white(text_[at_])) ++at_;
  }
  /// Whether there is another item.
  bool go_to_item() {
    skip_white();
    if (at_ < text_.size() && text_[at_] == ',') ++at_;
    skip_white();
    return at_ < text_.size() && text_[at_] != '}' && text_[at_] != ']';
  }
  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    at_ = std::min(at_ + 1, text_.size());
  }
  std::string take_key() {
    const size_t start = at_;
    skip_string();
    const Json key = Json::parse(text_.substr(start, at_ - start), nullptr, false);
    skip_white();
    at_ = std::min(at_ + 1, text_.size());  // the colon
    skip_white();
    return key.is_string() ? key.get<std::string>() : "";
  }
  void skip_value() {
    size_t depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        continue;
      }
      if (depth == 0 && (c == ',' || c == ']' || c == '}')) return;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
      if (depth == 0 && (c == '}' || c == ']')) return;
    } while (at_ < text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string json_place(std::string_view text, std::span<const JsonStep> steps) {
  JsonWalk walk(text);
  for (const JsonStep& step : steps)
    if (!walk.enter(step)) break;
  const std::string_view before = text.substr(0, walk.at());
  const size_t newline = before.rfind('\n');
  return fmt::format("{}:{}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1);
}

}  // namespace tilecast
