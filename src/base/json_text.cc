// The text of JSON: what nlohmann's parser does not refuse or accept as configs need it.

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/budget.h"
#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr size_t kMaxNotFinite = 1000;

struct Place {
  size_t line = 1, column = 1;
};

Place place_of(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const size_t last_newline = before.rfind('\n');
  return {static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          before.size() - (last_newline == std::string_view::npos ? 0 : last_newline + 1) + 1};
}

std::string position(std::string_view text, size_t byte) {
  const Place place = place_of(text, byte);
  return fmt::format("{}:{}", place.line, place.column);
}

/// One look over the text before the parser's.
class Scan {
 public:
  struct NotFinite {
    size_t at, length;
    Place place;
  };

  /// Throws for documents that nest too deep, before the recursive parser and destructor meet them.
  Scan(std::string_view text, const std::string& where) : text_(text), where_(where) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '"') {
        i = end_of_string(i);
      } else if (c == '{' || c == '[') {
        open(i);
      } else if (c == '}' || c == ']') {
        --depth_;
      } else if (c == ':') {
        ++pairs;
      } else if (c == ',') {
        count_value();
      } else if (c == '\n') {
        ++line_;
        line_start_ = i + 1;
      } else if (c == 'N' || c == 'I') {
        i += not_finite_at(i);
      }
    }
  }

  size_t pairs = 0;   ///< of keys and values, in all objects
  size_t values = 1;  ///< at most so many
  std::vector<NotFinite> not_finite;

 private:
  size_t end_of_string(size_t start) const {
    for (size_t i = start + 1; i < text_.size(); ++i) {
      if (text_[i] == '"') return i;
      if (text_[i] == '\\') ++i;
    }
    return text_.size();
  }

  void count_value() {
    go_on("reading JSON");
    if (static_cast<int64_t>(++values) > most_values_)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: holds more than {} values; is it the right file? `max-memory` "
                              "allows more",
                              where_, most_values_));
  }

  void open(size_t at) {
    count_value();
    constexpr int kDeepest = 64;
    if (++depth_ > kDeepest)
      throw Error(ErrorKind::kInput, fmt::format("{}:{}: nested deeper than {} levels", where_,
                                                 position(text_, at), kDeepest));
  }

  /// Notes the word at `at` where it stands for a value; its length less one, or 0.
  size_t not_finite_at(size_t at) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::string_view rest = text_.substr(at);
    size_t length = rest.starts_with("NaN") ? 3 : rest.starts_with("Infinity") ? 8 : 0;
    if (length == 0) return 0;
    const size_t end = at + length;
    if (length == 8 && at > 0 && text_[at - 1] == '-') {
      --at;
      ++length;
    }
    const size_t before = at == 0 ? std::string_view::npos : text_.find_last_not_of(kSpace, at - 1);
    const size_t after = text_.find_first_not_of(kSpace, end);
    const auto is_one_of = [&](size_t i, std::string_view set) {
      return i == std::string_view::npos || set.find(text_[i]) != std::string_view::npos;
    };
    if (!is_one_of(before, ":[,") || !is_one_of(after, ",]}")) return 0;
    if (not_finite.size() == kMaxNotFinite)
      throw Error(ErrorKind::kInput, fmt::format("{}: more than {} values are NaN or infinite",
                                                 where_, kMaxNotFinite));
    not_finite.push_back({at, length, {line_, at - line_start_ + 1}});
    return end - at - 1 - (text_[at] == '-' ? 1 : 0);
  }

  std::string_view text_;
  const std::string& where_;
  const int64_t most_values_ = Budget::here().most(kJsonValues);
  int depth_ = 0;
  size_t line_ = 1, line_start_ = 0;
};

std::string stand_in(std::string_view text, const Scan::NotFinite& found) {
  return fmt::format("\"\\u0000{} (line {}, column {})\"", text.substr(found.at, found.length),
                     found.place.line, found.place.column);
}

/// The text with what is not finite replaced; see kNotFinite.
std::string replace_not_finite(std::string_view text, const Scan& scan) {
  std::string result;
  size_t done = 0;
  for (const Scan::NotFinite& found : scan.not_finite) {
    result += text.substr(done, found.at - done);
    result += stand_in(text, found);
    done = found.at + found.length;
  }
  return result += text.substr(done);
}

