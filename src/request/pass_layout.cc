#include "request/pass_layout.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_layout(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

/// `share`: a part of the batch. `multiple`: batches that are one can be divided.
void check_share(const char* name, int64_t by, const char* of, int64_t share, int64_t multiple) {
  if (share % by == 0) return;
  refuse_layout(fmt::format(
      "`{}` {} does not divide {} {}; {} `batch` that is a multiple of {}", name, by, of, share,
      share == 1 ? "give a" : fmt::format("choose a divisor of {}, or a", share), multiple));
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

}  // namespace

void check_pass_layout(const Request& r) {
  const int64_t dp = r.execution.dp, own = r.batch / dp;
  check_share("dp", dp, "the batch of", r.batch, dp);
  const auto size = r.parallel.micro_batch_size;
  const int64_t by = size.value_or(r.execution.microbatches);
  check_share(size ? "micro-batch-size" : "microbatches", by, "a data-parallel rank's batch of",
              own, checked_multiply(dp, by));
  if (r.parallel.schedule == PipelineSchedule::kInterleaved)
    check_interleaved(r, size ? own / *size : by);
}

}  // namespace tilecast
