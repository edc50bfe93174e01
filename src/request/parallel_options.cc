// The options of training on several ranks. Names are Megatron-LM's where it has them.

#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {
namespace {

/// The degrees of parallelism.
std::vector<OptionDef> degree_options() {
  return {
      {.name = "dp",
       .access = field<[](auto& r) -> auto& { return r.execution.dp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "data-parallel ranks, which share the batch"},
      {.name = "cp",
       .access = field<[](auto& r) -> auto& { return r.parallel.cp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "context-parallel ranks, which share each sequence"},
      {.name = "cp-comm-type",
       .access = field<[](auto& r) -> auto& { return r.parallel.cp_comm_type; }>(),
       .default_value = "allgather",
       .help = "of context-parallel ranks: allgather: keys and values of all before attention "
               "(Llama 3); p2p: around a ring, beside attention; a2a: tokens for heads (Ulysses)",
       .choices = choice_names<CpCommType>()},
      {.name = "ep",
       .access = field<[](auto& r) -> auto& { return r.parallel.ep; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "expert-parallel ranks, which share the experts; they are data- or context-parallel "
               "ranks too"},
      // Text generation has it too (token_options.cc), with another default: training balances the
      // load of the experts, by a loss or a bias of the router; served tokens do not.
      {.name = "skew",
       .access = field<[](auto& r) -> auto& { return r.execution.skew_percent; }>(),
       .value = "N",
       .default_value = "0",
       .help =
           "100 times the exponent of the power law of the experts' load, for ep; 0: even; "
           "small exponents are not near 0: at 1, experts get from hardly any to twice the mean",
       .min = 0,
       .max = 300},
      {.name = "microbatches",
       .access = field<[](auto& r) -> auto& { return r.execution.microbatches; }>(),
       .value = "N",
       .default_value = "1",
       .help = "micro-batches of each data-parallel rank, whose gradients are accumulated"},
      {.name = "micro-batch-size",
       .access = field<[](auto& r) -> auto& { return r.parallel.micro_batch_size; }>(),
       .value = "N",
       .unit = "sequences",
       .help = "sequences of a micro-batch, instead of their number",
       .excludes = {"microbatches"}},
  };
}

std::vector<OptionDef> training_layout_options() {  // NOLINT(readability-function-size): a table
  return {
      {.name = "pipeline-schedule",
       .access = field<[](auto& r) -> auto& { return r.parallel.schedule; }>(),
       .default_value = "1f1b",
       .help = "gpipe: all forward passes first; 1f1b: one forward and one backward pass in turn; "
               "interleaved: that, with several parts of the model on each stage; zero-bubble "
               "(ZB-H1): as 1f1b, gradients of weights fill bubbles; zb-v: that, with two parts on "
               "each stage, forth and back",
       .choices = choice_names<PipelineSchedule>()},
      {.name = "num-layers-per-virtual-pipeline-stage",
       .access = field<[](auto& r) -> auto& { return r.parallel.layers_per_virtual_stage; }>(),
       .value = "N",
       .unit = "layers",
       .help = "of each part of the model, for the interleaved schedule",
       .needs = "pipeline-schedule=interleaved"},
      {.name = "pipeline-layers",
       .access = field<[](auto& r) -> auto& { return r.parallel.stage_layers; }>(),
       .value = "N,N,...",
       .help = "layers of each pipeline stage; default: as even as possible, the first and the "
               "last stage with fewer"},
      {.name = "sequence-parallel",
       .access = field<[](auto& r) -> auto& { return r.parallel.sequence_parallel; }>(),
       .default_value = "off",
       .help = "tensor-parallel ranks divide norms, dropout and residual sums along the sequence",
       .choices = {"on", "off"}},
      {.name = "tp-comm-overlap",
       .access = field<[](auto& r) -> auto& { return r.parallel.tp_comm_overlap; }>(),
       .default_value = "off",
       .help = "on: the exchanges of sequence-parallel run beside products, but for one part of tp",
       .choices = {"on", "off"},
       .needs = "sequence-parallel=on",
       .off_value = "off"},
      {.name = "overlap-moe-expert-parallel-comm",
       .access = field<[](auto& r) -> auto& { return r.parallel.moe_comm_overlap; }>(),
       .default_value = "off",
       .help = "on: the exchanges of experts run beside the passes of another micro-batch",
       .choices = {"on", "off"}},
      {.name = "moe-token-dispatcher-type",
       .access = field<[](auto& r) -> auto& { return r.parallel.token_dispatcher; }>(),
       .default_value = "alltoall",
       .help = "how tokens reach their experts in training: alltoall sends a copy for each expert, "
               "flex (DeepEP, HybridEP) one to each rank, and one to each other node",
       .choices = choice_names<TokenDispatcher>()},
      {.name = "expert-tensor-parallel-size",
       .access = field<[](auto& r) -> auto& { return r.parallel.expert_tp; }>(),
       .value = "N",
       .unit = "ranks",
       .help = "ranks that divide each expert, among all of a stage; 1: experts "
               "are whole. All but tp (the default): each rank sends tokens of its own, and the "
               "ranks of an expert gather them"},
      {.name = "make-vocab-size-divisible-by",
       .access = field<[](auto& r) -> auto& { return r.parallel.vocab_divisible_by; }>(),
       .value = "N",
       .unit = "tokens",
       .default_value = "128",
       .help = "with tp, the vocabulary is padded to a multiple of N times tp, as Megatron does"},
      {.name = "zero",
       .access = field<[](auto& r) -> auto& { return r.parallel.zero; }>(),
       .default_value = "0",
       .help = "what data-parallel ranks divide: 1: optimizer states (Megatron's "
               "--use-distributed-optimizer); 2: also gradients; 3: also parameters (FSDP)",
       .choices = choice_names<Zero>()},
      {.name = "bucket-cap-mb",
       .access = field<[](auto& r) -> auto& { return r.parallel.bucket_bytes; }>(),
       .value = "MIB",
       .unit = "MiB",
       .default_value = "25",
       .help = "gradients are reduced in buckets of this size",
       .min = 1e-6,
       .max = 1e9,
       .per_unit = 1.0 / (1 << 20)},
      {.name = "overlap-grad-reduce",
       .access = field<[](auto& r) -> auto& { return r.parallel.overlap_grad_reduce; }>(),
       .default_value = "on",
       .help = "on: gradients are reduced during the backward pass; off: after it, in one buffer "
               "and without the copies of DistributedDataParallel",
       .choices = {"on", "off"}},
      {.name = "main-params-dtype",
       .access = field<[](auto& r) -> auto& { return r.parallel.main_params; }>(),
       .help = "fp32: the optimizer keeps a copy of 16-bit parameters and its states in fp32; "
               "gradients stay in a buffer (fp32 for bf16 parameters), as Megatron does; default: "
               "fp32 for 16-bit parameters that are trained",
       .choices = choice_names<MainParams>(),
       .off_value = "as-model"},
      {.name = "slow-ranks",
       .access = field<[](auto& r) -> auto& { return r.parallel.slow_ranks; }>(),
       .value = "RANK:FACTOR,...",
       .help = "ranks that compute slower by a factor: 5:1.2,17:1.5"},
  };
}

/// Recommendation models divide their tables in inference, too. The model decides whether others
/// may have these options (src/scenario/pass/pass.cc).
bool divides_tables(const std::string& name) {
  return name == "dp" || name == "cluster" || name == "nodes";
}

}  // namespace

std::vector<OptionDef> parallel_options() {
  std::vector<OptionDef> options = cluster_options("one node of the GPU");
  for (const auto& list : {degree_options(), training_layout_options()})
    options.insert(options.end(), list.begin(), list.end());
  for (OptionDef& option : options) {
    option.kinds = kPasses;
    if (option.needs.empty() && !divides_tables(option.name)) option.needs = "mode=training";
  }
  return options;
}

}  // namespace tilecast
