#pragma once

// Constants of the law of jobs that share a GPU (src/sharing). What each is and how it was found:
// data/laws/sharing.json.

namespace tilecast {

class ConstantTable;

struct SharingConstants {
  double launch_s, kernel_turn_s, slice_turn_s, short_slice_turn_s, switch_s, deepest_prefetch,
      input_free_share, input_binds_share, slice_slow_down_log, slice_slow_down,
      kernel_slow_down_log, kernel_slow_down, sure_share, slice_speed_log, memory_share;

  void describe(ConstantTable& table);
  bool operator==(const SharingConstants&) const = default;
};

}  // namespace tilecast
