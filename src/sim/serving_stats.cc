#include "sim/serving_stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/quantile.h"

namespace tilecast {
namespace {

LatencySummary latencies(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {sum / static_cast<double>(seconds.size()), quantile_in_place(seconds, 0.5),
          quantile_in_place(seconds, 0.99)};
}

/// Times of the requests; no rates.
RequestSummary summarize_times(std::span<const RequestTimes> part) {
  RequestSummary s;
  s.requests = static_cast<int64_t>(part.size());
  std::vector<double> first, each, whole;
  for (std::vector<double>* times : {&first, &each, &whole}) times->reserve(part.size());
  for (const RequestTimes& r : part) {
    first.push_back(r.ttft_s());
    if (r.output > 1) each.push_back(r.tpot_s());
    whole.push_back(r.last_s - r.sent_s);
  }
  s.ttft = latencies(std::move(first));
  s.tpot = latencies(std::move(each));
  s.e2e = latencies(std::move(whole));
  return s;
}

/// Work done for all requests between `begin_s` and `end_s`: a prompt counts with its first token,
/// an output evenly from its first to its last token, a request by the share of its output. So
/// requests/s are tokens/s over the length of an output, also where clients move in waves.
void add_rates(RequestSummary& s, const std::vector<RequestTimes>& requests, double begin_s,
               double end_s) {
  const double seconds = end_s - begin_s;
  if (seconds <= 0) return;
  double done = 0, prompts = 0, outputs = 0;
  const auto within = [&](double at) { return at > begin_s && at <= end_s; };
  for (const RequestTimes& r : requests) {
    double written = 0;
    if (within(r.first_s)) {
      prompts += static_cast<double>(r.prompt);
      written += 1;
    }
    const double shared = std::min(r.last_s, end_s) - std::max(r.first_s, begin_s);
    if (r.output > 1 && shared > 0)
      written += static_cast<double>(r.output - 1) * shared / (r.last_s - r.first_s);
    outputs += written;
    done += written / static_cast<double>(r.output);
  }
  s.requests_per_s = done / seconds;
  s.output_tokens_per_s = outputs / seconds;
  s.total_tokens_per_s = (prompts + outputs) / seconds;
}

double end_s(const std::vector<RequestTimes>& requests) {
  double last = 0;
  for (const RequestTimes& r : requests) last = std::max(last, r.last_s);
  return last;
}

}  // namespace

ServingResult summarize(std::vector<RequestTimes> requests, int64_t most_in_flight) {
  ServingResult result;
  result.most_in_flight = most_in_flight;
  result.all = summarize_times(requests);
  add_rates(result.all, requests, requests.front().sent_s, end_s(requests));
  const auto edge = static_cast<size_t>(most_in_flight);
  if (requests.size() > 2 * edge) {
    const size_t end = requests.size() - edge;
    result.steady = summarize_times(std::span(requests).subspan(edge, end - edge));
    add_rates(*result.steady, requests, requests[edge].sent_s, requests[end].sent_s);
  }
  result.requests = std::move(requests);
  return result;
}

namespace {

/// By how much later than the first tenth the last tenth of the requests get their first tokens.
double growth_s(const std::vector<RequestTimes>& requests) {
  const size_t tenth = std::max<size_t>(1, requests.size() / 10);
  double early = 0, late = 0;
  for (size_t i = 0; i < tenth; ++i) {
    early += requests[i].ttft_s();
    late += requests[requests.size() - 1 - i].ttft_s();
  }
  return (late - early) / static_cast<double>(tenth);
}

}  // namespace

bool queue_is_short(const std::vector<RequestTimes>& requests, double busy_s) {
  return growth_s(requests) < 10 * busy_s / static_cast<double>(requests.size());
}

bool queue_is_steady(const std::vector<RequestTimes>& requests, double busy_s) {
  // A server that is r times too slow lets the last request wait r - 1 times the time in which all
  // came. The part that chance explains in the arrivals of N requests, 1.5 / sqrt(N) of that time,
  // is left out, and so are queues of ten requests.
  const double span = requests.back().sent_s - requests.front().sent_s;
  const auto count = static_cast<double>(requests.size());
  return queue_is_short(requests, busy_s) || growth_s(requests) < 1.5 / std::sqrt(count) * span;
}

double goodput(const ServingResult& result, std::optional<double> ttft_s,
               std::optional<double> tpot_s) {
  double good = 0;
  for (const RequestTimes& r : result.requests) {
    const bool first = !ttft_s || r.ttft_s() <= *ttft_s;
    const bool each = !tpot_s || r.output == 1 || r.tpot_s() <= *tpot_s;
    if (first && each) good += 1;
  }
  const double seconds = end_s(result.requests) - result.requests.front().sent_s;
  return seconds > 0 ? good / seconds : 0;
}

}  // namespace tilecast
