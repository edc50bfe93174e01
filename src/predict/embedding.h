#pragma once

#include <string_view>

#include "predict/chip.h"
#include "predict/cost_models.h"

namespace tilecast {

/// extrapolated_feature where no kernel of the kind was measured and a law alone forecasts it.
inline constexpr std::string_view kLawAlone = "law";

/// Bytes that a kernel of embedding bags moves.
struct BagBytes {
  double all = 0;       ///< through L2
  double gathered = 0;  ///< of these, rows at random places that may be in L2
  double hits = 0;      ///< of these, what L2 answers
};

/// Seconds of a kernel of embedding bags, without its launch: what L2 answers at the rate of L2,
/// the rest at that of DRAM, one after the other. Source: Lin et al. 2022 and 2024, see
/// embedding/traffic.h. So the time lies between all bytes from L2 and all from DRAM.
/// Accuracy: there are no measurements of FBGEMM's kernels; forecasts are marked as extrapolated.
/// The two rates were measured with the kit's simple kernel on an H100
/// (docs/explanation/recommendation.md).
/// Not modelled: an L2 that is split into two halves (A100, H100) holds some rows twice.
double bag_seconds(const BagBytes& bytes, const Chip& chip);

/// Seconds that one bag takes in any case: its rows are read a few at a time.
double bag_chain_s(double pooling, const Chip& chip);

/// Kernels of type EmbeddingBag. 80 % interval: half to twice the time, and not below the L2 bound;
/// a guess until such kernels are measured.
void estimate_embedding_bags(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
