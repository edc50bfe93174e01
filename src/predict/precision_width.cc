#include "predict/precision_width.h"

#include <algorithm>

namespace tilecast {

double width_of(const PrecisionWidths* widths, const Combination& combination) {
  if (widths == nullptr) return 1;
  const auto found = std::find_if(widths->begin(), widths->end(), [&](const PrecisionWidth& width) {
    return width.is_of(combination);
  });
  return found == widths->end() ? 1 : found->factor;
}

}  // namespace tilecast
