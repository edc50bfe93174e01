#include "plan/training_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "plan/values.h"
#include "request/pass_layout.h"

namespace tilecast {
namespace {

/// A rank with fewer tokens of a sequence has products too small to be worth an exchange per layer.
constexpr int64_t kLeastContextTokens = 1024;

class Enumeration {
 public:
  Enumeration(const TrainingQuery& query, const SpaceFacts& facts,
              std::map<std::string, int64_t>& impossible)
      : query_(query),
        space_(query.space),
        facts_(facts),
        gpus_(facts.cluster.gpus()),
        impossible_(impossible) {}

  std::vector<CandidateGroup> run(const std::vector<std::string>& dtypes) {
    const int64_t seq = *query_.request.seq, node = facts_.cluster.gpus_per_node;
    for (const std::string& dtype : dtypes) {
      const bool whole_vocabulary = query_.request.cross_entropy == CrossEntropy::kChunked;
      const int64_t most_tp = facts_.divides_layers && !whole_vocabulary ? node : 1;
      for (const int64_t tp : given_or(space_.tp, divisors(gpus_, most_tp))) {
        if (tp > 1 && !facts_.divides_layers) {
          refuse(fmt::format("`tp` {}: the model has no layer that ranks divide", tp));
          continue;
        }
        const bool contexts =
            facts_.flash && facts_.divides_layers && !query_.request.packed_length;
        const int64_t most = contexts ? std::max<int64_t>(1, seq / kLeastContextTokens) : 1;
        for (const int64_t cp : given_or(space_.cp, divisors(gpus_ / std::min(tp, gpus_), most))) {
          if (gpus_ % (tp * cp) != 0) {
            refuse(fmt::format("`tp` {} × `cp` {} does not divide {} GPUs", tp, cp, gpus_));
            continue;
          }
          if (seq % cp != 0) {
            refuse(fmt::format("`cp` {} does not divide a sequence of {} tokens", cp, seq));
            continue;
          }
          for (const int64_t ep : given_or(space_.ep, divisors(facts_.experts, gpus_)))
            add_layouts({.tp = tp, .cp = cp, .ep = ep, .dtype = dtype});
          if (facts_.experts == 0 && space_.ep.empty())
            add_layouts({.tp = tp, .cp = cp, .dtype = dtype});
        }
      }
    }
    return std::move(groups_);
  }

 private:
  void add_layouts(CandidateGroup group) {
    std::vector<Checkpointing> kept = {Checkpointing::kNone};
    if (facts_.layers > 0 && facts_.scores) kept.push_back(Checkpointing::kSelective);
    if (facts_.layers > 0) kept.push_back(Checkpointing::kFull);
    for (const bool sequence : given_or(space_.sequence_parallel, {true, false})) {
      if (group.tp == 1 && sequence) continue;
      for (const Checkpointing checkpointing : given_or(space_.checkpointing, kept)) {
        for (const int64_t size : given_or(space_.micro_batch_sizes, micro_batches())) {
          group.sequence_parallel = sequence;
          group.checkpointing = checkpointing;
          group.micro_batch_size = size;
          CandidateGroup filled = group;
          add_pipelines(filled);
          if (!filled.candidates.empty()) groups_.push_back(std::move(filled));
        }
      }
    }
  }

  /// Powers of two. The search ends at the memory, not at a limit of its own.
  std::vector<int64_t> micro_batches() const {
    std::vector<int64_t> sizes;
    for (int64_t size = 1; size <= query_.request.batch; size *= 2) sizes.push_back(size);
    return sizes;
  }

  void refuse(const std::string& reason) const { impossible_[reason] += 1; }

  void add_pipelines(CandidateGroup& group) const {
    const int64_t rest = gpus_ / (group.tp * group.cp);
    for (const int64_t pp : given_or(
             space_.pp,
             divisors(rest, facts_.divides_layers ? std::max<int64_t>(1, facts_.layers) : 1))) {
      if (pp > std::max<int64_t>(1, facts_.layers)) {
        refuse(fmt::format("`pp` {} is more than the {} layers", pp, facts_.layers));
        continue;
      }
      if (rest % pp != 0) {
        // One reason for all degrees, which are many.
        refuse(gpus_ % pp == 0
                   ? fmt::format("`pp` {} does not divide the GPUs that some `tp` and `cp` leave "
                                 "of {}",
                                 pp, gpus_)
                   : fmt::format("`pp` {} does not divide {} GPUs", pp, gpus_));
        continue;
      }
      const int64_t dp = rest / pp, batch = query_.request.batch;
      if (dp * group.cp % group.ep != 0) {
        if (!space_.ep.empty())
          refuse(group.cp == 1 ? fmt::format("`ep` {} does not divide `dp` {}", group.ep, dp)
                               : fmt::format("`ep` {} does not divide `dp` {} × `cp` {}", group.ep,
                                             dp, group.cp));
        continue;
      }
      if (batch % dp != 0) {
        refuse(fmt::format("`dp` {} does not divide a batch of {}", dp, batch));
        continue;
      }
      if (batch % (dp * group.micro_batch_size) != 0) {
        if (!space_.micro_batch_sizes.empty())
          refuse(fmt::format("`micro-batch-size` {} does not divide a replica's batch of {}",
                             group.micro_batch_size, batch / dp));
        continue;
      }
      TrainingCandidate c{.dp = dp,
                          .tp = group.tp,
                          .pp = pp,
                          .cp = group.cp,
                          .ep = group.ep,
                          .micro_batch_size = group.micro_batch_size,
                          .microbatches = query_.request.batch / dp / group.micro_batch_size,
                          .checkpointing = group.checkpointing,
                          .sequence_parallel = group.sequence_parallel,
                          .dtype = group.dtype};
      add_schedules(group, c);
    }
  }

