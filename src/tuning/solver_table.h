#pragma once

// MIOpen's solvers: data/tuning/solvers.json says what problems each takes. The limits are those
// of the problems that the public databases list it for, not MIOpen's code.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuning/conv_problem.h"
#include "tuning/features.h"

namespace tilecast::tuning {

struct IntRange {
  int64_t least = 1, most = 1;
  bool holds(int64_t value) const { return value >= least && value <= most; }
  bool operator==(const IntRange&) const = default;
};

enum class MatrixUnit : uint8_t { kNeeded, kNotUsed, kEither };

/// Memory of a solver beside its tensors: nothing; GEMM's unrolled image; copies of both images at
/// the output's size; one of the input where there is a stride; or no rule that is known, but a
/// bound in tensors of 4 bytes an element.
enum class Workspace : uint8_t { kNone, kUnrolled, kStrided, kStridedInput, kBound };

struct Solver {
  std::string name;
  std::string predictor;  ///< "miopen:" and the name: whose time a forecast is
  /// As MIOpen names it: "GEMM", "Direct", "Winograd", "ImplicitGEMM", "FFT".
  std::string algorithm;
  size_t head = 0;  ///< of the solver model: solvers that are one algorithm on two units share it
  std::string passes;  ///< letters
  std::vector<DType> dtypes;
  std::vector<bool> channels_last;  ///< the layouts it takes
  IntRange r, s, stride, dil, group, pad;
  bool square_only = false;
  MatrixUnit matrix_unit = MatrixUnit::kEither;
  /// Its kernels compute on the vector unit of any chip; else on the fastest unit.
  bool on_vector_unit = false;
  /// Classes of chips that list it. One that was measured and is not among these does not have it.
  std::vector<Architecture> measured_on;
  Workspace workspace = Workspace::kNone;
  double workspace_factor = 0;  ///< of kBound
  /// Winograd: results and taps of a transform's tile, in height and in width.
  std::array<int64_t, 4> transform = {1, 1, 1, 1};
  /// Where MIOpen has neither database nor search it takes the applicable solver with the least
  /// rank; nullopt: it needs a compiled or tuned kernel and is not taken then.
  std::optional<int64_t> fallback_rank;

  bool takes(const ConvProblem& problem, const TunedChip& chip) const;
  /// The least time in which the chip does the arithmetic of the solver's algorithm.
  double least_compute_s(const ConvProblem& problem, const TunedChip& chip) const;
};

class SolverTable {
 public:
  /// Throws Error{kInput} that names entry and field.
  static SolverTable parse(std::string_view text, const std::string& where);
  /// That of data/tuning.
  static const SolverTable& bundled();

  std::span<const Solver> solvers() const { return solvers_; }
  const Solver* find(std::string_view name) const;
  /// Throws Error{kNotFound} with similar names.
  const Solver& require(const std::string& name) const;

 private:
  std::vector<Solver> solvers_;
};

/// "miopenConvolutionFwdAlgoGEMM" and so on, as databases write it.
std::string miopen_algorithm(const Solver& solver, ConvPass pass);

}  // namespace tilecast::tuning
