#pragma once

#include <string>
#include <vector>

namespace tilecast {

/// What has a price: GPUs, which may also be known by another name, as that of their cluster.
struct PricedGpu {
  std::string gpu;   ///< its id
  std::string name;  ///< "": none
};

/// As `gpu_prices` (tilecast/search.h); a price of the name comes before that of the GPU.
std::vector<double> prices_of(const std::string& text, const std::vector<PricedGpu>& gpus);

}  // namespace tilecast
