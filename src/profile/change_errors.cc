// How far a measured time that is carried to another batch or dtype may be off.
//
// Carried is measured x forecast there / forecast here: what remains is the error of the forecast
// there less that here. At nearly the same size the two are alike and cancel; at a size that is far
// away they are independent, and both count.

#include <algorithm>
#include <cmath>

#include "profile/operators.h"

namespace tilecast {

double error_share_of_change(double batch_factor, bool other_dtype,
                             const TraceConstants& constants) {
  if (other_dtype) return 1;
  const double doublings = std::abs(std::log2(batch_factor));
  return std::sqrt(-std::expm1(-doublings / constants.change_doublings));
}

void widen_by_change(const Interval& here, const Interval& there, double error_share, bool same_gpu,
                     Interval& carried) {
  if (error_share <= 0 || !(here.low > 0) || !(there.low > 0) || !(carried.value > 0)) return;
  const double up_there = std::log(there.high / there.value);
  const double down_there = std::log(there.value / there.low);
  const double up_here = std::log(here.high / here.value);
  const double down_here = std::log(here.value / here.low);
  // On another GPU, the error there is not that of the GPU here at any size.
  const double part_there = same_gpu ? error_share : 1;
  const double up = std::hypot(part_there * up_there, error_share * down_here);
  const double down = std::hypot(part_there * down_there, error_share * up_here);
  carried.low = carried.value * std::exp(-down);
  carried.high = carried.value * std::exp(up);
}

}  // namespace tilecast
