#pragma once

// Prices of GPUs: one number for all, a list, a file or a table of data/prices.

#include <string>
#include <vector>

#include "tilecast/request.h"

namespace tilecast {

/// Of one number (src/request/energy_options.cc), a row and a pool.
inline constexpr double kMostPricePerGpuHour = 1e6;

/// What has a price: GPUs, which may also be known by another name, as that of their cluster.
struct PricedGpu {
  std::string gpu;   ///< its id
  std::string name;  ///< "": none
};

/// As `gpu_prices` (tilecast/search.h); a price of the name comes before that of the GPU.
std::vector<GpuPrice> prices_of(const std::string& text, const std::vector<PricedGpu>& gpus);

/// The request with the price of its GPU, where it names prices by GPU.
Request with_gpu_price(const Request& request, const std::string& gpu);

/// Throws Error{kInput} where not all are in one currency.
void check_one_currency(const std::vector<GpuPrice>& prices);

}  // namespace tilecast
