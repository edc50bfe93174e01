// The options of power, energy and what they cost.

#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {

std::vector<OptionDef> energy_options() {
  constexpr double kMostPrice = 1e6;
  return {
      {.name = "power-cap-w",
       .access = field<[](auto& r) -> auto& { return r.energy.power_cap_w; }>(),
       .value = "W",
       .unit = "W",
       .help = "most power of each GPU's board, as of nvidia-smi -pl; default: the board's limit",
       .max = 1e5},
      {.name = "price-per-gpu-hour",
       .access = field<[](auto& r) -> auto& { return r.energy.price_per_gpu_hour; }>(),
       .value = "PRICE",
       .help = "of one GPU, in any currency; results state the cost in the same",
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
