// Loads that are drawn: arrivals and lengths.

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "sim/serving.h"

namespace tilecast {

std::vector<RequestSpec> draw_requests(const RandomLoad& load) {
  Rng rng(load.seed);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low) + 1));
  };
  std::vector<RequestSpec> requests(static_cast<size_t>(load.requests));
  double at = 0;
  for (RequestSpec& r : requests) {
    if (load.rate > 0) at += -std::log1p(-rng.uniform()) / load.rate;
    r = {at, between(load.prompt_low, load.prompt_high),
         between(load.output_low, load.output_high)};
  }
  // Chance would make the load of few requests another one than was asked for: vLLM's benchmark
  // (vllm/benchmarks/serve.py, get_request) stretches the arrivals in the same way.
  const double stretch = at > 0 ? static_cast<double>(load.requests) / load.rate / at : 1;
  for (RequestSpec& r : requests) r.arrival_s *= stretch;
  return requests;
}

std::vector<int64_t> draw_adapters(size_t requests, int64_t count, double skew) {
  std::vector<double> sums;
  double sum = 0;
  for (int64_t i = 1; i <= count; ++i)
    sums.push_back(sum += std::pow(static_cast<double>(i), -skew));
  Rng rng(1);
  std::vector<int64_t> adapters(requests);
  for (int64_t& adapter : adapters) {
    const auto found = std::upper_bound(sums.begin(), sums.end() - 1, rng.uniform() * sum);
    adapter = found - sums.begin();
  }
  return adapters;
}

}  // namespace tilecast
