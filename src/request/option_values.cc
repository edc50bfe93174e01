#include <algorithm>

#include "base/number.h"
#include "tilecast/request.h"

namespace tilecast {
namespace {

OptionValue value_of(const OptionDef& option, std::string text) {
  if (option.access.type == OptionType::kWhole || option.access.type == OptionType::kNumber) {
    if (const auto whole = parse_number<int64_t>(text)) return *whole;
    if (const auto number = parse_number<double>(text)) return *number;
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, OptionValue>> option_values(const Request& request) {
  std::vector<std::pair<std::string, OptionValue>> values;
  for (const OptionDef& option : request_options()) {
    if (!option.applies_to(request.kind)) continue;
    std::string text = option.access.get(request, option);
    if (text.empty()) continue;
    std::string name = option.name;
    std::replace(name.begin(), name.end(), '-', '_');  // like all keys
    values.emplace_back(std::move(name), value_of(option, std::move(text)));
  }
  return values;
}

}  // namespace tilecast
