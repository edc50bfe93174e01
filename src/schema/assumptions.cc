// What a forecast assumes, in words.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "request/access.h"
#include "request/load.h"
#include "software/software.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

using Words = std::vector<std::string>;

/// "torch.autocast in bf16, weights in fp32", "bf16"
std::string dtype_words(const std::string& dtype) {
  if (dtype == "amp") return "torch.autocast in bf16, weights in fp32";
  if (dtype == "amp-fp16") return "torch.autocast in fp16, weights in fp32";
  return dtype;
}

std::string with_source(const std::string& dtype, const std::string& source) {
  return fmt::format("{} ({})", dtype_words(dtype), source == "asked" ? "given" : source);
}

bool runs(const std::vector<KernelForecast>& kernels, std::string_view op) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const KernelForecast& kernel) { return kernel.op == op; });
}

/// By the kernels: models without attention assume nothing of it.
void add_attention(Words& words, const Forecast& f) {
  const bool steps = runs(f.kernels, "softmax");
  if (runs(f.kernels, "attention")) {
    words.push_back(
        fmt::format("attention flash ({})",
                    traits_of(f.used.execution.software.value_or(Software{})).fuses_modules
                        ? "fused"
                        : "PyTorch's SDPA"));
  } else if (f.used.execution.attention == AttentionKind::kFlash && steps) {
    words.emplace_back(
        "attention by PyTorch's math path, step by step: SDPA has no fused kernel for fp32 with "
        "shared key heads");
  } else if (steps) {
    words.emplace_back("attention eager");
  }
}

/// Of training: weights are in 16 bits beside copies in fewer.
bool multiplies_in_few_bits(const Forecast& f) { return f.dtype == "fp8" || f.dtype == "fp4"; }

/// Rates that a GPU gets while the host computes the step; copies write as much as they read.
std::string host_words(const Forecast& f) {
  constexpr double kGiga = 1e9;
  std::string words = " on the host";
  for (const auto& [op, share, of] :
       {std::tuple{"host_adam", 1.0, "memory"}, std::tuple{"host_copy", 0.5, "link"}}) {
    const auto at = std::find_if(f.kernels.begin(), f.kernels.end(),
                                 [&](const KernelForecast& kernel) { return kernel.op == op; });
    if (at != f.kernels.end() && at->latency_s > 0)
      words += fmt::format(", {:.3g} GB/s of its {}",
                           share * static_cast<double>(at->bytes) / at->latency_s / kGiga, of);
  }
  return f.parallel ? words + " a GPU" : words;
}

std::string states_words(const Forecast& f, const char* dtype) {
  return fmt::format(", states{} in {}", f.used.lora_rank > 0 ? " of the adapters" : "", dtype);
}

/// The optimizer with its states.
std::string optimizer_words(const Forecast& f) {
  const Optimizer optimizer = f.used.optimizer.value_or(Optimizer::kNone);
  if (optimizer == Optimizer::kNone) return "no optimizer step";
  std::string words = choice_name(optimizer);
  const bool sixteen_bits = f.dtype == "bf16" || f.dtype == "fp16" || multiplies_in_few_bits(f);
  const bool copies = sixteen_bits && f.used.lora_rank == 0 && f.used.parallel.has_fp32_copies();
  if (optimizer == Optimizer::kSgd)  // without momentum, it has no states
    return copies ? words + ", fp32 copies of the parameters" : words;
  if (f.used.optimizer_offload) return words + host_words(f);
  const std::string impl = choice_name(f.used.optimizer_impl);
  if (optimizer == Optimizer::kMuon) {
    words += fmt::format(" of layers' matrices{}, adamw ({}) of all else",
                         f.used.execution.tp > 1 ? " (blockwise)" : "", impl);
  } else if (optimizer == Optimizer::kAdam || optimizer == Optimizer::kAdamW) {
    words += fmt::format(" ({})", impl);
  }
  if (optimizer == Optimizer::kAdam8Bit || optimizer == Optimizer::kLion) {
    words += states_words(f, optimizer == Optimizer::kLion ? "fp32" : "8 bits");
    return copies ? words + ", fp32 copies of the parameters" : words;
  }
  if (f.used.lora_rank > 0) return words + ", states of the adapters only";
  if (copies) return words + ", fp32 copies of the parameters, states in fp32";
  const std::string states = multiplies_in_few_bits(f) ? "bf16" : f.dtype;
  return fmt::format("{}, states in {}", words, sixteen_bits ? states : "fp32");
}

/// "first 4 and last 2"
std::string ends_words(int64_t first, int64_t last) {
  Words parts;
  if (first > 0) parts.push_back(fmt::format("first {}", first));
  if (last > 0) parts.push_back(fmt::format("last {}", last));
  return join(parts, " and ");
}

