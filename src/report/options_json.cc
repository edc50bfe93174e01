#include "report/options_json.h"

#include <algorithm>

namespace tilecast {

Json options_json(const Request& request) {
  Json values = Json::object();
  for (const OptionDef& option : request_options()) {
    if (!option.applies_to(request.kind)) continue;
    const std::string text = option.access.get(request, option);
    if (text.empty()) continue;
    const bool number =
        option.access.type == OptionType::kWhole || option.access.type == OptionType::kNumber;
    std::string key = option.name;
    std::replace(key.begin(), key.end(), '-', '_');  // like all keys
    values[key] = number ? Json::parse(text) : Json(text);
  }
  return values;
}

}  // namespace tilecast
