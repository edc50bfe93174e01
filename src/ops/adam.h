#pragma once

#include <cstdint>

namespace tilecast {

/// FLOPs of Adam's step, of an element: two moving averages (3 and 4), bias corrections and root
/// (5), update (4).
inline constexpr int64_t kAdamFlops = 16;

}  // namespace tilecast
