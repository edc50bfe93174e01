#include "sim/adapter_slots.h"

#include <algorithm>

#include "sim/scheduler.h"

namespace tilecast {

bool AdapterSlots::use(int64_t adapter) {
  const auto found = places_.find(adapter);
  if (found != places_.end()) {
    used_.splice(used_.end(), used_, found->second);
    return false;
  }
  if (static_cast<int64_t>(places_.size()) == slots_) {
    places_.erase(used_.front());
    used_.pop_front();
  }
  places_[adapter] = used_.insert(used_.end(), adapter);
  return true;
}

BatchAdapters::BatchAdapters(const ServerState& state)
    : most_(static_cast<size_t>(state.limits.max_adapters)) {
  if (most_ == 0) return;
  for (const size_t index : state.running) add(state.requests[index]);
  if (state.chunked) add(state.requests[*state.chunked]);
}

bool BatchAdapters::has_room(const ServedRequest& request) const {
  if (most_ == 0 || !request.spec.adapter || adapters_.size() < most_) return true;
  return std::find(adapters_.begin(), adapters_.end(), *request.spec.adapter) != adapters_.end();
}

void BatchAdapters::add(const ServedRequest& request) {
  if (most_ == 0 || !request.spec.adapter) return;
  if (std::find(adapters_.begin(), adapters_.end(), *request.spec.adapter) == adapters_.end())
    adapters_.push_back(*request.spec.adapter);
}

}  // namespace tilecast
