#pragma once

// What a training step computes again in its backward pass (`checkpointing`, `recompute-modules`).

#include <string_view>

#include "ops/decompose.h"
#include "passes/passes.h"
#include "tilecast/request.h"

namespace tilecast {

inline constexpr const char* kCoreAttention = "core_attn";
inline constexpr const char* kExpertActivations = "moe_act";

/// Whether selective checkpointing computes the module again.
bool recomputes(const Request& request, std::string_view module);
RecomputedModules recomputed_modules(const Request& request);

/// Throws Error if the model has nothing that the request's checkpointing computes again.
void check_checkpointing(const Graph& modules, const Request& request, const EagerForm& form);

}  // namespace tilecast
