// The options of power, energy and what they cost.

#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/number.h"
#include "base/text.h"
#include "request/access.h"
#include "request/option_tables.h"
#include "tilecast/error.h"

namespace tilecast {

namespace {

constexpr const char* kBest = "best";

/// A number of watts, or "best".
OptionAccess power_cap() {
  OptionAccess access{.type = OptionType::kNumber};
  access.set = [](Request& request, const OptionDef& option, const std::string& text) {
    std::optional<double> cap_w;
    if (text != kBest && !parse_number<double>(text))
      throw Error(ErrorKind::kInput,
                  fmt::format("`{}`: expected a number of watts, or {}, found '{}'", option.name,
                              kBest, shown_name(text)));
    if (text != kBest) cap_w = number_value(option, text);
    request.energy.best_power_cap = text == kBest;
    request.energy.power_cap_w = cap_w;
  };
  access.get = [](const Request& request, const OptionDef&) -> std::string {
    if (request.energy.best_power_cap) return kBest;
    return request.energy.power_cap_w ? number_text(*request.energy.power_cap_w) : "";
  };
  return access;
}

constexpr double kMostPrice = 1e6;

/// One number, or prices by GPU: a list, a file or the name of a table, which is read once the GPU
/// is known.
OptionAccess price_of_gpus() {
  OptionAccess access{.type = OptionType::kNumber};
  access.set = [](Request& request, const OptionDef& option, const std::string& text) {
    EnergyTerms& energy = request.energy;
    energy.gpu_price.reset();
    energy.price_per_gpu_hour.reset();
    energy.gpu_prices.clear();
    if (parse_number<double>(text))
      energy.price_per_gpu_hour = number_value(option, text);
    else
      energy.gpu_prices = text;
  };
  access.get = [](const Request& request, const OptionDef&) -> std::string {
    const EnergyTerms& energy = request.energy;
    if (!energy.gpu_prices.empty()) return energy.gpu_prices;
    return energy.price_per_gpu_hour ? number_text(*energy.price_per_gpu_hour) : "";
  };
  return access;
}

}  // namespace

std::vector<OptionDef> energy_options() {
  return {
      {.name = "power-cap-w",
       .access = power_cap(),
       .value = "W|best",
       .unit = "W",
       .help = "most power of each GPU's board, as of nvidia-smi -pl; best: that with the least "
               "energy; default: the board's limit",
       .max = 1e5},
      {.name = "price-per-gpu-hour",
       .access = price_of_gpus(),
       .value = "PRICE|TABLE",
       .help = "a number, in any currency; or by GPU: a list (H100=2.5,A100=1.2), a file (.json, "
               ".csv), or a price table that comes with Tilecast (aws-on-demand)",
       .min = 0,
       .max = kMostPrice},
      {.name = "price-per-kwh",
       .access = field<[](auto& r) -> auto& { return r.energy.price_per_kwh; }>(),
       .value = "PRICE",
       .help = "of electricity, in the same currency; it counts for the energy of the GPUs' boards",
       .min = 0,
       .max = kMostPrice},
      {.name = "carbon-g-per-kwh",
       .access = field<[](auto& r) -> auto& { return r.energy.carbon_g_per_kwh; }>(),
       .value = "G",
       .unit = "g",
       .help = "CO2 of a kWh of electricity",
       .min = 0,
       .max = kMostPrice},
  };
}

}  // namespace tilecast
