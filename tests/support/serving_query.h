#pragma once

#include <string>
#include <vector>

#include "tilecast/search.h"

namespace tilecast {

/// Servers of four of these GPUs for prompts of 1024 tokens, within 0.5 s to the first token and 20
/// ms for each further one.
inline ServingQuery query_of(const std::vector<std::string>& gpus) {
  ServingQuery query;
  query.request.kind = RequestKind::kServe;
  query.request.prompt = 1024;
  query.request.output = 64;
  query.request.load.concurrency = 1;
  for (const std::string& gpu : gpus) query.hardware.push_back({load_gpu_ref(gpu), ""});
  query.gpus = 4;
  query.ttft_s = query.request.load.ttft_s = 0.5;
  query.tpot_s = query.request.load.tpot_s = 0.02;
  return query;
}

}  // namespace tilecast
