#include "ops/promotion.h"

namespace tilecast {

DType promoted_dtype(const OpContext& context, size_t first) {
  const auto rank = [](DType dtype) {
    switch (dtype) {
      case DType::kFp32:
      case DType::kTf32:
        return 2;
      case DType::kFp16:
      case DType::kBf16:
        return 1;
      default:
        return 0;
    }
  };
  DType widest = context.input(first).dtype;
  for (size_t i = first + 1; i < context.input_count(); ++i) {
    const DType dtype = context.input(i).dtype;
    const bool mixed = rank(dtype) == 1 && rank(widest) == 1 && dtype != widest;
    if (mixed) {
      widest = DType::kFp32;
    } else if (rank(dtype) > rank(widest)) {
      widest = dtype;
    }
  }
  return widest;
}

}  // namespace tilecast
