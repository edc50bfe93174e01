#pragma once

// Products and layers of experts from CDNA 3 on. Matrix units multiply at the rate of the data
// sheet as far as the board's power and the way of the operands into a compute unit allow it.

#include "predict/blocks.h"
#include "predict/law.h"

namespace tilecast {

/// The best tile of a product, and its cycles.
Blocks cdna_product_blocks(const ProductSizes& sizes, const Kernel& kernel, const Chip& chip);

/// Fused layers of experts in less than 32 bits.
LawTime cdna_experts_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions);

}  // namespace tilecast
