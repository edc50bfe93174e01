#include "scenario/generation/served_remedies.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/monotone.h"
#include "graph/dtype.h"
#include "scenario/change.h"
#include "scenario/generation/generation_memory.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/served_cache.h"
#include "scenario/generation/slower_precision.h"
#include "scenario/memory_total.h"

namespace tilecast {
namespace {

/// The changes of one option, the smallest first, and its name in facts of the warning.
struct ChangesOfOption {
  std::string name;
  std::vector<Change> changes;
};

ChangesOfOption more_ranks(const Request& asked) {
  constexpr int64_t kMostRanks = 64;
  ChangesOfOption kind{"tp", {}};
  for (int64_t tp = 2 * asked.execution.tp; tp <= kMostRanks; tp *= 2)
    kind.changes.push_back({{"tp", std::to_string(tp)}});
  return kind;
}

/// Precisions of weights that the device computes with, and that are lower than the usual one.
ChangesOfOption lower_dtypes(const Device& device) {
  ChangesOfOption kind{"dtype", {}};
  for (const char* dtype : {"fp8", "int8_wo", "fp4", "int4_wo"}) {
    if (device.matmul_peak(compute_dtype(*find_scheme(dtype), DType::kBf16)) > 0)
      kind.changes.push_back({{"dtype", dtype}});
  }
  return kind;
}

ChangesOfOption lower_cache_dtypes(const Request& asked, const Device& device) {
  ChangesOfOption kind{"kv_dtype", {}};
  if (asked.execution.kv_dtype.empty() && device.matmul_peak(DType::kFp8) > 0)
    kind.changes.push_back({{"kv-dtype", "fp8"}});
  return kind;
}

/// Bytes that a rank of the changed request needs at least: its weights alone, or its cache alone.
/// Where this is too much, no graph is built: each takes as long as a forecast.
int64_t least_bytes(const ServedModel& served, const GenerationForecast& f,
                    const Request& request) {
  const Execution &now = request.execution, &before = served.asked.execution;
  const int64_t times_ranks = now.tp / before.tp;
  int64_t weights = f.memory.weights_bytes;
  int64_t cache =
      cache_bytes(served, f.continuous ? 1 : served.sequences_of_rank(served.asked.batch),
                  longest_request(served.asked), now.tp) /
      served.plan.pp;
  if (now.dtype != before.dtype) {
    const DType stored = scheme_info(parse_scheme(now.dtype, "`dtype`")).weight_dtype;
    weights = f.parameters / kBitsPerByte * dtype_bits(stored) / served.plan.ranks();
  }
  // Some caches follow the dtype; none is stored in less than a byte.
  if (now.dtype != before.dtype || now.kv_dtype != before.kv_dtype)
    cache = cache / dtype_bits(served.kv_dtype) * kBitsPerByte;
  return std::max(weights / times_ranks, cache);
}

/// States a change that is enough, and by how much a step is forecast to be slower with it.
void add_fact(Warning& warning, const std::string& name, decltype(WarningFact::value) value,
              const ServedModel& served, const Change& change) {
  warning.facts.push_back({name + "_that_fits", std::move(value)});
  const double slower = decode_slowdown(served, changed(served.asked, change));
  constexpr double kSaid = 0.005;  // a hundredth, rounded
  if (slower >= kSaid) warning.facts.push_back({name + "_slower_share", slower});
}

}  // namespace

void add_changes_that_fit(Warning& warning, const ServedModel& served,
                          const GenerationForecast& forecast) {
  const auto fits = [&](const Change& change) {
    const Request request = changed(served.asked, change);
    return least_bytes(served, forecast, request) <= visible_bytes(served.device) &&
           fits_memory({served, request});
  };
  const ChangesOfOption ranks = more_ranks(served.asked), dtypes = lower_dtypes(served.device),
                        caches = lower_cache_dtypes(served.asked, served.device);
  const size_t before = warning.facts.size();
  for (const ChangesOfOption* kind : {&ranks, &dtypes, &caches}) {
    const Change* enough = first_that_fits(kind->changes, fits);
    if (enough == nullptr) continue;
    const std::string& value = enough->front().text;
    if (kind == &ranks)
      add_fact(warning, kind->name, int64_t{std::stoll(value)}, served, *enough);
    else
      add_fact(warning, kind->name, value, served, *enough);
  }
  if (warning.facts.size() > before) return;
  std::vector<Change> pairs = pairs_of(dtypes.changes, caches.changes);
  for (Change& pair : pairs_of(ranks.changes, dtypes.changes)) pairs.push_back(std::move(pair));
  if (const Change* pair = first_that_fits(pairs, fits))
    add_fact(warning, "pair", flags_of(*pair, " and "), served, *pair);
}

void add_share_that_fits(Warning& warning, const ServedModel& served, double share) {
  constexpr double kHundredths = 100;
  const auto with = [&](int64_t hundredths) {
    Request request = served.asked;
    request.execution.gpu_memory_utilization = static_cast<double>(hundredths) / kHundredths;
    return request;
  };
  // A lower share leaves more room beside the cache, and the cache less.
  const auto has_room = [&](int64_t hundredths) {
    return if_possible([&] { return has_room_beside_cache({served, with(hundredths)}); })
        .value_or(true);
  };
  const int64_t most =
      narrow({0, static_cast<int64_t>(std::ceil(kHundredths * share))}, has_room).holds;
  if (most == 0 || !if_possible([&] { return fits_memory({served, with(most)}); }).value_or(false))
    return;
  warning.facts.push_back({"utilization_that_fits", static_cast<double>(most) / kHundredths});
}

}  // namespace tilecast
