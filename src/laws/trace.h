#pragma once

// Constants of traces that are carried to another GPU (src/profile). What each is and how it was
// found: data/laws/trace.json.

namespace tilecast {

class ConstantTable;

struct TraceConstants {
  double nvidia_start_s, amd_start_s, other_vendor_share, queued_launch_s, stream_gap_s,
      other_stream_gap_s, host_slack_s, kept_by_start_share, driver_memory_share,
      named_layout_share, long_pieces, change_doublings;

  void describe(ConstantTable& table);
  bool operator==(const TraceConstants&) const = default;
};

}  // namespace tilecast
