#include "sim/serving.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/rng.h"

namespace tilecast {
namespace {

struct Request {
  double arrival = 0, first = 0, last = 0;
  int64_t prefilled = 0, written = 0;
};

class Server {
 public:
  Server(const ServingLoad& load, const std::function<double(const ServingBatch&)>& step_s)
      : load_(load), step_s_(step_s), rng_(load.seed) {
    requests_.resize(static_cast<size_t>(load.requests));
  }

  ServingResult run() {
    schedule_first();
    while (done_ < load_.requests) {
      admit();
      if (running_.empty() && waiting_.empty()) {
        time_ = std::max(time_, requests_[next_].arrival);  // idle until the next request
        continue;
      }
      step();
    }
    return summarize();
  }

 private:
  bool closed_loop() const { return load_.requests_per_s <= 0; }

  void schedule_first() {
    if (closed_loop()) {
      for (int64_t i = 0; i < load_.requests; ++i)
        requests_[static_cast<size_t>(i)].arrival = i < load_.concurrency ? 0 : kLater;
      return;
    }
    double at = 0;
    for (Request& request : requests_) {
      at += -std::log1p(-rng_.uniform()) / load_.requests_per_s;
      request.arrival = at;
    }
  }

  void admit() {
    while (next_ < requests_.size() && requests_[next_].arrival <= time_) {
      waiting_.push_back(next_++);
    }
  }

  bool fits_one_more() const {
    const auto sequences = static_cast<int64_t>(running_.size()) + 1;
    return sequences <= load_.most_sequences &&
           sequences * (load_.prompt + load_.output) <= load_.cache_tokens;
  }

  void step() {
    ServingBatch batch;
    batch.decoding = static_cast<int64_t>(running_.size());
    double context = 0;
    for (size_t r : running_) context += static_cast<double>(load_.prompt + requests_[r].written);
    if (batch.decoding > 0) batch.decode_context = context / static_cast<double>(batch.decoding);
    if (!waiting_.empty() && fits_one_more()) {
      const Request& request = requests_[waiting_.front()];
      const int64_t room = std::max<int64_t>(1, load_.tokens_per_step - batch.decoding);
      batch.prefill_past = request.prefilled;
      batch.prefill_tokens = std::min(room, load_.prompt - request.prefilled);
    }
    if (batch.decoding == 0 && batch.prefill_tokens == 0) {
      // Nothing runs and nothing fits: the caller has checked that one sequence does.
      done_ = load_.requests;
      return;
    }
    const double seconds = step_s_(batch);
    time_ += seconds;
    busy_ += seconds;
    steps_ += 1;
    decoded_ += static_cast<double>(batch.decoding);
    finish_decoding();
    if (batch.prefill_tokens > 0) finish_prefill(batch.prefill_tokens);
  }

  void finish_decoding() {
    std::vector<size_t> still;
    for (size_t r : running_) {
      Request& request = requests_[r];
      if (++request.written < load_.output) {
        still.push_back(r);
        continue;
      }
      complete(request);
    }
    running_ = std::move(still);
  }

  void finish_prefill(int64_t tokens) {
    Request& request = requests_[waiting_.front()];
    request.prefilled += tokens;
    if (request.prefilled < load_.prompt) return;
    request.first = time_;
    request.written = 1;
    if (load_.output > 1) {
      running_.push_back(waiting_.front());
    } else {
      complete(request);
    }
    waiting_.pop_front();
  }

  void complete(Request& request) {
    request.last = time_;
    done_ += 1;
    if (!closed_loop()) return;
    // The client asks its next question.
    for (size_t i = next_; i < requests_.size(); ++i) {
      if (requests_[i].arrival < kLater) continue;
      requests_[i].arrival = time_;
      break;
    }
  }

  ServingResult summarize() const {
    ServingResult result;
    std::vector<const Request*> done;
    for (size_t i = requests_.size() / 3; i < requests_.size(); ++i) {
      if (requests_[i].last > 0) done.push_back(&requests_[i]);
    }
    double first = kLater, last = 0, late = 0, early = 0;
    for (const Request* r : done) {
      result.first_token.push_back(r->first - r->arrival);
      if (load_.output > 1)
        result.per_token.push_back((r->last - r->first) / static_cast<double>(load_.output - 1));
      first = std::min(first, r->last);
      last = std::max(last, r->last);
    }
    // A queue that grows: the last requests wait much longer than the first.
    const size_t tenth = std::max<size_t>(1, done.size() / 10);
    for (size_t i = 0; i < tenth && i < done.size(); ++i) {
      early += done[i]->first - done[i]->arrival;
      late += done[done.size() - 1 - i]->first - done[done.size() - 1 - i]->arrival;
    }
    const double service = busy_ / std::max<double>(1, static_cast<double>(requests_.size()));
    result.keeps_up = closed_loop() || late - early < 10 * service * static_cast<double>(tenth);
    if (done.size() > 1 && last > first)
      result.requests_per_s = static_cast<double>(done.size() - 1) / (last - first);
    std::sort(result.first_token.begin(), result.first_token.end());
    std::sort(result.per_token.begin(), result.per_token.end());
    result.mean_batch = steps_ > 0 ? decoded_ / steps_ : 0;
    result.busy_share = time_ > 0 ? busy_ / time_ : 0;
    return result;
  }

  static constexpr double kLater = 1e300;
  const ServingLoad& load_;
  const std::function<double(const ServingBatch&)>& step_s_;
  Rng rng_;
  std::vector<Request> requests_;
  std::deque<size_t> waiting_;
  std::vector<size_t> running_;
  size_t next_ = 0;
  int64_t done_ = 0;
  double time_ = 0, busy_ = 0, decoded_ = 0, steps_ = 0;
};

}  // namespace

ServingResult simulate_serving(const ServingLoad& load,
                               const std::function<double(const ServingBatch&)>& step_s) {
  return Server(load, step_s).run();
}

}  // namespace tilecast
