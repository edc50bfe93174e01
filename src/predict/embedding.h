#pragma once

#include <string_view>

#include "predict/chip.h"
#include "predict/cost_models.h"

namespace tilecast {

/// What is extrapolated where no kernel of the kind was measured and a law alone forecasts it.
inline constexpr std::string_view kLawAlone = "law";

/// Bytes that a kernel of embedding bags moves.
struct BagBytes {
  double all = 0;   ///< through L2
  double hits = 0;  ///< of these, what L2 answers
};

/// Seconds of a kernel of embedding bags, without its launch: what L2 answers at the rate of L2,
/// the rest at that of DRAM, one after the other. Source: Lin et al. 2022 and 2024, see
/// embedding/traffic.h. So the time lies between all bytes from L2 and all from DRAM.
/// Accuracy: no public measurements; forecasts are marked as extrapolated.
/// Not modelled: part of the two run at the same time; too few bags to fill the device; an L2 that
/// is split into two halves (A100, H100) holds some rows twice.
double bag_seconds(const BagBytes& bytes, const Chip& chip);

/// Kernels of type EmbeddingBag. 80 % interval: half to twice the time, and not below the L2 bound;
/// a guess until such kernels are measured.
void estimate_embedding_bags(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
