// Checks requests: each value must be one that its option accepts as text, and each option must
// apply to the kind of request.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/text.h"
#include "graph/scheme.h"
#include "request/load.h"
#include "request/pass_layout.h"
#include "software/software.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kInput, message); }

/// "name=value": whether the request has that value.
void check_needs(const Request& request, const OptionDef& option) {
  const size_t equals = option.needs.find('=');
  const std::string name = option.needs.substr(0, equals), value = option.needs.substr(equals + 1);
  const OptionDef* needed = find_option(name, request.kind);
  if (needed == nullptr || needed->access.get(request, *needed) != value)
    refuse(fmt::format("`{}` needs `{}` {}", option.name, name, value));
}

void check_values(const Request& request) {
  Request scratch;
  for (const OptionDef& option : request_options()) {
    const std::string text = option.access.get(request, option);
    if (text.empty()) continue;  // not given
    if (!option.applies_to(request.kind)) {
      if (text != option.default_value && find_option(option.name, request.kind) == nullptr)
        refuse(why_not(option, request.kind));
      continue;
    }
    if (option.access.type != OptionType::kFile) set_option(scratch, option, text);
    if (!option.needs.empty() && text != option.default_value && text != option.off_value)
      check_needs(request, option);
  }
}

/// Only the cache rules that profile a step count what it captures.
void check_counted_graphs(const Request& r) {
  if (!r.execution.count_cuda_graphs) return;
  const SoftwareDef& software = software_def(r.execution.software.value_or(default_server()));
  if (software.cache_rule != "vllm")
    refuse(
        fmt::format("`count-cuda-graphs`: {} has no such setting; it is vLLM's", software.title));
}

/// Options of a server that only some software has.
struct SchedulerOption {
  const char* name;
  const char* scheduler;
  bool (*given)(const Scheduling&);
};
constexpr SchedulerOption kSchedulerOptions[] = {
    {"scheduler-recv-interval", "sglang", [](const Scheduling& s) { return s.recv_interval != 1; }},
    {"num-continuous-decode-steps", "sglang",
     [](const Scheduling& s) { return s.continuous_decode_steps != 1; }},
    {"batch-wait-timeout-iters", "trtllm",
     [](const Scheduling& s) { return s.batch_wait_timeout_iters > 0; }},
    {"batch-wait-max-tokens-ratio", "trtllm",
     [](const Scheduling& s) { return s.batch_wait_max_tokens_ratio > 0; }},
    {"attention-dp-timeout-iters", "trtllm",
     [](const Scheduling& s) { return s.attention_dp_timeout_iters > 0; }},
    {"attention-dp-batching-wait-iters", "trtllm",
     [](const Scheduling& s) { return s.attention_dp_batching_wait_iters > 0; }},
};

void check_scheduling(const Request& r) {
  const SoftwareDef& software = software_def(r.execution.software.value_or(default_server()));
  for (const SchedulerOption& option : kSchedulerOptions) {
    if (!option.given(r.scheduling) || software.scheduler == option.scheduler) continue;
    refuse(fmt::format("`{}`: {} has no such setting; it is {}'s", option.name, software.title,
                       software_def(parse_software(option.scheduler, "")).title));
  }
  const Scheduling& s = r.scheduling;
  if ((s.batch_wait_timeout_iters > 0) != (s.batch_wait_max_tokens_ratio > 0))
    refuse("`batch-wait-timeout-iters` and `batch-wait-max-tokens-ratio` belong together");
  if (s.attention_dp_batching_wait_iters > 0 && s.attention_dp_timeout_iters == 0)
    refuse("`attention-dp-batching-wait-iters` needs `attention-dp-timeout-iters`");
}

/// Which steps are graphs, where that can make a difference.
void check_graphs(const Request& r) {
  const Execution& e = r.execution;
  if (r.kind == RequestKind::kPass || (!e.cudagraph_mode && !e.max_cudagraph_capture_size)) return;
  if (!e.cuda_graphs)
    refuse(
        "`cudagraph-mode` and `max-cudagraph-capture-size` have no effect with `cuda-graphs` off");
  const SoftwareDef& software = software_def(e.software.value_or(default_server()));
  const bool pieces = e.cudagraph_mode ? *e.cudagraph_mode == CudaGraphMode::kFullAndPiecewise
                                       : software.server.captures_pieces;
  if (e.max_cudagraph_capture_size && !pieces)
    refuse(
        fmt::format("`max-cudagraph-capture-size` has no effect with `cudagraph-mode` "
                    "full_decode_only{}",
                    e.cudagraph_mode ? "" : ", the default of " + software.title));
  if (pieces && e.max_cudagraph_capture_size.value_or(software.server.captured_tokens) == 0)
    refuse(
        fmt::format("`cudagraph-mode` full_and_piecewise has no effect without "
                    "`max-cudagraph-capture-size`: {} has no graphs of steps with prompts",
                    software.title));
}

