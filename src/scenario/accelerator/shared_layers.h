#pragma once

// What the questions of a sweep over accelerators share: layers of models, times of layers.

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "accelerator/nest_times.h"
#include "scenario/accelerator/pass.h"

namespace tilecast {

/// Can be used from several threads. Models are told apart by the object, which must outlive this.
class SharedLayers {
 public:
  /// `merge_equal(pass_launches(…))`.
  const std::vector<PassLayer>& of(const ModelRef& model, const Request& request);
  accelerator::NestTimesByDesign& times() { return times_; }

 private:
  std::mutex mutex_;
  std::map<std::tuple<const ModelRef::Content*, int64_t, int64_t>, std::vector<PassLayer>> known_;
  accelerator::NestTimesByDesign times_;
};

}  // namespace tilecast
