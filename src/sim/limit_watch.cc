#include "sim/limit_watch.h"

#include <algorithm>

namespace tilecast {
namespace {

/// More than the rounding of a mean, and of the quotient by which a limit is missed.
constexpr double kRounding = 1 + 1e-9;

}  // namespace

LimitWatch::LimitWatch(const ServingLoad& load) {
  if (!load.stop_beyond || load.concurrency == 0) return;
  // Turns are not sent in the order of their numbers.
  const bool turns = std::any_of(load.requests.begin(), load.requests.end(),
                                 [](const RequestSpec& r) { return r.follows; });
  if (turns) return;
  share_ = load.stop_beyond->share;
  // As many are in flight as there are clients, from the start to the last request that is sent.
  const size_t requests = load.requests.size();
  const size_t edge = std::min(requests, static_cast<size_t>(load.concurrency));
  const bool steady = requests > 2 * edge;
  begin_ = steady ? edge : 0;
  end_ = steady ? requests - edge : requests;
  const auto begin = load.requests.begin() + static_cast<std::ptrdiff_t>(begin_),
             end = load.requests.begin() + static_cast<std::ptrdiff_t>(end_);
  const auto several = std::count_if(begin, end, [](const RequestSpec& r) { return r.output > 1; });
  ttft_ = limit_of(load.stop_beyond->ttft_s, end_ - begin_);
  tpot_ = limit_of(load.stop_beyond->tpot_s, static_cast<size_t>(several));
}

LimitWatch::Limit LimitWatch::limit_of(const std::optional<double>& seconds,
                                       size_t requests) const {
  if (!seconds || requests == 0) return {};
  Limit limit{.most_s = *seconds * kRounding};
  if (share_) {
    // The percentile lies between the times of this rank and the next; so it is missed if all from
    // this rank on are late.
    const auto rank = static_cast<size_t>(*share_ * static_cast<double>(requests - 1));
    limit.late_more = requests - rank;
  } else {
    limit.sum_more_s = limit.most_s * static_cast<double>(requests);
  }
  return limit;
}

void LimitWatch::note(Limit& limit, size_t request, double seconds) {
  if (limit.most_s == 0 || request < begin_ || request >= end_) return;
  if (!share_) {
    limit.sum_more_s -= seconds;
    missed_ = missed_ || limit.sum_more_s < 0;
  } else if (seconds > limit.most_s && limit.late_more > 0) {
    limit.late_more -= 1;
    missed_ = missed_ || limit.late_more == 0;
  }
}

}  // namespace tilecast
