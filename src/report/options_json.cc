#include "report/options_json.h"

namespace tilecast {

Json options_json(const Request& request) {
  Json values = Json::object();
  for (const auto& [name, value] : option_values(request))
    std::visit([&, key = name](const auto& held) { values[key] = held; }, value);
  return values;
}

}  // namespace tilecast