void add_training(Words& words, const Forecast& f) {
  const Request& r = f.used;
  words.push_back(optimizer_words(f));
  // Models without logits, and graph files, have none.
  if (runs(f.kernels, "nll_loss")) words.emplace_back("loss");
  if (!r.teacher.empty())
    words.push_back(fmt::format("divergence from the logits of {} as the loss", r.teacher));
  if (runs(f.kernels, "linear_cross_entropy")) words.emplace_back("loss by chunks of logits");
  if (runs(f.kernels, "cross_entropy")) words.emplace_back("loss on one fp32 copy of the logits");
  if (f.dtype == "fp8" && r.lora_rank == 0)
    words.push_back(fmt::format("scales {}", choice_name(r.fp8_recipe.value_or(Fp8Recipe{}))));
  if (!r.transpose_cache) words.emplace_back("weights transposed in each backward pass");
  if (f.dtype == "fp4")
    words.emplace_back("products in NVFP4, which were not measured in training");
  if (const int64_t first = r.bf16_start_layers, last = r.bf16_end_layers; first + last > 0)
    words.push_back(fmt::format("the {} layers in bf16", ends_words(first, last)));
  if (r.packed_length)
    words.push_back(fmt::format("rows of sequences of {} tokens", *r.packed_length));
  if (r.loss == Loss::kMemory && !f.fixed_shapes)
    words.emplace_back("memory of the loss, not its time");
  words.push_back(r.checkpointing == Checkpointing::kNone
                      ? "no recomputation"
                      : fmt::format("recomputation {}{}", choice_name(r.checkpointing),
                                    r.recompute_modules.empty()
                                        ? ""
                                        : fmt::format(" of {}", r.recompute_modules)));
  if (r.lora_rank == 0) return;
  words.push_back(fmt::format("adapters of rank {} {}", r.lora_rank,
                              r.lora_dtype == LoraDType::kFp32 ? "in fp32 (peft without autocast)"
                                                               : "in the dtype of their layers"));
}

void add_ranks(Words& words, const Forecast& f) {
  const Parallel& p = f.used.parallel;
  if (f.parallel && p.cp > 1)
    words.push_back(fmt::format("context by {}", choice_name(p.cp_comm_type)));
  if (f.parallel && p.expert_tp && *p.expert_tp != f.used.execution.tp)
    words.push_back(
        fmt::format("each expert on {} rank{}", *p.expert_tp, *p.expert_tp == 1 ? "" : "s"));
  if (f.parallel && f.parallel->padded_vocab_size)
    words.push_back(fmt::format("vocabulary padded from {} to {}",
                                format_integer(f.parallel->vocab_size),
                                format_integer(*f.parallel->padded_vocab_size)));
}

void add_software(Words& words, const Execution& e) {
  const SoftwareDef& software = software_def(e.software.value_or(Software{}));
  const std::string version = e.software_version.empty() ? "" : " " + printable(e.software_version);
  words.push_back(fmt::format("{}{}, {:.3g} us of a {} host a launch", software.title, version,
                              1e6 * e.host_launch_s.value_or(software.costs.host_launch_s),
                              choice_word(e.host)));
}

void add_machine(Words& words, const Execution& e) {
  const bool named = e.clocks == "boost" || e.clocks == "base" || e.clocks == "sustained";
  words.push_back(e.clocks.empty() ? "boost clock" : e.clocks + (named ? " clock" : " MHz"));
  if (e.predictor == PredictorKind::kRoofline)
    words.emplace_back("roofline of the data sheet, no measurements");
}

}  // namespace

std::vector<std::string> assumptions(const Forecast& f) {
  Words words = {with_source(f.dtype, f.dtype_source)};
  add_attention(words, f);
  if (f.mode == "training") add_training(words, f);
  add_ranks(words, f);
  const Fusion fusion = f.used.execution.fusion;
  words.emplace_back(fusion == Fusion::kInductor    ? "fused as by torch.compile"
                     : fusion == Fusion::kPointwise ? "pointwise operators fused"
                                                    : "no fusion");
  if (f.used.execution.memory_format)
    words.push_back("images " + std::string(choice_word(*f.used.execution.memory_format)));
  add_software(words, f.used.execution);
  add_machine(words, f.used.execution);
  return words;
}

std::vector<std::string> assumptions(const GenerationForecast& f) {
  const Execution& e = f.used.execution;
  Words words = {with_source(f.dtype, f.dtype_source), "cache " + f.kv_dtype};
  add_software(words, e);
  words.emplace_back(e.cuda_graphs ? "CUDA graphs in decode" : "no CUDA graphs");
  const double sequence_s = e.sequence_overhead_s.value_or(0);
  words.push_back(fmt::format(
      "{} between steps{}", format_seconds(e.step_overhead_s.value_or(0)),
      sequence_s > 0 ? fmt::format(" and {} a sequence", format_seconds(sequence_s)) : ""));
  if (f.continuous)
    words.push_back(fmt::format("{} of a request outside of steps, {} of it in turn",
                                format_seconds(f.used.load.server_overhead_s.value_or(0) +
                                               f.used.load.request_turn_s.value_or(0)),
                                format_seconds(f.used.load.request_turn_s.value_or(0))));
  words.push_back(
      fmt::format("steps of {} tokens at most", format_integer(e.max_num_batched_tokens)));
  if (f.pool) words.push_back(fmt::format("{} {:.3g}", f.pool->rule, f.pool->fraction));
  if (f.serving && has_common_prompts(f.used))
    words.push_back(f.serving->prefix_cache
                        ? "prefix cache by the rules of " + software_def(*e.software).title
                    : f.used.load.prefix_caching ? "no prefix cache, for its recurrent layers"
                                                 : "no prefix cache");
  if (f.adapters)
    words.push_back(
        fmt::format("{} adapter{} in a step at most by the rules of {}, all in the "
                    "host's memory, their kernels as batched products",
                    format_integer(f.adapters->max_loras), f.adapters->max_loras == 1 ? "" : "s",
                    software_def(*e.software).title));
  if (f.active_parameters != f.parameters && e.skew_percent)
    words.push_back(*e.skew_percent == 0 ? "even load of experts"
                                         : fmt::format("load of experts by a power law of {:.2f}",
                                                       static_cast<double>(*e.skew_percent) / 100));
  add_machine(words, e);
  return words;
}

}  // namespace tilecast
