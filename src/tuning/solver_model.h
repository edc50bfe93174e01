#pragma once

// Which of MIOpen's solvers is fastest for a convolution, and how long each takes: a network of two
// layers that forecasts all solvers of a problem at once, as multiples of the chip's roofline.
// Trained by tools/train_tuner.py on MIOpen's public find databases.

#include <memory>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "tuning/solver_table.h"
#include "tuning/tensors.h"

namespace tilecast::tuning {

/// The time of one solver. Not modelled: what ran before, clocks below boost.
struct SolverTime {
  const Solver* solver = nullptr;
  double seconds = 0;
  double low_s = 0,
         high_s = 0;  ///< 80 % interval, from held-out layers (measured chips: of theirs)
  /// By which solvers are ranked: later than `seconds` where a search would hardly list it. That of
  /// the first solver changes without jumps when a data sheet does; its `seconds` may jump.
  double ranked_s = 0;
  /// That a search lists it among the fastest: near 0 for problems that the solver does not take.
  double listed_probability = 0;
};

class SolverModel {
 public:
  /// Throws Error{kInput} for foreign, truncated or damaged content, which must outlive the model.
  static SolverModel parse(std::string_view content, const std::string& where, Checksum checksum,
                           const SolverTable& table);
  /// The embedded weights.
  static const SolverModel& bundled();

  /// All solvers that take the problem on the chip, the best first: by time, later where a search
  /// would hardly list it. Empty if no solver takes it. A chip gets the choice of the measured one
  /// of its class, and its times as multiples of the roofline: so devices of a class are ranked as
  /// their data sheets are, and no small change makes a time jump. A chip of another class gets
  /// the multiples of the newest class with the same kind of unit, forecast without the class,
  /// among the solvers of any.
  std::vector<SolverTime> rank(const ConvProblem& problem, const TunedChip& chip) const;

  /// The fold whose layers training did not see (tuning/layer_fold.h).
  struct Split {
    uint64_t seed = 0;
    int folds = 1, held_out = 0;
  };
  const Split& split() const { return split_; }

 private:
  struct Weights {
    Tensor range, a, a_bias, b, b_bias, o, o_bias;
  };
  SolverModel() = default;
  /// Times (log of microseconds over the roofline) and logits of all heads.
  void evaluate(const Features& features, std::span<float> out) const;

  const SolverTable* table_ = nullptr;
  std::shared_ptr<const Tensors> tensors_;
  Weights weights_;
  size_t width_ = 0, heads_ = 0;
  Split split_;
  /// log(measured / forecast), 10th and 90th percentile: of the measured classes, then of others.
  std::array<std::array<double, 2>, kKernelClasses + 1> interval_{};
  /// The measured chip of each class; the peaks are by dtype.
  struct Reference {
    TunedChip chip;
    std::array<double, kDTypeCount> peak_tflops{};
  };
  std::array<Reference, kKernelClasses> references_{};
  Features features_on_reference(const ConvProblem& problem, const TunedChip& chip) const;
};

/// Below it a solver most likely does not take the problem: the table of solvers knows ranges, not
/// MIOpen's code.
inline constexpr double kHardlyListed = 1e-4;

/// The solver that MIOpen runs where it has neither database nor search: see Solver::fallback_rank.
/// nullptr if none of `times` qualifies.
const SolverTime* fallback_of(const std::vector<SolverTime>& times, const ConvProblem& problem);

}  // namespace tilecast::tuning