void check_software(const Request& r) {
  const bool training = r.kind == RequestKind::kPass && r.mode == Mode::kTraining;
  if (!training && r.execution.software) {
    const SoftwareDef& def = software_def(*r.execution.software);
    if (!def.support.infers)
      refuse(fmt::format("`software` {}: only training with {} is forecast; use `mode` training",
                         def.name, def.title));
  }
  if (r.kind != RequestKind::kPass || r.mode != Mode::kTraining || !r.execution.software) return;
  const SoftwareDef& software = software_def(*r.execution.software);
  if (!software.support.trains)
    refuse(fmt::format("`mode` training: {} does not train; use `software` {}", software.title,
                       software_name(Software{})));
}

/// Adapters of the requests of a server.
void check_served_adapters(const Request& r) {
  const ServedAdapters& a = r.adapters;
  if (r.lora_rank == 0) {
    if (a.count > 1 || a.skew > 0 || a.max_loras || a.max_lora_rank)
      refuse(
          "`lora-adapters`, `lora-skew`, `max-loras` and `max-lora-rank` have no effect without "
          "`lora-rank`");
    if (names_adapters(r.load))
      refuse("`trace` names adapters: state the rank of each with `lora-rank`");
    return;
  }
  const SoftwareDef& software = software_def(r.execution.software.value_or(default_server()));
  if (!software.serves())
    refuse(
        fmt::format("`lora-rank`: {} serves no adapters of requests; use another `software` ({})",
                    software.title, join(server_software_names(), ", ")));
  if (a.max_lora_rank && *a.max_lora_rank < r.lora_rank)
    refuse(fmt::format("`max-lora-rank` {} is less than `lora-rank` {}", *a.max_lora_rank,
                       r.lora_rank));
  if (names_adapters(r.load) && (a.count > 1 || a.skew > 0))
    refuse("`lora-adapters` and `lora-skew` have no effect: the `trace` names the adapters");
  if (a.skew > 0 && a.count == 1) refuse("`lora-skew` has no effect without `lora-adapters`");
}

void check_recomputation(const Request& r) {
  if (r.recompute_modules.empty()) return;
  static const std::vector<std::string> kKnown = {"core_attn",   "layernorm", "moe_act",
                                                  "mla_up_proj", "mlp",       "moe"};
  for (const std::string& name : split(r.recompute_modules, ',')) {
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end())
      refuse(fmt::format("`recompute-modules`: unknown module '{}'{}; known: {}", shown_name(name),
                         did_you_mean(name, kKnown), join(kKnown, ", ")));
  }
}

void check_low_precision(const Request& r) {
  if (r.fp8_recipe && r.execution.dtype != "fp8")
    refuse("`fp8-recipe` has no effect without `dtype` fp8");
  const std::string& dtype = r.execution.dtype;
  if (!r.transpose_cache && dtype != "fp8")
    refuse("`parameter-transpose-cache` off has no effect without `dtype` fp8");
  const bool narrow = dtype == "fp8" || find_scheme(dtype) == QuantScheme::kFp4;
  if (r.bf16_start_layers + r.bf16_end_layers > 0 && !narrow)
    refuse(fmt::format(
        "`{}` has no effect without `dtype` fp8 or fp4",
        r.bf16_start_layers > 0 ? "num-layers-at-start-in-bf16" : "num-layers-at-end-in-bf16"));
}

/// Attention to gathered keys is not divided into sequences.
void check_packing(const Request& r) {
  if (r.packed_length && r.parallel.cp > 1)
    throw Error(ErrorKind::kUnsupported,
                "`packed-sequence-length` with `cp`: how context-parallel ranks divide packed "
                "sequences is not modelled; leave one of them out");
  if (r.packed_length && r.seq && *r.packed_length > *r.seq)
    refuse(fmt::format("`packed-sequence-length` {} is longer than the row of `seq` {}",
                       *r.packed_length, *r.seq));
}

void check_adapters(const Request& r) {
  if (r.kind != RequestKind::kPass) check_served_adapters(r);
  if (r.lora_rank > 0) return;
  if (r.lora_targets != Request{}.lora_targets)
    refuse("`lora-targets` has no effect without `lora-rank`");
  if (r.lora_dtype != Request{}.lora_dtype)
    refuse("`lora-dtype` has no effect without `lora-rank`");
}

