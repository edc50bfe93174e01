#include <fmt/format.h>

#include "request/access.h"
#include "request/pass_layout.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_step(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

bool is_adam(Optimizer optimizer) {
  return optimizer == Optimizer::kAdam || optimizer == Optimizer::kAdamW;
}

void check_chunked_loss(const Request& r) {
  if (r.cross_entropy != CrossEntropy::kChunked) return;
  if (r.loss != Loss::kFull)
    refuse_step("`cross-entropy` chunked needs `loss` full: it computes the output layer too");
  if (r.execution.tp > 1)
    refuse_step(
        "`cross-entropy` chunked with `tp`: Liger's function takes the whole vocabulary; use "
        "another `cross-entropy`");
}

void check_offload(const Request& r, Optimizer optimizer) {
  if (!r.optimizer_offload) return;
  if (!is_adam(optimizer))
    refuse_step(
        fmt::format("`optimizer-offload` with `optimizer` {}: hosts update by Adam; use "
                    "`optimizer` adam or adamw",
                    choice_name(optimizer)));
}

}  // namespace

bool needs_whole_matrices(Optimizer optimizer) {
  return optimizer == Optimizer::kMuon || optimizer == Optimizer::kAdafactor;
}

void check_step(const Request& r) {
  if (r.mode != Mode::kTraining) return;
  const Optimizer optimizer = r.optimizer.value_or(Optimizer::kAdamW);
  const std::string name = choice_name(optimizer);
  const bool one_way = optimizer == Optimizer::kAdafactor || optimizer == Optimizer::kAdam8Bit ||
                       optimizer == Optimizer::kLion;
  if (one_way && r.optimizer_impl != Request{}.optimizer_impl)
    refuse_step(
        fmt::format("`optimizer-impl` {} with `optimizer` {}: it updates one parameter after the "
                    "other; leave `optimizer-impl` out",
                    choice_name(r.optimizer_impl), name));
  if (needs_whole_matrices(optimizer) && r.parallel.zero != Zero::kNone)
    refuse_step(
        fmt::format("`zero` {} with `optimizer` {}: its step needs whole matrices, and how ranks "
                    "would divide them is not modelled; use `zero` 0, or another `optimizer`",
                    choice_name(r.parallel.zero), name));
  check_offload(r, optimizer);
  check_chunked_loss(r);
}

}  // namespace tilecast
