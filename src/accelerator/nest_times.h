#pragma once

// Times of nests that several designs share. In a sweep most designs differ only in what the times
// of a nest do not depend on, above all the bytes of the memories on the chip: these decide which
// mappings fit, not how long one takes.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "accelerator/fixed_point.h"
#include "accelerator/registry.h"

namespace tilecast::accelerator {

/// All that the times of a layer under a mapping depend on: equal for designs that have equal ones.
std::string timing_key(const Design& design);

/// Times by layer, mapping and limits, of designs with one timing key. Several threads may use it.
class NestTimes {
 public:
  /// As evaluate_nest(), of what tile_layer() makes of them.
  NestTime time_of(const Design& design, const Layer& layer, const Mapping& mapping,
                   const EvaluationLimits& limits);

 private:
  /// About 15 MB; with more it begins anew.
  static constexpr size_t kMostTimes = 20000;
  std::mutex mutex_;
  std::unordered_map<std::string, NestTime> times_;
};

/// The times of the designs that were asked for last.
class NestTimesByDesign {
 public:
  std::shared_ptr<NestTimes> of(const Design& design);

 private:
  static constexpr size_t kMostKeys = 16;
  struct Used {
    std::shared_ptr<NestTimes> times;
    uint64_t last = 0;
  };
  std::mutex mutex_;
  std::map<std::string, Used> used_;
  uint64_t now_ = 0;
};

}  // namespace tilecast::accelerator
