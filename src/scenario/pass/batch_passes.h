#pragma once

// The passes of a table whose rows differ in the batch and the GPU.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph_family.h"
#include "scenario/pass/pass_cache.h"

namespace tilecast {

/// Makes the passes of a model for several batches, all else being equal. Where three of their
/// graphs tell the others (GraphFamily), the others are not built. Not for several threads.
class BatchPasses {
 public:
  /// `batches` are those that will be asked for. `cache` makes all other passes.
  BatchPasses(PassCache& cache, std::vector<int64_t> batches);

  /// Result of `PassCache::get`. The next call may change it: hold it no longer.
  std::shared_ptr<const PassWork> get(const ModelRef& model, const Request& used,
                                      const Precision& precision);

 private:
  /// The passes of one precision.
  struct Family {
    std::string key;  ///< of the request but for the batch
    std::shared_ptr<PassWork> work;
    std::optional<GraphFamily> graphs;  ///< nullopt: they are not alike
    int64_t batch = 0;                  ///< that `work` has
  };

  Family make(const ModelRef& model, const Request& used, const Precision& precision) const;

  PassCache& cache_;
  int64_t first_ = 0, last_ = 0;
  bool several_ = false;  ///< there are many more batches than graphs need to be built
  const ModelRef::Content* model_ = nullptr;
  std::vector<Family> families_;
};

}  // namespace tilecast
