#pragma once

#include <cstdint>
#include <initializer_list>

namespace tilecast {

/// a · b; throws Error{kInput} where the product leaves 64 bits, instead of wrapping.
int64_t checked_multiply(int64_t a, int64_t b);

/// a + b; throws Error{kInput} where the sum leaves 64 bits.
int64_t checked_add(int64_t a, int64_t b);

/// Product of all factors, checked.
int64_t checked_product(std::initializer_list<int64_t> factors);

/// ceil(a / b) for a ≥ 0, b > 0.
constexpr int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace tilecast
