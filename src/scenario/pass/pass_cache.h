#pragma once

// The graph, program and memory of a pass take most of the time of a forecast, and are the same for
// all GPUs.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "scenario/pass/pass_work.h"
#include "scenario/precision.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// Everything beside the model that a pass follows from, as text.
std::string pass_key(const Request& used, const Precision& precision);

/// Remembers the passes that were used last. Can be used from several threads.
class PassCache {
 public:
  /// From now on passes of so many nodes together, for programs that answer many requests; default:
  /// a few passes. A node takes about 2 kB.
  void keep_nodes(size_t nodes);

  struct Counts {
    int64_t found = 0, built = 0;   ///< since the start
    int64_t passes = 0, nodes = 0;  ///< that are remembered now
  };
  Counts counts() const;

  /// The request has all defaults filled in. Throws Error.
  std::shared_ptr<const PassWork> get(const ModelRef& model, const Request& used,
                                      const Precision& precision);

 private:
  /// Models are told apart by the object, which an entry keeps alive.
  struct Entry {
    std::shared_ptr<const ModelRef::Content> model;
    std::string name;  ///< the model's address and the key of the pass
    std::shared_ptr<const PassWork> work;
  };

  /// With the lock held.
  std::shared_ptr<const PassWork> find(const std::string& name);
  bool is_full() const;

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_name_;
  size_t nodes_ = 0, most_nodes_ = 0;
  int64_t found_ = 0, built_ = 0;
};

}  // namespace tilecast
