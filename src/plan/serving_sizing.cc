#include "plan/serving_sizing.h"

#include <algorithm>

#include "base/checked.h"
#include "base/monotone.h"
#include "plan/serving_simulation.h"
#include "request/load.h"

namespace tilecast {
namespace {

class ServerCount {
 public:
  ServerCount(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
              const ServingPlan& plan, const ServingCandidate& unit, KnownServer& known)
      : forecaster_(forecaster),
        model_(model),
        gpu_(gpu),
        plan_(plan),
        unit_(unit),
        known_(known) {}

  ServingCandidate fewest() const {
    ServingCandidate last = under_load(most_units());
    if (!last.meets) return last;
    return plan_.clients > 0 ? fewest_for_clients(last) : fewest_for_rate(last);
  }

 private:
  int64_t unit_servers() const { return unit_.replicas + unit_.prefill_workers; }

  int64_t most_units() const {
    const int64_t limit = plan_.most_gpus > 0 ? plan_.most_gpus / unit_.gpus()
                                              : ServingPlan::kMostServers / unit_servers();
    // More replicas than clients have nothing to do.
    const int64_t useful = plan_.clients > 0 ? ceil_divide(plan_.clients, unit_.replicas) : limit;
    return std::max<int64_t>(1, std::min(limit, useful));
  }

  ServingCandidate fewest_for_rate(const ServingCandidate& last) const {
    const int64_t most = last.replicas / unit_.replicas;
    ServingCandidate best = last;
    const auto misses = [&](int64_t units) {
      const ServingCandidate c = under_load(units);
      if (c.meets) best = c;
      return !c.meets;
    };
    narrow({0, most}, misses, [&](const Bracket& b) {
      return b.fails == most ? std::max<int64_t>(1, 2 * b.holds) : b.middle();
    });
    return best;
  }

  /// Clients of equal requests move in waves, so fewer of them may wait longer: all numbers are
  /// tried, the fewest servers first. One unit alone with its part of the clients says which ones
  /// are worth the simulation of all servers.
  ServingCandidate fewest_for_clients(const ServingCandidate& last) const {
    const ServedLayout layout(forecaster_, model_, gpu_, request_of(plan_, unit_), known_);
    ServingCandidate unit = unit_;
    for (int64_t units = 1; units * unit_.replicas < last.replicas;) {
      unit.concurrency = ceil_divide(plan_.clients, units * unit_.replicas);
      simulate_candidate(plan_, unit, layout, time_limits(plan_));
      if (unit.meets) {
        if (const ServingCandidate c = under_load(units); c.meets) return c;
      }
      // The next number with fewer clients on each replica; there is one, as the last has fewer.
      const int64_t fewer = std::max<int64_t>(1, unit.concurrency - 1);
      units = std::max(units + 1, ceil_divide(plan_.clients, fewer * unit_.replicas));
    }
    return last;
  }

  /// Half of the requests or more are judged: those that are sent while the first or the last are
  /// in flight are not. A queue that grows misses a limit, or shows itself.
  ServingCandidate under_load(int64_t units) const {
    constexpr int64_t kGrowths = 3, kInFlight = 4;
    ServingCandidate c = unit_;
    c.replicas *= units;
    c.prefill_workers *= units;
    if (plan_.clients > 0) c.concurrency = ceil_divide(plan_.clients, c.replicas);
    for (int64_t growth = 0; growth <= kGrowths; ++growth) {
      const Request request = request_of(plan_, c);
      const ServedLayout layout(forecaster_, model_, gpu_, request, known_);
      const int64_t needed =
          std::min(kInFlight * simulate_candidate(plan_, c, layout), kMaxServedRequests);
      if (c.excess > 1 || needed <= request_count(request)) break;
      if (growth < kGrowths) c.requests = needed;
    }
    return c;
  }

  const Forecaster& forecaster_;
  const ModelRef& model_;
  const GpuRef& gpu_;
  const ServingPlan& plan_;
  const ServingCandidate& unit_;
  KnownServer& known_;
};

}  // namespace

ServingCandidate fewest_servers(const Forecaster& forecaster, const ModelRef& model,
                                const GpuRef& gpu, const ServingPlan& plan,
                                const ServingCandidate& unit, KnownServer& known) {
  return ServerCount(forecaster, model, gpu, plan, unit, known).fewest();
}

}  // namespace tilecast
