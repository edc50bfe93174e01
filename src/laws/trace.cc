#include "laws/trace.h"

#include "laws/constant_table.h"

namespace tilecast {

void TraceConstants::describe(ConstantTable& table) {
  table.add("nvidia_start_s", nvidia_start_s);
  table.add("amd_start_s", amd_start_s);
  table.add("other_vendor_share", other_vendor_share);
  table.add("queued_launch_s", queued_launch_s);
  table.add("stream_gap_s", stream_gap_s);
  table.add("other_stream_gap_s", other_stream_gap_s);
  table.add("host_slack_s", host_slack_s);
  table.add("kept_by_start_share", kept_by_start_share);
  table.add("driver_memory_share", driver_memory_share);
  table.add("named_layout_share", named_layout_share);
  table.add("long_pieces", long_pieces);
  table.add("change_doublings", change_doublings);
}

}  // namespace tilecast
