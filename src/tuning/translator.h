#pragma once

// From a problem to the tuning parameters of a solver, token by token (Mahmood et al. 2022, who
// treat it as translation): a transformer whose encoder reads the sizes of the problem, a token
// each, and whose decoder writes the parameters. Trained by tools/train_tuner.py: one on MIOpen's
// public performance databases (convolutions), one on rocBLAS's tuned sizes (products).

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "tuning/features.h"
#include "tuning/tensors.h"

namespace tilecast::tuning {

struct TranslatorLayers;

/// Numbers of a problem that the encoder reads, beside solver and chip.
struct SourceText {
  std::vector<int64_t> sizes;   ///< each at least 0, a token each
  std::vector<float> features;  ///< of the whole problem on its chip
};
/// The sizes as the kernel reads and writes, and the features of the solver model.
SourceText source_text(const ConvProblem& problem, const TunedChip& chip);

class Translator {
 public:
  /// Throws Error{kInput} for foreign, truncated or damaged content, which must outlive the model.
  static Translator parse(std::string_view content, const std::string& where, Checksum checksum);
  /// The embedded weights for convolutions.
  static const Translator& bundled();
  /// The weights for matrix products: the only solver is "Tensile".
  static const Translator& tensile();

  /// The place of a solver that the model writes parameters of.
  std::optional<size_t> solver(std::string_view name) const;
  /// Words that the decoder can write.
  std::span<const int64_t> values() const { return values_; }

  /// A problem, read for one solver and chip; the decoder asks for it.
  struct Source {
    size_t solver = 0, tokens = 0;
    /// Keys and values of the encoder's tokens, for each layer of the decoder.
    std::vector<std::vector<float>> keys, values;
  };
  /// `text`: as many sizes and features as the model was trained on.
  Source read(const SourceText& text, const TunedChip& chip, size_t solver) const;

  /// State of the decoder: keys and values of each layer, for all that it has written so far.
  struct Prefix {
    size_t length = 0;
    std::vector<std::vector<float>> keys, values;
  };
  Prefix start() const;
  /// Appends a token (its place in `values`, or values().size() for the start) and returns the log
  /// probabilities of the next.
  std::vector<float> next(const Source& source, Prefix& prefix, size_t token) const;

  /// The most tokens of a solver.
  size_t most_tokens() const { return most_tokens_; }

  struct MeasuredChip {
    std::string name;  ///< an alias of its device file: "gfx90a_110"
    double units = 0, clock_ghz = 0, gbytes_per_s = 0;
    bool matrix_unit = false;
  };
  /// The measured chip whose parameters another chip gets: the nearest with the same matrix unit,
  /// or else the nearest.
  size_t chip_of(const TunedChip& chip) const;
  std::span<const MeasuredChip> chips() const { return chips_; }

 private:
  Translator() = default;

  std::vector<std::string> solvers_;
  std::vector<MeasuredChip> chips_;
  std::vector<int64_t> values_;
  size_t fields_ = 0, features_ = 0, width_ = 0, heads_ = 0, inner_ = 0, most_tokens_ = 0;
  size_t encoders_ = 0, decoders_ = 0;
  std::shared_ptr<const Tensors> tensors_;
  std::shared_ptr<const TranslatorLayers> layers_;
};

}  // namespace tilecast::tuning
