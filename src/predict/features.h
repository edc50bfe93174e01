#pragma once

#include "base/checked.h"
#include "predict/kernel_kinds.h"

namespace tilecast {

// Parts that features of several kinds share.

/// 1 where it holds.
float flag(bool value);

/// log2 of a number that may be 0.
float log2_of(double x);
float log2_of(int64_t x);

/// log2 of the largest power of two up to 2^limit that divides x, as a share of limit.
float alignment(int64_t x, int limit = 5);

/// Strides of large powers of two fall on the same memory channels and cache sets.
inline constexpr int kStrideBits = 12;

/// Filled share of blocks of `block` that cover `size`.
float fill_of(int64_t size, int64_t block);

}  // namespace tilecast