  /// Schedules that divide the backward pass are tried where they are asked for.
  bool uses(PipelineSchedule schedule) const {
    const bool unasked = space_.schedules.empty() && !splits_backward(schedule);
    return unasked || std::find(space_.schedules.begin(), space_.schedules.end(), schedule) !=
                          space_.schedules.end();
  }

  void add_schedules(CandidateGroup& group, TrainingCandidate& c) const {
    const bool one = space_.virtual_stages.empty() ||
                     std::find(space_.virtual_stages.begin(), space_.virtual_stages.end(), 1) !=
                         space_.virtual_stages.end();
    for (const PipelineSchedule s : {PipelineSchedule::k1F1B, PipelineSchedule::kGPipe}) {
      // Without stages, schedules are alike.
      if (!one || !uses(s) ||
          (c.pp == 1 && s == PipelineSchedule::kGPipe && uses(PipelineSchedule::k1F1B)))
        continue;
      c.schedule = s;
      add_zero(group, c);
    }
    for (const PipelineSchedule s : {PipelineSchedule::kZeroBubble, PipelineSchedule::kZbV}) {
      const int64_t parts = s == PipelineSchedule::kZbV ? 2 * c.pp : c.pp;
      if (!uses(s)) continue;
      if (leaves_gaps(parts)) {
        refuse(
            fmt::format("`pipeline-schedule` {}: {} layers in {} parts leave a part in the middle "
                        "without layers",
                        choice_word(s), facts_.layers, parts));
        continue;
      }
      c.schedule = s;
      add_zero(group, c);
    }
    if (c.pp == 1 || c.microbatches % c.pp != 0 || !uses(PipelineSchedule::kInterleaved)) return;
    c.schedule = PipelineSchedule::kInterleaved;
    int64_t before = 1;
    for (int64_t each = ceil_divide(facts_.layers, c.pp) - 1; each >= 1; --each) {
      const int64_t chunks = ceil_divide(facts_.layers, each * c.pp);
      if (chunks == before || leaves_gaps(chunks * c.pp)) continue;
      before = chunks;
      if (!space_.virtual_stages.empty() &&
          std::find(space_.virtual_stages.begin(), space_.virtual_stages.end(), chunks) ==
              space_.virtual_stages.end())
        continue;
      c.virtual_stages = chunks;
      c.layers_per_virtual_stage = each;
      add_zero(group, c);
    }
    c.virtual_stages = 1;
    c.layers_per_virtual_stage.reset();
  }

  /// Whether a part in the middle gets no layer: only the first and the last may be without. With
  /// adapters the first may not: it would have nothing to train.
  bool leaves_gaps(int64_t parts) const {
    return parts > facts_.layers + (query_.request.lora_rank > 0 ? 1 : 2);
  }

  void add_zero(CandidateGroup& group, TrainingCandidate& c) const {
    for (const Zero zero : given_or(
             space_.zero, {Zero::kNone, Zero::kOptimizer, Zero::kGradients, Zero::kParameters})) {
      if (zero != Zero::kNone && c.dp * c.cp == 1) continue;  // nothing to divide
      if (zero != Zero::kNone && space_.zero.empty() &&
          needs_whole_matrices(query_.request.optimizer.value_or(Optimizer::kAdamW)))
        continue;
      c.zero = zero;
      group.candidates.push_back(c);
    }
  }

  const TrainingQuery& query_;
  const TrainingSpace& space_;
  const SpaceFacts& facts_;
  const int64_t gpus_;
  std::map<std::string, int64_t>& impossible_;
  std::vector<CandidateGroup> groups_;
};

}  // namespace

std::vector<CandidateGroup> candidate_groups(const TrainingQuery& query, const SpaceFacts& facts,
                                             const std::vector<std::string>& dtypes,
                                             std::map<std::string, int64_t>& impossible) {
  return Enumeration(query, facts, impossible).run(dtypes);
}

}  // namespace tilecast
