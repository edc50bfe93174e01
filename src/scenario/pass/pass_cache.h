#pragma once

// The graph, program and memory of a pass take most of the time of a forecast, and are the same for
// all GPUs.

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "scenario/pass/pass_work.h"
#include "scenario/precision.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// Everything beside the model that a pass follows from, as text.
std::string pass_key(const Request& used, const Precision& precision);

/// Remembers the passes that were used last. Can be used from several threads.
class PassCache {
 public:
  /// The request has all defaults filled in. Throws Error.
  std::shared_ptr<const PassWork> get(const ModelRef& model, const Request& used,
                                      const Precision& precision);

 private:
  /// Models are told apart by the object, which an entry keeps alive.
  struct Entry {
    std::shared_ptr<const ModelRef::Content> model;
    std::string key;
    std::shared_ptr<const PassWork> work;
  };

  /// With the lock held.
  std::shared_ptr<const PassWork> find(const ModelRef& model, const std::string& key);

  std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last first
};

}  // namespace tilecast
