// How the software is started for the first candidate of a plan.
// The flags are those of Megatron-LM (training/arguments.py), torchtitan (config/job_config.py),
// vLLM (engine arguments), SGLang (server arguments) and trtllm-serve in 2025, as far as they were
// known without the sources at hand: each tool's --help settles a doubt.

#include <fmt/format.h>

#include "request/access.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

class CommandLine {
 public:
  explicit CommandLine(std::string start) : text_(std::move(start)) {}
  template <typename T>
  CommandLine& add(const char* flag, const T& value) {
    text_ += fmt::format(" {} {}", flag, value);
    return *this;
  }
  template <typename T>
  CommandLine& add_if(bool wanted, const char* flag, const T& value) {
    return wanted ? add(flag, value) : *this;
  }
  CommandLine& add_switch(bool wanted, const char* flag) {
    if (wanted) text_ += fmt::format(" {}", flag);
    return *this;
  }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

std::string megatron(const TrainingPlan& plan, const TrainingCandidate& c) {
  const int64_t gpus = plan.ranks / plan.nodes;
  CommandLine words(
      fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py", plan.nodes, gpus));
  const bool full = c.checkpointing == Checkpointing::kFull;
  words.add("--tensor-model-parallel-size", c.tp)
      .add("--pipeline-model-parallel-size", c.pp)
      .add_if(c.layers_per_virtual_stage.has_value(), "--num-layers-per-virtual-pipeline-stage",
              c.layers_per_virtual_stage.value_or(0))
      .add_if(c.cp > 1, "--context-parallel-size", c.cp)
      .add_if(c.ep > 1, "--expert-model-parallel-size", c.ep)
      .add("--micro-batch-size", c.micro_batch_size)
      .add("--global-batch-size", plan.batch)
      .add("--seq-length", plan.seq)
      .add_switch(c.dtype.starts_with("bf16") || c.dtype == "amp", "--bf16")
      .add_switch(c.dtype == "fp16" || c.dtype == "amp-fp16", "--fp16")
      .add_switch(c.sequence_parallel, "--sequence-parallel")
      .add_switch(c.zero == Zero::kOptimizer, "--use-distributed-optimizer")
      .add_switch(c.zero > Zero::kOptimizer, "--use-megatron-fsdp")
      .add_if(c.zero > Zero::kOptimizer, "--data-parallel-sharding-strategy",
              c.zero == Zero::kParameters ? "optim_grads_params" : "optim_grads")
      .add_switch(plan.used.parallel.overlap_grad_reduce, "--overlap-grad-reduce")
      .add_if(full, "--recompute-granularity", "full")
      .add_if(full, "--recompute-method", "uniform")
      .add_if(full, "--recompute-num-layers", 1)
      .add_switch(c.checkpointing == Checkpointing::kSelective, "--recompute-activations");
  return words.text();
}

/// "" where torchtitan has no such way: it shards the optimizer's states only together with
/// gradients.
std::string torchtitan(const TrainingPlan& plan, const TrainingCandidate& c) {
  if (c.zero == Zero::kOptimizer) return "";
  const bool sharded = c.zero != Zero::kNone;
  constexpr const char* kSchedules[] = {"GPipe", "1F1B", "Interleaved1F1B"};
  const char* schedule = c.schedule == PipelineSchedule::kGPipe  ? kSchedules[0]
                         : c.schedule == PipelineSchedule::k1F1B ? kSchedules[1]
                                                                 : kSchedules[2];
  CommandLine words(fmt::format("torchrun --nnodes {} --nproc-per-node {} -m torchtitan.train",
                                plan.nodes, plan.ranks / plan.nodes));
  words.add("--training.seq_len", plan.seq)
      .add("--training.global_batch_size", plan.batch)
      .add("--training.local_batch_size",
           c.pp > 1 ? c.micro_batch_size * c.microbatches : c.micro_batch_size)
      .add("--parallelism.data_parallel_replicate_degree", sharded ? 1 : c.dp)
      .add("--parallelism.data_parallel_shard_degree", sharded ? c.dp : 1)
      .add_if(sharded, "--parallelism.fsdp_reshard_after_forward",
              c.zero == Zero::kParameters ? "always" : "never")
      .add_if(c.tp > 1, "--parallelism.tensor_parallel_degree", c.tp)
      .add_if(c.cp > 1, "--parallelism.context_parallel_degree", c.cp)
      .add_if(c.ep > 1, "--parallelism.expert_parallel_degree", c.ep)
      .add_if(c.pp > 1, "--parallelism.pipeline_parallel_degree", c.pp)
      .add_if(c.pp > 1, "--parallelism.pipeline_parallel_microbatch_size", c.micro_batch_size)
      .add_if(c.pp > 1, "--parallelism.pipeline_parallel_schedule", schedule)
      .add("--activation_checkpoint.mode", choice_name(c.checkpointing));
  return words.text();
}

std::string vllm(const ServingPlan& plan, const ServingCandidate& c) {
  const Request& r = plan.used;
  CommandLine words("vllm serve " + plan.model);
  words.add("--tensor-parallel-size", c.tp)
      .add_if(c.pp > 1, "--pipeline-parallel-size", c.pp)
      .add_if(c.dp > 1, "--data-parallel-size", c.dp)
      .add_switch(c.ep > 1, "--enable-expert-parallel")
      .add_if(c.all2all == All2All::kDeepEp, "--all2all-backend", "deepep_low_latency")
      .add_if(c.dtype == "bf16", "--dtype", "bfloat16")
      .add_if(c.dtype == "fp16", "--dtype", "float16")
      .add_if(c.dtype == "fp8", "--quantization", "fp8")
      .add_if(!c.kv_dtype.empty(), "--kv-cache-dtype", c.kv_dtype)
      .add_if(r.load.max_num_seqs.has_value(), "--max-num-seqs", r.load.max_num_seqs.value_or(0))
      .add("--max-num-batched-tokens", r.execution.max_num_batched_tokens)
      .add_if(r.execution.gpu_memory_utilization.has_value(), "--gpu-memory-utilization",
              r.execution.gpu_memory_utilization.value_or(0));
  return words.text();
}

std::string sglang(const ServingPlan& plan, const ServingCandidate& c) {
  const Request& r = plan.used;
  CommandLine words("python -m sglang.launch_server --model-path " + plan.model);
  // There, the ranks of attention are a part of `tp`.
  words.add("--tp-size", c.tp * c.dp)
      .add_if(c.pp > 1, "--pp-size", c.pp)
      .add_if(c.dp > 1, "--dp-size", c.dp)
      .add_switch(c.dp > 1, "--enable-dp-attention")
      .add_if(c.ep > 1, "--ep-size", c.ep)
      .add_if(c.all2all == All2All::kDeepEp, "--moe-a2a-backend", "deepep")
      .add_if(c.dtype == "bf16", "--dtype", "bfloat16")
      .add_if(c.dtype == "fp16", "--dtype", "float16")
      .add_if(c.dtype == "fp8", "--quantization", "fp8")
      .add_if(c.kv_dtype.starts_with("fp8"), "--kv-cache-dtype", "fp8_e4m3")
      .add_if(r.load.max_num_seqs.has_value(), "--max-running-requests",
              r.load.max_num_seqs.value_or(0))
      .add("--chunked-prefill-size", r.execution.max_num_batched_tokens)
      .add_if(r.execution.gpu_memory_utilization.has_value(), "--mem-fraction-static",
              r.execution.gpu_memory_utilization.value_or(0));
  return words.text();
}

std::string trtllm(const ServingPlan& plan, const ServingCandidate& c) {
  const Request& r = plan.used;
  CommandLine words("trtllm-serve " + plan.model);
  words.add("--tp_size", c.tp)
      .add_if(c.pp > 1, "--pp_size", c.pp)
      .add_if(c.ep > 1, "--ep_size", c.ep)
      .add_if(r.load.max_num_seqs.has_value(), "--max_batch_size", r.load.max_num_seqs.value_or(0))
      .add("--max_num_tokens", r.execution.max_num_batched_tokens)
      .add_if(r.execution.gpu_memory_utilization.has_value(), "--kv_cache_free_gpu_memory_fraction",
              r.execution.gpu_memory_utilization.value_or(0));
  return words.text();
}

struct Server {
  const char* software;
  std::string (*command)(const ServingPlan&, const ServingCandidate&);
};
constexpr Server kStarted[] = {{"vllm", vllm}, {"sglang", sglang}, {"trtllm", trtllm}};

}  // namespace

std::vector<LaunchLine> launch_lines(const TrainingPlan& plan) {
  if (plan.fitting == 0 || !plan.counts_tokens) return {};
  const TrainingCandidate& c = plan.candidates.front();
  std::vector<LaunchLine> lines = {{"megatron", megatron(plan, c)}};
  if (std::string command = torchtitan(plan, c); !command.empty())
    lines.push_back({"torchtitan", std::move(command)});
  return lines;
}

std::vector<LaunchLine> launch_lines(const ServingPlan& plan) {
  std::vector<LaunchLine> lines;
  if (plan.meeting == 0) return lines;
  const ServingCandidate& c = plan.candidates.front();
  for (const Server& server : kStarted) {
    if (plan.software == server.software) lines.push_back({plan.software, server.command(plan, c)});
  }
  return lines;
}

}  // namespace tilecast
