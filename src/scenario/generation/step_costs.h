#pragma once

// Times of a server's steps. A simulation needs thousands of different steps: some sizes are
// forecast, all others are interpolated.

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "scenario/generation/step_timer.h"
#include "sim/serving.h"

namespace tilecast {

/// The sizes 1, 2, 3, 4, 6, 8, 12, … and the given ones, and their logarithms.
struct GridKnots {
  explicit GridKnots(const std::vector<int64_t>& named);
  std::vector<int64_t> sizes;
  std::vector<double> logs;
};

/// A positive function of D sizes. It is evaluated at knots when they are first needed, and
/// interpolated between them, linearly in the logarithms.
template <size_t D>
class LazyGrid {
 public:
  using Knots = std::array<int64_t, D>;
  LazyGrid(std::shared_ptr<const GridKnots> knots, std::function<double(const Knots&)> value);
  double at(const std::array<double, D>& sizes);
  /// Its logarithm: where only the largest of several values counts, one exponential is enough.
  double log_at(const std::array<double, D>& sizes);

 private:
  double log_of(const std::array<size_t, D>& indices);
  bool find_cell(const std::array<double, D>& sizes);

  std::shared_ptr<const GridKnots> knots_;
  std::function<double(const Knots&)> value_;
  std::unordered_map<uint64_t, double> known_;  ///< logarithms of the known values
  // Most calls are for sizes close to the call before.
  std::array<double, D> sizes_{};
  std::array<size_t, D> low_{};  ///< the knots below
  std::array<double, D> part_{};
  std::array<double, size_t{1} << D> corners_{};  ///< logarithms; not a number: not known
  double log_result_ = 0;
  double result_ = std::numeric_limits<double>::quiet_NaN();  ///< not a number: not computed yet
};

/// Times that do not depend on the load of a server. The costs of several servers with the same
/// layout share them: each may have knots of its own, but most are shared.
class KnownTimes {
 public:
  /// Which time of a stage.
  enum class What : uint8_t {
    kRest,
    kHead,
    kExperts,
    kDecodeExperts,
    kSend,
    kDecode,
    kFresh,
    kLater,
    kDraft,
    kDraftFresh,
    kImages,
    kAdapters
  };
  using Sizes = std::array<int64_t, 3>;
  /// The known time, else what `value` returns.
  double of(size_t part, What what, const Sizes& sizes, const std::function<double()>& value);

 private:
  std::map<std::tuple<size_t, What, Sizes>, double> known_;
};

/// The time of a step on one pipeline stage in seconds is a sum: operators on all tokens (linear
/// layers, norms and others) by the number of tokens; the output layer by the number of sequences;
/// attention in three calls of variable-length kernels, one for the decoding sequences, one for new
/// prompts and one for continued prompts. Prompts of different lengths are replaced by prompts of
/// one length, such that the numbers of tokens and of pairs of tokens stay the same. Of
/// data-parallel ranks, the one with the most work decides; their experts compute the tokens of all
/// (as many on each rank as on the busiest in a CUDA graph, which has one size).
class StepCosts {
 public:
  /// `part`: the stage, see ServedModel::stages. `named`: additional knots. `known`: of steps that
  /// differ in the load only; must outlive this object.
  StepCosts(const ServedModel& served, size_t part, const std::vector<int64_t>& named,
            KnownTimes& known);
  /// `ranks`: what each data-parallel rank computes.
  double seconds(std::span<const ServingBatch> ranks);

 private:
  /// Sizes that a kernel's time depends on: its group, the sequences, the tokens of the rank, the
  /// tokens of all data-parallel ranks (kExperts; without such ranks these are part of kRest), the
  /// tokens of the rank and the different adapters of their sequences.
  enum class Kind { kGroup, kHead, kRest, kExperts, kAdapters };
  Kind kind_of(const Node& node) const;
  double kind_s(const StepGroup& group, Kind kind, bool decode, int64_t adapters = 1);
  const StepKernels& kernels_of(const StepGroup& group, int64_t adapters);
  double images_s(int64_t images) const;
  template <size_t D, typename Value>
  LazyGrid<D> grid(KnownTimes::What what, Value value,
                   std::shared_ptr<const GridKnots> knots = nullptr);
  double prompts_s(const std::vector<PromptChunk>& prompts, bool fresh);
  struct AttentionTime {
    double decode_s = 0, prompts_s = 0;
    double seconds() const { return decode_s + prompts_s; }
  };
  AttentionTime attention(const ServingBatch& batch);
  AttentionTime longest_attention(std::span<const ServingBatch> ranks, bool decodes);
  double drafts_s(const ServingBatch& batch);

  const ServedModel& served_;
  size_t part_;
  KnownTimes& known_;
  std::shared_ptr<const GridKnots> knots_;
  /// The last steps that were asked for: kernels of several kinds come from one.
  std::deque<std::pair<std::pair<StepGroup, int64_t>, StepKernels>> recent_;
  int64_t tokens_of_decode_;  ///< that a sequence computes in a decode step: 1, or a draft's too
  LazyGrid<1> rest_, head_, experts_, decode_experts_, send_;
  LazyGrid<2> decode_;  ///< sequences; keys of each, including the new token
  LazyGrid<2> fresh_;   ///< prompts; tokens of each
  LazyGrid<3> later_;   ///< prompts; new tokens and cached tokens of each
  /// Drafts of a decode step, by sequences and keys; of new prompts, by prompts and tokens.
  LazyGrid<2> draft_, draft_fresh_;
  LazyGrid<2> adapters_;  ///< tokens; different adapters
  LazyGrid<1> images_;    ///< the vision tower, by images
  StepLaunches launches_;
  OpId experts_ops_[5];
  OpId adapters_ops_[2];
};

}  // namespace tilecast
