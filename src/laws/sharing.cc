#include "laws/sharing.h"

#include "laws/constant_table.h"

namespace tilecast {

void SharingConstants::describe(ConstantTable& table) {
  table.add("launch_s", launch_s);
  table.add("kernel_turn_s", kernel_turn_s);
  table.add("slice_turn_s", slice_turn_s);
  table.add("short_slice_turn_s", short_slice_turn_s);
  table.add("switch_s", switch_s);
  table.add("deepest_prefetch", deepest_prefetch);
  table.add("input_free_share", input_free_share);
  table.add("input_binds_share", input_binds_share);
  table.add("slice_slow_down_log", slice_slow_down_log);
  table.add("slice_slow_down", slice_slow_down);
  table.add("kernel_slow_down_log", kernel_slow_down_log);
  table.add("kernel_slow_down", kernel_slow_down);
  table.add("sure_share", sure_share);
  table.add("slice_speed_log", slice_speed_log);
  table.add("memory_share", memory_share);
}

}  // namespace tilecast
