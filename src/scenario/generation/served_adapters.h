#pragma once

// Low-rank adapters (LoRA) of a server's requests: what their kernels compute, what memory they
// keep, and how long one takes to come from the host's memory. Goals: vLLM's, SGLang's and
// TensorRT-LLM's rules, each in its file of data/software (section `lora`). Not modelled: reading
// adapters from a disk (vLLM's max_cpu_loras: all are in the host's memory), adapters of experts,
// embedding and output layer, adapters of different ranks, --fully-sharded-loras.

#include <optional>

#include "passes/serving.h"
#include "scenario/generation/served_model.h"
#include "sim/serving.h"

namespace tilecast {

/// The options of adapters with the software's values filled in. Throws Error{kInput} where they do
/// not fit the software.
struct AdapterOptions {
  int64_t count = 0, rank = 0, max_loras = 0, max_lora_rank = 0;
};
AdapterOptions adapter_options(const Request& request);

/// Adapters in a step of so many sequences that all differ, as far as there are others.
int64_t most_adapters(const Request& request, int64_t sequences);

/// What the layers of a step run; rank 0: nothing.
StepAdapters step_adapters(const Request& request, int64_t used);

/// Bytes of the adapters that memory is kept for, on a rank of a stage.
int64_t adapter_slots_bytes(const ServedModel& served, size_t stage);

/// Adds the places of adapters and the time to load one.
void add_adapters(ServerLimits& limits, const ServedModel& served);

/// nullopt: requests have none.
std::optional<AdaptersForecast> describe_adapters(const ServedModel& served);

}  // namespace tilecast
