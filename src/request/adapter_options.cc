// The options of low-rank adapters that the requests of a server have. Names are vLLM's where it
// has them; `lora-rank` and `lora-targets` are those of training (options.cc).

#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {

std::vector<OptionDef> served_adapter_options() {
  return {
      {.name = "lora-rank",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.lora_rank; }>(),
       .value = "N",
       .default_value = "0",
       .help = "rank of a LoRA adapter that each request has; 0: none has one",
       .min = 0},
      {.name = "lora-targets",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.lora_targets; }>(),
       .value = "NAMES",
       .default_value = "all-linear",
       .help = "the linear layers with an adapter, by the last part of their names: q_proj,v_proj; "
               "vLLM runs its kernels at all linear layers in any case"},
      {.name = "lora-adapters",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.adapters.count; }>(),
       .value = "N",
       .default_value = "1",
       .help = "different adapters, of which each request (or conversation) has one; a trace may "
               "name them instead",
       .max = 100'000},
      {.name = "lora-skew",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.adapters.skew; }>(),
       .value = "X",
       .default_value = "0",
       .help = "exponent of the power law by which requests choose their adapters (Zipf); 0: all "
               "alike",
       .min = 0,
       .max = 10},
      {.name = "max-loras",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.adapters.max_loras; }>(),
       .value = "N",
       .default_value = "the software's",
       .help = "adapters that the GPU's memory has room for, which are the most of a step; others "
               "come from the host's memory; default: 1 with vLLM, 8 with SGLang "
               "(--max-loras-per-batch), 4 with TensorRT-LLM",
       .max = 100'000},
      {.name = "max-lora-rank",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.adapters.max_lora_rank; }>(),
       .value = "N",
       .default_value = "the software's",
       .help = "rank that memory is kept for, and that vLLM's kernels compute; default: lora-rank, "
               "at least 16 with vLLM and 64 with TensorRT-LLM"},
  };
}

}  // namespace tilecast