void check_static(const Request& r) {
  const auto check = [](const char* name, int64_t low, int64_t high) {
    if (high > low)
      refuse(
          fmt::format("`{}` {}:{}: all sequences of a static batch have the same length; give one "
                      "number, or use `schedule` continuous",
                      name, low, high));
  };
  check("prompt", r.prompt, r.load.max_prompt);
  check("output", r.output, r.load.max_output);
}

/// Dependencies between the options about several GPUs.
void check_deployment(const Request& r) {
  const Execution& e = r.execution;
  const auto divides = [](const char* prefix, int64_t ep, int64_t tp, int64_t dp) {
    if (tp * dp % ep != 0)
      refuse(
          fmt::format("`{0}ep` {1} does not divide `{0}tp` {2} x `{0}dp` {3} = {4} ranks, which "
                      "share the experts",
                      prefix, ep, tp, dp, tp * dp));
  };
  divides("", r.parallel.ep, e.tp, e.dp);
  const Deployment& d = r.deployment;
  if (d.all2all == All2All::kDeepEp && (e.tp != 1 || r.parallel.ep != e.dp))
    refuse(fmt::format(
        "`all2all-backend` deepep needs `tp` 1 and `ep` = `dp`, found `tp` {}, `dp` {} "
        "and `ep` {}: its kernels send the tokens of a rank to ranks with whole experts",
        e.tp, e.dp, r.parallel.ep));
  const PrefillPool &p = d.prefill, none;
  if (p.workers > 0) {
    divides("prefill-", p.ep, p.tp, p.dp);
  } else if (p.tp != 1 || p.pp != 1 || p.dp != 1 || p.ep != 1 || p.transfer != none.transfer) {
    refuse(
        "`prefill-tp`, `prefill-pp`, `prefill-dp`, `prefill-ep` and `kv-transfer` need "
        "`prefill-workers`: the number of servers that compute prompts only");
  }
  if (d.encode.workers > 0 && r.images == 0)
    refuse(
        "`encode-workers` has no effect without `images`: these servers run the vision tower for "
        "the images of prompts");
  if (d.encode.workers == 0 && d.encode.tp != 1)
    refuse("`encode-tp` needs `encode-workers`: the number of servers that run the vision tower");
  const Speculation& s = d.speculation;
  if (s.tokens == 0 && (s.acceptance_rate || !s.draft_model.empty() || s.method))
    refuse(
        "`acceptance-rate`, `draft-model` and `speculative-method` have no effect without "
        "`speculative-tokens`");
  if (s.method == DraftMethod::kDraftModel && s.draft_model.empty())
    refuse("`speculative-method` draft_model needs `draft-model`");
  if ((s.method == DraftMethod::kMtp || s.method == DraftMethod::kNgram) && !s.draft_model.empty())
    refuse(fmt::format("`speculative-method` {} takes no `draft-model`", choice_word(*s.method)));
}

void check_trace(const Load& load) {
  for (const TraceRequest& t : load.trace) {
    if (!(t.arrival_s >= 0) || !std::isfinite(t.arrival_s) || t.prompt < 1 || t.output < 1)
      refuse("`trace`: expected arrivals of 0 s or more and lengths of 1 token or more");
    const int64_t blocks = (t.prompt - 1) / load.hash_block_size + 1;
    if (static_cast<int64_t>(t.hash_ids.size()) > blocks)
      refuse(
          fmt::format("`trace`: the prompt of {} tokens that arrives at {} s has {} hash_ids, but "
                      "{} blocks of {} tokens at most; state with `hash-block-size` how many "
                      "tokens a block has",
                      t.prompt, t.arrival_s, t.hash_ids.size(), blocks, load.hash_block_size));
  }
}

/// What requests have in common.
void check_common_prompts(const Request& r) {
  const Load& load = r.load;
  if (load.session_turn_delay_s > 0 && load.session_turns == 1)
    refuse("`session-turn-delay-s` has no effect without `session-turns`");
  if (load.warmup_request_count &&
      (load.session_turns == 1 || load.rate == 0 || !load.trace.empty()))
    refuse(
        "`warmup-request-count` has no effect without `session-turns` and `rate`: other loads have "
        "no warm-up");
  if (load.num_prefixes > 1 && load.prefix_len == 0)
    refuse("`num-prefixes` has no effect without `prefix-len`");
  const bool hashes = std::any_of(load.trace.begin(), load.trace.end(),
                                  [](const TraceRequest& t) { return !t.hash_ids.empty(); });
  if (load.hash_block_size != Load{}.hash_block_size && !hashes)
    refuse("`hash-block-size` has no effect without a `trace` with hash_ids");
  const bool common = has_common_prompts(r);
  if (load.prefix_hit_rate > 0 && common)
    refuse(
        "`prefix-hit-rate` cannot be combined with sessions, `prefix-len` and hash_ids: what is in "
        "the prefix cache is simulated");
  if (!load.prefix_caching && load.prefix_hit_rate > 0)
    refuse("`prefix-hit-rate` needs `enable-prefix-caching` on");
  if (load.kv_offloading_bytes > 0 && (!common || !load.prefix_caching))
    refuse(
        "`kv-offloading-size` has no effect without common prompts in a prefix cache: give "
        "`session-turns`, `prefix-len` or a `trace` with sessions or hash_ids");
  const bool sessions = load.session_turns > 1 ||
                        std::any_of(load.trace.begin(), load.trace.end(),
                                    [](const TraceRequest& t) { return t.session.has_value(); });
  if (r.deployment.router == Router::kSession && !sessions)
    refuse("`router` session needs `session-turns`, or a `trace` with sessions");
}

