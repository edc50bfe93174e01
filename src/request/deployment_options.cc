// The options of text generation on several GPUs. Names are vLLM's where it has them.

#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {
namespace {

std::vector<OptionDef> server_layout_options() {
  return {
      {.name = "dp",
       .access = field<[](auto& r) -> auto& { return r.execution.dp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "attention data parallelism within a replica: each rank (of tp GPUs) has its own "
               "sequences and cache; the experts are shared by all",
       .old_names = {"attention-dp"}},
      {.name = "ep",
       .access = field<[](auto& r) -> auto& { return r.parallel.ep; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "expert-parallel ranks among the tp x dp GPUs of a stage; tp x dp / ep GPUs share "
               "each expert"},
      {.name = "all2all-backend",
       .access = field<[](auto& r) -> auto& { return r.deployment.all2all; }>(),
       .default_value = "allgather_reducescatter",
       .help = "how tokens of dp ranks reach the experts; deepep: its low-latency kernels in "
               "decode steps, the normal ones in others",
       .choices = choice_names<All2All>()},
  };
}

std::vector<OptionDef> pool_options() {  // NOLINT(readability-function-size): a table
  return {
      {.name = "replicas",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.replicas; }>(),
       .value = "N",
       .unit = "servers",
       .default_value = "1",
       .help = "equal servers behind a router; with a prefill pool: of the decode pool",
       .max = 4096},
      {.name = "router",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.router; }>(),
       .default_value = "least-loaded",
       .help = "which replica gets a request: each in turn, the one with the fewest in flight, or "
               "the one that had the turn before of its session",
       .choices = choice_names<Router>()},
      {.name = "prefill-workers",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.prefill.workers; }>(),
       .value = "N",
       .unit = "servers",
       .default_value = "0",
       .help = "servers that compute prompts only; the replicas get the KV cache from them; 0: "
               "replicas compute prompts themselves",
       .min = 0,
       .max = 4096},
      {.name = "prefill-tp",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.prefill.tp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "tp of a prefill worker"},
      {.name = "prefill-pp",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.prefill.pp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "pp of a prefill worker"},
      {.name = "prefill-dp",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.prefill.dp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "dp of a prefill worker",
       .old_names = {"prefill-attention-dp"}},
      {.name = "prefill-ep",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.prefill.ep; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "ep of a prefill worker"},
      {.name = "kv-transfer",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.prefill.transfer; }>(),
       .default_value = "after-prefill",
       .help = "when the KV cache moves to the decode pool: after-prefill, or by-layer while later "
               "layers are computed",
       .choices = choice_names<KvTransfer>()},
      {.name = "encode-workers",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.encode.workers; }>(),
       .value = "N",
       .unit = "servers",
       .default_value = "0",
       .help = "servers that run the vision tower only; those that compute prompts get the tokens "
               "of images from them; 0: these run it themselves",
       .min = 0,
       .max = 4096},
      {.name = "encode-tp",
       .kinds = kServers,
       .access = field<[](auto& r) -> auto& { return r.deployment.encode.tp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "tp of an encode worker"},
  };
}

std::vector<OptionDef> draft_options() {
  return {
      {.name = "speculative-tokens",
       .access = field<[](auto& r) -> auto& { return r.deployment.speculation.tokens; }>(),
       .value = "K",
       .unit = "tokens",
       .default_value = "0",
       .help = "speculative decoding: tokens of a draft, which the model checks in one step",
       .min = 0,
       .max = 64,
       .old_names = {"num-speculative-tokens"}},
      {.name = "speculative-method",
       .access = field<[](auto& r) -> auto& { return r.deployment.speculation.method; }>(),
       .help = "what makes the drafts: the `draft-model`, the default if there is one; mtp, the "
               "model's own layers for multi-token prediction, else the default; ngram, a search "
               "in the text by the host; eagle or eagle3, a trained layer (of `draft-model`'s "
               "config, else like a dense model's own)",
       .choices = choice_names<DraftMethod>()},
      {.name = "acceptance-rate",
       .access = field<[](auto& r) -> auto& { return r.deployment.speculation.acceptance_rate; }>(),
       .value = "A",
       .help = "probability that a token of the draft is accepted if those before it were; "
               "default: that of the method, which the output states with its source",
       .min = 0,
       .max = 1},
      {.name = "draft-model",
       .access = field<[](auto& r) -> auto& { return r.deployment.speculation.draft_model; }>(),
       .value = "MODEL",
       .help = "model that makes the drafts; default: the model's own layers for multi-token "
               "prediction"},
  };
}

}  // namespace

std::vector<OptionDef> deployment_options() {
  std::vector<OptionDef> all;
  for (const auto& list : {cluster_options("nodes of the GPU"), server_layout_options(),
                           pool_options(), draft_options()}) {
    for (OptionDef option : list) {
      if (option.kinds == kAllKinds) option.kinds = kTokens;
      all.push_back(std::move(option));
    }
  }
  return all;
}

}  // namespace tilecast
