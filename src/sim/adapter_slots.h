#pragma once

// Low-rank adapters (LoRA) of requests: which of them a GPU has, and how many different ones a
// batch may have. The rules are those of
// - vLLM: vllm/lora/model_manager.py (LRUCacheLoRAModelManager, activate_adapter) and
//   worker_manager.py, release 0.19.0: max_loras slots; before a step, adapters of its requests
//   that have no slot take that of the least recently used.
// - SGLang: python/sglang/srt/lora/mem_pool.py (prepare_lora_batch), 0.5: the same; which unused
//   one makes room is by default the least recently used (--lora-eviction-policy).
// - TensorRT-LLM: cpp/tensorrt_llm/runtime/loraCache.cpp, 1.0: pages of the least recently used.
// All three are from memory of these files.

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace tilecast {

struct ServedRequest;
struct ServerState;

/// The adapters in the memory of one data-parallel rank.
class AdapterSlots {
 public:
  explicit AdapterSlots(int64_t slots) : slots_(slots) {}
  /// A step uses the adapter. Whether it has to be loaded.
  bool use(int64_t adapter);

 private:
  int64_t slots_;
  std::list<int64_t> used_;  ///< the least recently used is first
  std::unordered_map<int64_t, std::list<int64_t>::iterator> places_;
};

/// The adapters of a batch while it is formed: of the sequences that run, and of those that start.
class BatchAdapters {
 public:
  explicit BatchAdapters(const ServerState& state);
  /// Whether the request may start beside them.
  bool has_room(const ServedRequest& request) const;
  void add(const ServedRequest& request);

 private:
  size_t most_ = 0;  ///< 0: any number
  std::vector<int64_t> adapters_;
};

}  // namespace tilecast
