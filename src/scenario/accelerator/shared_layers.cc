#include "scenario/accelerator/shared_layers.h"

namespace tilecast {

const std::vector<PassLayer>& SharedLayers::of(const ModelRef& model, const Request& request) {
  const auto key = std::tuple(model.content.get(), request.batch, request.seq.value_or(0));
  const std::lock_guard lock(mutex_);
  auto known = known_.find(key);
  if (known == known_.end())
    known = known_.emplace(key, merge_equal(pass_launches(model, request))).first;
  return known->second;
}

}  // namespace tilecast
