#include "sim/warmup.h"

#include <algorithm>

#include "sim/serving_stats.h"

namespace tilecast {

Warmup::Warmup(const ServingLoad& load) : load_(load) {
  if (!exists()) return;
  counts_.assign(load.requests.size(), false);
  conversations_ = std::count_if(load.requests.begin(), load.requests.end(),
                                 [](const RequestSpec& request) { return !request.follows; });
}

/// As many conversations are under way as there ever will be, or `warmup` requests have been sent,
/// or would have been sent if the server answered at once.
bool Warmup::is_over() const {
  if (uncounted_ >= load_.warmup) return true;
  if (load_.warms_up_fully) return false;
  const double offered = static_cast<double>(begun_) / static_cast<double>(conversations_) *
                         static_cast<double>(load_.requests.size());
  return (wave_ > 0 && wave_ended_ == wave_) || offered > static_cast<double>(load_.warmup);
}

bool Warmup::note_sent(size_t request) {
  if (!exists()) return false;
  if (!load_.requests[request].follows) begun_ += 1;
  const bool begins = !counting_ && is_over();
  counting_ = counting_ || begins;
  if (!counting_) {
    uncounted_ += 1;
  } else if (counted_ < load_.counted) {
    counts_[request] = true;
    counted_ += 1;
  }
  return begins;
}

void Warmup::note_answer(size_t request) {
  if (!exists()) return;
  if (counts_[request]) answered_ += 1;
  const RequestSpec& spec = load_.requests[request];
  if (spec.next) return;
  if (wave_ == 0) wave_ = begun_;
  // Conversations begin in the order of their numbers.
  if (spec.session.value_or(wave_) < wave_) wave_ended_ += 1;
}

std::vector<RequestTimes> Warmup::counted(std::span<const RequestTimes> times) const {
  std::vector<RequestTimes> counted;
  for (size_t i = 0; i < times.size(); ++i) {
    if (counts(i)) counted.push_back(times[i]);
  }
  return counted;
}

bool Warmup::keeps_up(std::span<const RequestTimes> times, double busy_s) const {
  if (!exists()) return true;
  std::vector<RequestTimes> begin;
  for (size_t i = 0; i < times.size(); ++i) {
    if (!load_.requests[i].follows && times[i].first_s > 0) begin.push_back(times[i]);
  }
  const double each_s = busy_s / static_cast<double>(std::max<int64_t>(1, counted_));
  return begin.empty() || queue_is_steady(begin, each_s * static_cast<double>(begin.size()));
}

}  // namespace tilecast
