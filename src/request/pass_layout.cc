#include "request/pass_layout.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_layout(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

/// Throws unless `by`, the value of an option, divides `number`. `multiple`: batches that are a
/// multiple of it can be divided; nullopt: the batch does not matter.
void require_divides(const char* option, int64_t by, const char* of, int64_t number,
                     std::optional<int64_t> multiple = std::nullopt) {
  if (number % by == 0) return;
  std::string advice;
  if (!multiple || number > 1) advice = fmt::format("choose a divisor of {}", number);
  if (multiple)
    advice += fmt::format("{} `batch` that is a multiple of {}",
                          advice.empty() ? "give a" : ", or a", *multiple);
  refuse_layout(fmt::format("`{}` {} does not divide {} {}; {}", option, by, of, number, advice));
}

void check_interleaved(const Request& r, int64_t microbatches) {
  const int64_t pp = r.execution.pp;
  if (!r.parallel.layers_per_virtual_stage)
    refuse_layout("`pipeline-schedule` interleaved needs `num-layers-per-virtual-pipeline-stage`");
  if (pp == 1) refuse_layout("`pipeline-schedule` interleaved needs `pp` of 2 or more");
  if (microbatches % pp != 0)
    refuse_layout(fmt::format(
        "`pp` {} does not divide the number of micro-batches, {}, as `pipeline-schedule` "
        "interleaved needs; choose a number of micro-batches that is a multiple of {}",
        pp, microbatches, pp));
}

/// Schedules in which gradients of weights are passes of their own.
void check_divided_backward(const Request& r) {
  const std::string_view name = choice_word(r.parallel.schedule);
  if (r.execution.pp == 1)
    refuse_layout(fmt::format("`pipeline-schedule` {} needs `pp` of 2 or more", name));
  if (r.parallel.zero == Zero::kParameters)
    refuse_layout(
        fmt::format("`pipeline-schedule` {} with `zero` 3: how gathered parameters and gradients "
                    "of weights that wait go together is not modelled; use `zero` 2 or less",
                    name));
  if (r.execution.fusion == Fusion::kInductor)
    refuse_layout(
        fmt::format("`pipeline-schedule` {} with `fusion` inductor: PyTorch does not divide the "
                    "backward pass of compiled stages; leave one of them out",
                    name));
}

void check_experts(const Request& r) {
  const Parallel& p = r.parallel;
  const int64_t tp = r.execution.tp, dp = r.execution.dp;
  const int64_t divide = p.expert_tp.value_or(tp);
  if (divide != tp && tp > 1 && !p.sequence_parallel)
    refuse_layout(
        fmt::format("`expert-tensor-parallel-size` {} needs `sequence-parallel` on: "
                    "tensor-parallel ranks send tokens of their own",
                    divide));
  const int64_t ranks = checked_multiply(checked_multiply(dp, tp), p.cp);
  const char* const all = p.cp == 1 ? "the data- and tensor-parallel ranks,"
                                    : "the data-, context- and tensor-parallel ranks,";
  if (divide != tp) require_divides("expert-tensor-parallel-size", divide, all, ranks);
  const char* const those = divide == 1    ? all
                            : divide != tp ? "these ranks over `expert-tensor-parallel-size`,"
                            : p.cp == 1    ? "the data-parallel ranks,"
                                           : "the data- and context-parallel ranks,";
  require_divides("ep", p.ep, those, ranks / divide);
}

}  // namespace

void check_pass_layout(const Request& r) {
  const int64_t dp = r.execution.dp, own = r.batch / dp;
  require_divides("dp", dp, "the batch of", r.batch, dp);
  const auto size = r.parallel.micro_batch_size;
  const int64_t by = size.value_or(r.execution.microbatches);
  require_divides(size ? "micro-batch-size" : "microbatches", by, "a data-parallel rank's batch of",
                  own, checked_multiply(dp, by));
  check_experts(r);
  if (r.seq) require_divides("cp", r.parallel.cp, "the sequence of", *r.seq);
  if (r.parallel.cp == 1 && r.parallel.cp_comm_type != CpCommType::kAllGather)
    refuse_layout(fmt::format("`cp-comm-type` {} has no effect with `cp` 1; leave it out",
                              choice_word(r.parallel.cp_comm_type)));
  if (r.parallel.schedule == PipelineSchedule::kInterleaved)
    check_interleaved(r, size ? own / *size : by);
  if (splits_backward(r.parallel.schedule)) check_divided_backward(r);
}

}  // namespace tilecast
