// The options of a server's scheduler and of its launches. Each has the name that its software
// gives it.

#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {
namespace {

std::vector<OptionDef> launch_options() {
  return {
      {.name = "cudagraph-mode",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.execution.cudagraph_mode; }>(),
       .help = "which steps are CUDA graphs: decode steps, or also what lies between attention in "
               "steps with prompts; default: the latter with vLLM, else decode steps",
       .choices = choice_names<CudaGraphMode>()},
      {.name = "max-cudagraph-capture-size",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.execution.max_cudagraph_capture_size; }>(),
       .value = "N",
       .unit = "tokens",
       .default_value = "the software's",
       .help = "steps with prompts have graphs up to so many tokens; vLLM: 512",
       .min = 0},
      {.name = "moe-backend",
       .kinds = kTokens,
       .access = field<[](auto& r) -> auto& { return r.execution.moe_backend; }>(),
       .default_value = "auto",
       .help = "kernels of experts whose weights have fewer bits than what they multiply: the "
               "software's choice, or Marlin's (vLLM: VLLM_MXFP4_USE_MARLIN, too)",
       .choices = choice_names<MoeBackend>()},
  };
}

std::vector<OptionDef> waiting_options() {  // NOLINT(readability-function-size): a table
  return {
      {.name = "async-scheduling",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.scheduling.async; }>(),
       .help = "a step is formed while the step before it runs, so that a request waits a step "
               "longer (SGLang: --disable-overlap-schedule; TensorRT-LLM: "
               "disable_overlap_scheduler); default: on, vLLM before 0.14 off",
       .choices = {"on", "off"}},
      {.name = "scheduler-recv-interval",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.scheduling.recv_interval; }>(),
       .value = "N",
       .unit = "steps",
       .default_value = "1",
       .help = "SGLang: decode steps between two looks for requests"},
      {.name = "num-continuous-decode-steps",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.scheduling.continuous_decode_steps; }>(),
       .value = "N",
       .unit = "steps",
       .default_value = "1",
       .help = "SGLang: decode steps that run in a row before it looks for requests"},
      {.name = "batch-wait-timeout-iters",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.scheduling.batch_wait_timeout_iters; }>(),
       .value = "N",
       .unit = "steps",
       .default_value = "0",
       .help = "TensorRT-LLM: steps for which prompts wait for others to fill a step",
       .min = 0},
      {.name = "batch-wait-max-tokens-ratio",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.scheduling.batch_wait_max_tokens_ratio; }>(),
       .value = "X",
       .default_value = "0",
       .help = "TensorRT-LLM: share of max-num-batched-tokens that fills a step",
       .min = 0,
       .max = 1},
      {.name = "attention-dp-timeout-iters",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.scheduling.attention_dp_timeout_iters; }>(),
       .value = "N",
       .unit = "steps",
       .default_value = "0",
       .help = "TensorRT-LLM with dp ranks: steps for which prompts wait until each rank has one "
               "(attention_dp_config: enable_balance, timeout_iters, whose default is 50)",
       .min = 0},
      {.name = "attention-dp-batching-wait-iters",
       .kinds = kServers,
       .access =
           field<[](auto& r) -> auto& { return r.scheduling.attention_dp_batching_wait_iters; }>(),
       .value = "N",
       .unit = "steps",
       .default_value = "0",
       .help = "TensorRT-LLM with dp ranks: steps for which prompts wait for more once each rank "
               "has one (batching_wait_iters, whose default is 10)",
       .min = 0},
  };
}

}  // namespace

std::vector<OptionDef> scheduling_options() {
  std::vector<OptionDef> options = launch_options();
  for (OptionDef& option : waiting_options()) options.push_back(std::move(option));
  return options;
}

}  // namespace tilecast
