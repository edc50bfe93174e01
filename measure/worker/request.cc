#include "request.h"

#include <charconv>
#include <sstream>

namespace tilecast::measure {
namespace {

template <typename T>
T parse(const std::string& key, const std::string& value) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    throw Unsupported(key + ": expected a number, found '" + value + "'");
  return number;
}

}  // namespace

Fields parse_fields(const std::string& line) {
  Fields fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) {
    const size_t equals = field.find('=');
    if (equals == std::string::npos) throw Unsupported("expected key=value, found '" + field + "'");
    fields[field.substr(0, equals)] = field.substr(equals + 1);
  }
  return fields;
}

std::string format_fields(const Fields& fields) {
  std::string line;
  for (const auto& [key, value] : fields) {
    if (!line.empty()) line += '\t';
    line += key + '=';
    for (const char c : value) line += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
  }
  return line;
}

std::string Request::text(const std::string& key, const std::string& otherwise) const {
  const auto it = fields_.find(key);
  return it == fields_.end() || it->second.empty() ? otherwise : it->second;
}

int64_t Request::integer(const std::string& key, int64_t otherwise) const {
  const std::string value = text(key);
  return value.empty() ? otherwise : parse<int64_t>(key, value);
}

int64_t Request::size(const std::string& key) const {
  const int64_t value = integer(key, 0);
  if (value < 1) throw Unsupported(key + ": expected a size of at least 1");
  return value;
}

double Request::number(const std::string& key, double otherwise) const {
  const std::string value = text(key);
  return value.empty() ? otherwise : parse<double>(key, value);
}

std::vector<int64_t> Request::integers(const std::string& key) const {
  std::vector<int64_t> list;
  std::istringstream stream(text(key));
  for (std::string item; std::getline(stream, item, ':');)
    list.push_back(parse<int64_t>(key, item));
  return list;
}

}  // namespace tilecast::measure
