#include "base/checked.h"

#include <fmt/format.h>

#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void overflow(int64_t a, char op, int64_t b) {
  throw Error(ErrorKind::kInput,
              fmt::format("sizes are too large: {} {} {} does not fit in 64 bits; use a smaller "
                          "batch, sequence or model",
                          a, op, b));
}

}  // namespace

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) overflow(a, '*', b);
  return result;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) overflow(a, '+', b);
  return result;
}

int64_t checked_product(std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (int64_t factor : factors) result = checked_multiply(result, factor);
  return result;
}

}  // namespace tilecast
