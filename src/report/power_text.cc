#include "report/power_text.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "report/price_text.h"

namespace tilecast {

void add_power(Lines& lines, const PowerForecast& power, std::string_view work) {
  std::string note = fmt::format(
      "a GPU, 80 % interval {:.0f} to {:.0f} W; limit {:.0f} W, {:.0f} "
      "MHz{}; {} a {}",
      power.power_w.low, power.power_w.high, power.limit_w, power.clock_hz / 1e6,
      power.held_back ? " held by it" : "", format_si(power.energy_j, "J"), work);
  if (power.energy_per_token_j)
    note += fmt::format(", {:.3g} J a token", *power.energy_per_token_j);
  lines.add("power", fmt::format("{:.0f} W", power.power_w.value), note);
  std::vector<std::string> costs;
  const std::string currency =
      power.gpu_price && !power.gpu_price->currency.empty() ? " " + power.gpu_price->currency : "";
  const auto add_cost = [&](const std::optional<double>& cost, const char* what) {
    if (cost) costs.push_back(fmt::format("{:.4g}{} for {}", *cost, currency, what));
  };
  add_cost(power.gpu_cost, "the GPUs");
  add_cost(power.energy_cost, "their energy");
  add_cost(power.cost_per_million_tokens, "a million tokens");
  if (power.carbon_g) costs.push_back(fmt::format("{:.4g} g of CO2", *power.carbon_g));
  if (!costs.empty()) lines.add("  cost", "", join(costs, ", "));
  if (power.gpu_price && !power.gpu_price->table.empty())
    lines.add("  price", "", price_text(*power.gpu_price));
  std::vector<std::string> beside;
  if (power.server_energy_j)
    beside.push_back("servers beside their GPUs " + format_si(*power.server_energy_j, "J"));
  if (power.facility_energy_j)
    beside.push_back("all with cooling " + format_si(*power.facility_energy_j, "J"));
  if (power.facility_energy_cost)
    beside.push_back(fmt::format("that costs {:.4g}", *power.facility_energy_cost));
  if (!beside.empty()) lines.add("  facility", "", join(beside, ", "));
}

}  // namespace tilecast
