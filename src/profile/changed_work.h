#pragma once

// The work of a trace's operators with another batch or dtype, as far as their sizes say it.
//
// A trace states sizes, not what they mean. The batch is the first dimension of what convolutions
// and fused attention read; without these, the leading dimension of tensors of three and more
// dimensions that takes most time; without these, the rows of products. What is as long as the
// leading dimensions of such a tensor together ([batch, sequence, ..]: batch, and batch x sequence)
// counts the same samples. Weights do not. Ruled out: to follow tensors from operator to operator,
// for traces do not say which of them are the same.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "profile/aten.h"
#include "profile/operators.h"
#include "profile/trace.h"

namespace tilecast {

/// Sizes that count samples.
struct BatchSizes {
  int64_t batch = 0;        ///< 0: no operator shows one
  std::set<int64_t> rows;   ///< of the batch, and of its leading dimensions together
  std::set<Shape> weights;  ///< of matrices and filters that operators show to be weights
};

BatchSizes batch_sizes(const ProfilerTrace& trace, const std::vector<OperatorGroup>& groups);

/// What another batch does to a call.
enum class BatchEffect : uint8_t {
  kScaled,   ///< its arguments were changed
  kNone,     ///< it works on weights alone
  kUnknown,  ///< its sizes do not say
};

/// Changes the sizes that count samples from `sizes.batch` to `batch`.
BatchEffect change_batch(std::string_view name, std::vector<TracedArgument>& arguments,
                         const BatchSizes& sizes, int64_t batch);

/// What is asked to change.
struct WorkChange {
  double batch_factor = 1;
  std::string dtype;  ///< "": as it is

  bool any() const { return batch_factor != 1 || !dtype.empty(); }
};

/// Groups with other work.
struct ChangedWork {
  std::vector<OperatorGroup> groups;
  std::vector<bool> kept;  ///< of each: it does not say how it changes, and has its old work
  int64_t traced_batch = 0, batch = 0;  ///< 0: not changed
  std::string traced_dtype;             ///< "": not changed
};

/// Throws Error{kInput} for a factor that gives no whole batch, or where no operator shows a batch
/// or a dtype; `name` is the trace in messages.
ChangedWork changed_work(const ProfilerTrace& trace, const std::vector<OperatorGroup>& groups,
                         const WorkChange& change, const std::string& name);

}  // namespace tilecast
