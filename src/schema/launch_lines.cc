// How the software is started for a forecast, or for the first candidate of a plan. The flags of
// servers are in data/software. Those of training are Megatron-LM's (training/arguments.py) and
// torchtitan's (config/job_config.py) in 2025, as far as they were known without the sources at
// hand: each tool's --help settles a doubt.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "request/access.h"
#include "software/software.h"
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

/// A training step as scripts are told of it.
struct ScriptedStep {
  int64_t nodes = 1, ranks = 1, batch = 1, seq = 1;
  bool overlap_grad_reduce = true;
  CpCommType cp_comm_type = CpCommType::kAllGather;
  TrainingCandidate layout;

  std::string torchrun() const {
    return fmt::format("torchrun --nnodes {} --nproc-per-node {}", nodes, ranks / nodes);
  }
};

/// "" where Megatron-LM has no such schedule.
std::string megatron(const ScriptedStep& step) {
  const TrainingCandidate& c = step.layout;
  if (splits_backward(c.schedule)) return "";
  CommandLine words(step.torchrun() + " pretrain_gpt.py");
  const bool full = c.checkpointing == Checkpointing::kFull;
  words.add("--tensor-model-parallel-size", c.tp)
      .add("--pipeline-model-parallel-size", c.pp)
      .add_if(c.layers_per_virtual_stage.has_value(), "--num-layers-per-virtual-pipeline-stage",
              c.layers_per_virtual_stage.value_or(0))
      .add_if(c.cp > 1, "--context-parallel-size", c.cp)
      .add_if(c.cp > 1, "--cp-comm-type", choice_name(step.cp_comm_type))
      .add_if(c.ep > 1, "--expert-model-parallel-size", c.ep)
      .add("--micro-batch-size", c.micro_batch_size)
      .add("--global-batch-size", step.batch)
      .add("--seq-length", step.seq)
      .add_switch(c.dtype.starts_with("bf16") || c.dtype == "amp", "--bf16")
      .add_switch(c.dtype == "fp16" || c.dtype == "amp-fp16", "--fp16")
      .add_switch(c.sequence_parallel, "--sequence-parallel")
      .add_switch(c.zero == Zero::kOptimizer, "--use-distributed-optimizer")
      .add_switch(c.zero > Zero::kOptimizer, "--use-megatron-fsdp")
      .add_if(c.zero > Zero::kOptimizer, "--data-parallel-sharding-strategy",
              c.zero == Zero::kParameters ? "optim_grads_params" : "optim_grads")
      .add_switch(step.overlap_grad_reduce, "--overlap-grad-reduce")
      .add_if(full, "--recompute-granularity", "full")
      .add_if(full, "--recompute-method", "uniform")
      .add_if(full, "--recompute-num-layers", 1)
      .add_switch(c.checkpointing == Checkpointing::kSelective, "--recompute-activations");
  return words.text();
}

