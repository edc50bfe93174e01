#pragma once

#include <utility>

#include "lower/program.h"
#include "memory/by_purpose.h"

namespace tilecast {

/// A pass before devices and times come in. It is the same for all GPUs that run the pass in the
/// same precision.
struct PassWork {
  Graph graph;
  Program program;  ///< points into the graph
  MemoryByPurpose memory;

  PassWork(Graph pass, const LifetimeOptions& lifetimes)
      : graph(std::move(pass)),
        program(lower(graph)),
        memory(memory_by_purpose(graph, lifetimes)),
        options(lifetimes) {}
  PassWork(const PassWork&) = delete;
  PassWork& operator=(const PassWork&) = delete;

  /// To be called when sizes of the graph were changed.
  void sizes_changed() {
    program = lower(graph);
    memory = memory_by_purpose(graph, options);
  }

 private:
  LifetimeOptions options;
};

}  // namespace tilecast