/// Where byte `byte` of the replaced text stands in the original.
size_t original_byte(size_t byte, std::string_view text, const Scan& scan) {
  size_t added = 0;
  for (const Scan::NotFinite& found : scan.not_finite) {
    if (byte < found.at + added) break;
    added += stand_in(text, found).size() - found.length;
  }
  return byte > added ? byte - added : 0;
}

size_t count_pairs(const Json& json) {
  size_t count = json.is_object() ? json.size() : 0;
  if (json.is_structured()) {
    for (const Json& item : json) count += count_pairs(item);
  }
  return count;
}

/// Names the first object that has a key twice, in a document that has fewer keys than colons.
class DuplicateKey {
 public:
  DuplicateKey(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  [[noreturn]] void fail() {
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        const size_t start = i++;
        while (text_[i] != '"') i += text_[i] == '\\' ? 2 : 1;
        last_ = {text_.substr(start + 1, i - start - 1), start};
      } else if (text_[i] == '{') {
        objects_.emplace_back();
      } else if (text_[i] == ':') {
        objects_.back().push_back(last_);
      } else if (text_[i] == '}') {
        check(objects_.back());
        objects_.pop_back();
      }
    }
    // Two spellings of one key ("a" and its escape).
    throw Error(ErrorKind::kInput, where_ + ": an object has the same key twice");
  }

 private:
  using Key = std::pair<std::string_view, size_t>;

  void check(std::vector<Key>& keys) const {
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(
        keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.first == b.first; });
    if (twice == keys.end()) return;
    throw Error(ErrorKind::kInput,
                fmt::format("{}:{}: '{}' is given a second time, first at {}; keep one of them",
                            where_, position(text_, std::next(twice)->second),
                            shown_name(twice->first), position(text_, twice->second)));
  }

  std::string_view text_;
  const std::string& where_;
  Key last_;
  std::vector<std::vector<Key>> objects_;
};

/// nlohmann's message without its code; it quotes all that was read of a token.
std::string reason_of(const Json::parse_error& error) {
  constexpr size_t kLongest = 200;
  const std::string text = error.what();
  const size_t colon = text.find("syntax error");
  return colon == std::string::npos ? "broken text encoding"
                                    : shown_name(text.substr(colon), kLongest);
}

Json parse_scanned(std::string_view text, const std::string& where, const Scan& scan) {
  try {
    // Where memory is short, it must show now: nlohmann's destructor allocates too, and may not
    // fail. A new expression that nobody uses would be optimized away, a call is not.
    ::operator delete(::operator new(scan.values * size_t{kJsonValues.bytes_each} + text.size()));
  } catch (const AllocationRefused&) {
    throw;  // the limit of the question, not of the machine
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kIo, where + ": out of memory while reading JSON of " +
                                    format_bytes(static_cast<int64_t>(text.size())));
  }
  try {
    return scan.not_finite.empty() ? Json::parse(text)
                                   : Json::parse(replace_not_finite(text, scan));
  } catch (const Json::parse_error& error) {
    const size_t byte = original_byte(error.byte == 0 ? 0 : error.byte - 1, text, scan);
    throw Error(ErrorKind::kInput,
                fmt::format("{}:{}: not JSON: {}", where, position(text, byte), reason_of(error)));
  } catch (const Json::exception& error) {
    // "[json.exception.out_of_range.406] number overflow parsing '1e999'"
    const std::string reason = error.what();
    const size_t quote = reason.find('\''), end = reason.rfind('\'');
    const size_t at = quote < end ? text.find(reason.substr(quote + 1, end - quote - 1)) : 0;
    throw Error(ErrorKind::kInput, fmt::format("{}:{}: not JSON: {}", where, position(text, at),
                                               shown_name(reason.substr(reason.find(' ') + 1))));
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  // nlohmann takes a zero byte for the end of the text and would drop what follows it.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw Error(ErrorKind::kInput, fmt::format("{}:{}: not JSON: expected text, found a zero byte",
                                               where, position(text, zero)));
  const Scan scan(text, where);
  Json json = parse_scanned(text, where, scan);
  if (count_pairs(json) != scan.pairs) DuplicateKey(text, where).fail();
  return json;
}

}  // namespace tilecast