/// "" where torchtitan has no such way: it shards the optimizer's states only together with
/// gradients, and its InterleavedZeroBubble wants two parts of the model or more on each stage.
std::string torchtitan(const ScriptedStep& step) {
  const TrainingCandidate& c = step.layout;
  if (c.zero == Zero::kOptimizer || c.schedule == PipelineSchedule::kZeroBubble) return "";
  const bool sharded = c.zero != Zero::kNone;
  // The names of torch.distributed.pipelining, by PipelineSchedule.
  constexpr std::array kSchedules = {"GPipe", "1F1B", "Interleaved1F1B", "", "ZBVZeroBubble"};
  const char* schedule = kSchedules.at(static_cast<size_t>(c.schedule));
  CommandLine words(step.torchrun() + " -m torchtitan.train");
  words.add("--training.seq_len", step.seq)
      .add("--training.global_batch_size", step.batch)
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

/// What the request says of optimizer and loss, beyond the scripts' defaults, in the words of
/// Megatron-LM, or as what no flag says.
void add_step_words(LaunchLine& line, const Request& r) {
  const bool megatron = line.software == "megatron";
  const auto add = [&](const std::string& flag, const std::string& option) {
    std::string& text = flag.empty() ? line.without : line.command;
    text += (text.empty() ? "" : " ") + (flag.empty() ? option : flag);
  };
  const Optimizer optimizer = r.optimizer.value_or(Optimizer::kAdamW);
  if (optimizer > Optimizer::kAdamW) {
    const std::string words = fmt::format("--optimizer {}", choice_name(optimizer));
    add(megatron && optimizer == Optimizer::kMuon ? words : "", words);
  }
  if (r.optimizer_offload) add(megatron ? "--optimizer-cpu-offload" : "", "--optimizer-offload on");
  // Megatron-LM's is in place, or fused by a compiler; torchtitan's PyTorch's.
  const CrossEntropy own = megatron ? CrossEntropy::kInPlace : CrossEntropy::kLogSoftmax;
  if (r.cross_entropy.value_or(own) != own) {
    const bool fused = megatron && r.cross_entropy == CrossEntropy::kCompiled;
    add(fused ? "--cross-entropy-loss-fusion" : "",
        fmt::format("--cross-entropy {}", choice_name(*r.cross_entropy)));
  }
  if (r.packed_length) add("", fmt::format("--packed-sequence-length {}", *r.packed_length));
}

std::vector<LaunchLine> training_lines(const ScriptedStep& step, const Request& request) {
  std::vector<LaunchLine> lines;
  if (std::string command = megatron(step); !command.empty())
    lines.push_back({"megatron", std::move(command), ""});
  if (std::string command = torchtitan(step); !command.empty()) {
    std::string without;
    if (step.layout.cp > 1 && step.cp_comm_type != CpCommType::kAllGather)
      without = fmt::format("--cp-comm-type {}", choice_name(step.cp_comm_type));
    lines.push_back({"torchtitan", std::move(command), std::move(without)});
  }
  for (LaunchLine& line : lines) add_step_words(line, request);
  return lines;
}

ScriptedStep step_of(const Forecast& f) {
  const Request& r = f.used;
  ScriptedStep step{.nodes = f.parallel ? f.parallel->nodes : 1,
                    .ranks = f.parallel ? f.parallel->ranks : 1,
                    .batch = f.batch,
                    .seq = f.seq,
                    .overlap_grad_reduce = f.parallel && r.parallel.overlap_grad_reduce,
                    .cp_comm_type = r.parallel.cp_comm_type,
                    .layout = {}};
  TrainingCandidate& c = step.layout;
  c.dp = r.execution.dp;
  c.tp = r.execution.tp;
  c.pp = r.execution.pp;
  c.cp = r.parallel.cp;
  c.ep = r.parallel.ep;
  c.micro_batch_size = f.parallel ? f.parallel->micro_batch_size : f.batch;
  c.microbatches = f.parallel ? f.parallel->microbatches : 1;
  c.layers_per_virtual_stage = r.parallel.layers_per_virtual_stage;
  c.schedule = r.parallel.schedule;
  c.zero = r.parallel.zero;
  c.checkpointing = r.checkpointing;
  c.sequence_parallel = r.parallel.sequence_parallel;
  c.dtype = f.dtype;
  return step;
}

/// A server as its flags tell of it.
struct ServedLayout {
  std::string model, software;
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  All2All all2all = All2All::kAllGather;
  std::string dtype, kv_dtype;  ///< "": the checkpoint's
  std::optional<int64_t> max_model_len;
};

/// Words of data/software with the values of a candidate in place of their names in braces.
class ServerCommand {
 public:
  explicit ServerCommand(const ServedLayout& c)
      : values_{
            {"{model}", c.model},           {"{tp}", std::to_string(c.tp)},
            {"{pp}", std::to_string(c.pp)}, {"{dp}", std::to_string(c.dp)},
            {"{ep}", std::to_string(c.ep)}, {"{attention_ranks}", std::to_string(c.tp * c.dp)}} {}

  void add(const std::string& words) {
    std::string text = words;
    for (const auto& [name, value] : values_) {
      if (const size_t at = text.find(name); at != std::string::npos)
        text.replace(at, name.size(), value);
    }
    if (!text.empty()) line_.command += (line_.command.empty() ? "" : " ") + text;
  }
  /// The value of a name in braces.
  void set(const char* name, int64_t value) { values_.emplace_back(name, std::to_string(value)); }
  /// `option`: what the candidate asks for, as Tilecast's options say it.
  void add_or_miss(const std::string& words, const std::string& option) {
    add(words);
    if (words.empty()) line_.without += (line_.without.empty() ? "" : " ") + option;
  }
  /// `name`: in braces.
  template <typename T>
  void add_given(const std::string& words, const char* name, const std::optional<T>& value) {
    if (!value) return;
    values_.emplace_back(name, fmt::format("{}", *value));
    add(words);
  }
  LaunchLine line(std::string software) && {
    line_.software = std::move(software);
    return std::move(line_);
  }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
  LaunchLine line_;
};

/// Options that change a server, for which data/software has no flag.
constexpr std::string_view kWithoutFlags[] = {
    "speculative-tokens",
    "replicas",
    "prefill-workers",
    "encode-workers",
    "enable-prefix-caching",
    "kv-offloading-size",
    "cuda-graphs",
    "cudagraph-mode",
    "max-cudagraph-capture-size",
    "moe-backend",
    "async-scheduling",
    "scheduler-recv-interval",
    "num-continuous-decode-steps",
    "batch-wait-timeout-iters",
    "batch-wait-max-tokens-ratio",
    "attention-dp-timeout-iters",
    "attention-dp-batching-wait-iters",
};

/// Those of them that differ from the defaults.
void add_missed(ServerCommand& command, const Request& r) {
  const Request defaults;
  for (const OptionDef& option : request_options()) {
    if (std::find(std::begin(kWithoutFlags), std::end(kWithoutFlags), option.name) ==
        std::end(kWithoutFlags))
      continue;
    const std::string value = option.access.get(r, option);
    if (value != option.access.get(defaults, option))
      command.add_or_miss("", fmt::format("--{} {}", option.name, value));
  }
}

/// Flags of low-rank adapters, with the software's values where the request states none.
void add_adapters(ServerCommand& command, const LaunchWords& words, const Request& r) {
  if (r.lora_rank == 0) return;
  const LoraRule& rule = software_def(r.execution.software.value_or(default_server())).lora;
  command.set("{max_loras}", r.adapters.max_loras.value_or(rule.max_loras));
  command.set("{max_lora_rank}", r.adapters.max_lora_rank.value_or(rule.kept_rank(r.lora_rank)));
  command.add_or_miss(words.lora, fmt::format("--lora-rank {}", r.lora_rank));
}

/// Empty: no command of the software is known.
std::vector<LaunchLine> server_lines(const ServedLayout& c, const Request& r) {
  const std::optional<Software> software = find_software(c.software);
  if (!software || software_def(*software).launch.command.empty()) return {};
  const LaunchWords& words = software_def(*software).launch;
  ServerCommand command(c);
  command.add(words.command);
  command.add(words.tp);
  const auto add_degree = [&](const std::string& flag, const char* name, int64_t degree) {
    if (degree > 1) command.add_or_miss(flag, fmt::format("--{} {}", name, degree));
  };
  add_degree(words.pp, "pp", c.pp);
  add_degree(words.dp, "dp", c.dp);
  add_degree(words.ep, "ep", c.ep);
  if (c.all2all == All2All::kDeepEp)
    command.add_or_miss(words.deepep, fmt::format("--all2all-backend {}", choice_name(c.all2all)));
  // A server takes the checkpoint's 16 bits where no flag says which.
  if (c.dtype == "bf16") {
    command.add(words.bf16);
  } else if (c.dtype == "fp16") {
    command.add(words.fp16);
  } else if (!c.dtype.empty()) {
    command.add_or_miss(c.dtype == "fp8" ? words.fp8 : "", "--dtype " + c.dtype);
  }
  // 16 bits are the cache's default everywhere.
  if (!c.kv_dtype.empty() && c.kv_dtype != "bf16" && c.kv_dtype != "fp16")
    command.add_or_miss(c.kv_dtype == "fp8" ? words.fp8_cache : "", "--kv-dtype " + c.kv_dtype);
  command.add_given(words.max_model_len, "{max_model_len}",
                    c.max_model_len ? c.max_model_len : r.execution.max_model_len);
  command.add_given(words.max_num_seqs, "{max_num_seqs}", r.load.max_num_seqs);
  command.add_given(words.max_num_batched_tokens, "{max_num_batched_tokens}",
                    std::optional(r.execution.max_num_batched_tokens));
  command.add_given(words.memory_share, "{memory_share}", r.execution.gpu_memory_utilization);
  add_adapters(command, words, r);
  add_missed(command, r);
  return {std::move(command).line(c.software)};
}

}  // namespace

