#pragma once

// What a pass is before devices and times come in. It takes most of the time of a forecast, and is
// the same for all GPUs that run the pass in the same precision.

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "api/precision.h"
#include "lower/program.h"
#include "memory/plan.h"
#include "tilecast/forecast.h"

namespace tilecast {

struct PassWork {
  Graph graph;
  Program program;  ///< points into the graph
  MemoryPlan memory;

  explicit PassWork(Graph pass) : graph(std::move(pass)) {}
  PassWork(const PassWork&) = delete;
  PassWork& operator=(const PassWork&) = delete;
};

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

  std::shared_ptr<const PassWork> find(const ModelRef& model, const std::string& key);

  std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last first
};

}  // namespace tilecast