void check_server(const Request& r) {
  const Load& load = r.load;
  check_trace(load);
  check_common_prompts(r);
  const int loads =
      (load.rate > 0 ? 1 : 0) + (load.concurrency > 0 ? 1 : 0) + (load.trace.empty() ? 0 : 1);
  if (loads != 1)
    refuse(fmt::format("`schedule` continuous needs one of `rate`, `concurrency` and `trace`{}",
                       loads == 0 ? "" : ", found more than one"));
  if (r.batch != 1) {
    const char* given = load.rate > 0 ? "rate" : load.concurrency > 0 ? "concurrency" : "trace";
    refuse(
        fmt::format("`batch` {} cannot be combined with `{}`: batches result from the load; leave "
                    "out `batch`, or `{}` for a static batch",
                    r.batch, given, given));
  }
  if (r.execution.software) {
    if (const SoftwareDef& software = software_def(*r.execution.software); !software.serves())
      refuse(
          fmt::format("`schedule` continuous: {} has no request scheduler; use another "
                      "`software` ({}), or `schedule` static",
                      software.title, join(server_software_names(), ", ")));
  }
  if (const auto all = static_cast<int64_t>(load.trace.size()); all > 0 && load.requests > all)
    refuse(fmt::format("`requests` {}: the trace has {}", load.requests, all));
  if (request_count(r) > kMaxServedRequests)
    refuse(
        fmt::format("{} requests are too many to simulate; ask for the first ones with `requests`, "
                    "{} at most",
                    request_count(r), kMaxServedRequests));
}

}  // namespace

const OptionDef* find_option(const std::string& name, RequestKind kind) {
  for (const OptionDef& option : request_options()) {
    if (option.applies_to(kind) && option.name == name) return &option;
  }
  return nullptr;
}

void set_option(Request& request, const OptionDef& option, const std::string& text) {
  const std::vector<std::string>& choices = option.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end())
    refuse(fmt::format("`{}`: unknown value '{}'{}; known: {}", option.name, shown_name(text),
                       did_you_mean(text, choices), join(choices, ", ")));
  option.access.set(request, option, text);
}

std::string why_not(const OptionDef& option, RequestKind kind) {
  if (kind == RequestKind::kPass)
    return fmt::format("`{}` needs `prompt` (or `trace`): it applies to text generation only",
                       option.name);
  if (!option.applies_to(RequestKind::kServe))
    return fmt::format("`{}` cannot be combined with `prompt`", option.name);
  // Each of these makes a server of it, unless another schedule is asked for.
  constexpr std::string_view kLoads[] = {"rate", "concurrency", "trace"};
  if (std::find(std::begin(kLoads), std::end(kLoads), option.name) != std::end(kLoads))
    return fmt::format("`{}` needs `schedule` continuous", option.name);
  return fmt::format("`{}` needs a server under load: add `rate`, `concurrency` or `trace`",
                     option.name);
}

void check_request(const Request& request) {
  check_values(request);
  check_software(request);
  check_recomputation(request);
  check_low_precision(request);
  check_packing(request);
  check_counted_graphs(request);
  check_scheduling(request);
  check_graphs(request);
  check_adapters(request);
  if (request.image_size && request.images == 0)
    refuse(
        "`image-size` has no effect without `images`: it is the size of a prompt's images; models "
        "that only see or make images have theirs in the config ('image_size', 'sample_size')");
  if (request.kind != RequestKind::kPass) check_deployment(request);
  if (request.kind == RequestKind::kPass && request.execution.skew_percent.value_or(0) > 0 &&
      request.parallel.ep == 1)
    refuse("`skew` needs `ep` of 2 or more: on one rank, all tokens meet all experts in any case");
  if (request.kind == RequestKind::kPass) {
    check_step(request);
    check_pass_layout(request);
  }
  if (request.kind == RequestKind::kGenerate) check_static(request);
  if (request.kind == RequestKind::kServe) check_server(request);
}

}  // namespace tilecast