std::vector<LaunchLine> launch_lines(const Forecast& f) {
  if (f.mode != "training" || !f.is_decoder || f.used.lora_rank > 0) return {};
  return training_lines(step_of(f), f.used);
}

std::vector<LaunchLine> launch_lines(const GenerationForecast& f) {
  const Request& r = f.used;
  return server_lines({.model = f.model,
                       .software = f.software,
                       .tp = f.tp,
                       .pp = f.pp,
                       .dp = f.dp,
                       .ep = f.ep,
                       .all2all = r.deployment.all2all,
                       .dtype = f.dtype_source == "asked" ? r.execution.dtype : "",
                       .kv_dtype = r.execution.kv_dtype,
                       .max_model_len = std::nullopt},
                      r);
}

std::vector<LaunchLine> launch_lines(const TrainingPlan& plan) {
  // The scripts train all weights of models that generate text: none would run a plan of adapters,
  // of an encoder or of an encoder with a decoder.
  if (plan.fitting == 0 || !plan.is_decoder || plan.used.lora_rank > 0) return {};
  return training_lines({.nodes = plan.nodes,
                         .ranks = plan.ranks,
                         .batch = plan.batch,
                         .seq = plan.seq,
                         .overlap_grad_reduce = plan.used.parallel.overlap_grad_reduce,
                         .cp_comm_type = plan.used.parallel.cp_comm_type,
                         .layout = plan.candidates.front()},
                        plan.used);
}

std::vector<LaunchLine> launch_lines(const ServingPlan& plan) {
  if (plan.meeting == 0) return {};
  const ServingCandidate& c = plan.candidates.front();
  return server_lines({.model = plan.model,
                       .software = plan.software,
                       .tp = c.tp,
                       .pp = c.pp,
                       .dp = c.dp,
                       .ep = c.ep,
                       .all2all = c.all2all,
                       .dtype = c.dtype,
                       .kv_dtype = c.kv_dtype,
                       .max_model_len = c.max_model_len},
                      plan.used);
}

}  // namespace tilecast
