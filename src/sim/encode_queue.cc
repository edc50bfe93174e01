#include "sim/encode_queue.h"

#include <algorithm>

namespace tilecast {
namespace {

constexpr double kNoRun = std::numeric_limits<double>::infinity();

double mean_of(double sum, int64_t count) {
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

}  // namespace

EncodeQueue::EncodeQueue(const Encoders& encoders, size_t requests)
    : encoders_(encoders),
      workers_(static_cast<size_t>(encoders.workers)),
      ends_(workers_.size(), kNoRun),
      progress_(requests) {}

void EncodeQueue::receive(size_t request, int64_t images, double at_s) {
  progress_[request] = {images, at_s, at_s};
  const auto workers = static_cast<int64_t>(workers_.size());
  // As if they went to the workers one by one.
  for (int64_t i = 0; i < std::min(images, workers); ++i) {
    const size_t index = (next_ + static_cast<size_t>(i)) % workers_.size();
    workers_[index].waiting.push_back({request, (images - i + workers - 1) / workers});
    if (workers_[index].running.empty()) begin(index, at_s);
  }
  next_ = (next_ + static_cast<size_t>(images)) % workers_.size();
}

void EncodeQueue::begin(size_t index, double at_s) {
  Worker& worker = workers_[index];
  int64_t room = encoders_.together;
  while (room > 0 && !worker.waiting.empty()) {
    Share& first = worker.waiting.front();
    const int64_t taken = std::min(room, first.images);
    worker.running.push_back({first.request, taken});
    room -= taken;
    first.images -= taken;
    if (first.images == 0) worker.waiting.pop_front();
  }
  const int64_t images = encoders_.together - room;
  if (images == 0) return ends_.set(index, kNoRun);
  const double seconds = encoders_.encode_s(images);
  busy_s_ += seconds;
  runs_ += 1;
  images_ += images;
  ends_.set(index, at_s + seconds);
}

void EncodeQueue::advance(std::vector<Encoded>& encoded) {
  const size_t index = ends_.index();
  const double end_s = ends_.value();
  Worker& worker = workers_[index];
  for (const Share& share : worker.running) {
    worker.link_free_s = std::max(worker.link_free_s, end_s) + encoders_.transfer_s(share.images);
    Progress& progress = progress_[share.request];
    progress.images -= share.images;
    progress.ready_s = std::max(progress.ready_s, worker.link_free_s);
    if (progress.images > 0) continue;
    encoded.push_back({share.request, progress.ready_s});
    waited_s_ += progress.ready_s - progress.came_s;
    requests_ += 1;
  }
  worker.running.clear();
  begin(index, end_s);
}

void EncodeQueue::forget_counts() {
  busy_s_ = waited_s_ = 0;
  runs_ = images_ = requests_ = 0;
}

double EncodeQueue::mean_images() const { return mean_of(static_cast<double>(images_), runs_); }

double EncodeQueue::mean_s() const { return mean_of(waited_s_, requests_); }

}  // namespace tilecast
