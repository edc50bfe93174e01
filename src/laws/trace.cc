#include "laws/trace.h"

#include "laws/constant_table.h"

namespace tilecast {

void TraceConstants::describe(ConstantTable& table) {
  table.add("nvidia_start_s", nvidia_start_s);
  table.add("amd_start_s", amd_start_s);
  table.add("other_vendor_share", other_vendor_share);
  table.add("queued_launch_s", queued_launch_s);
}

}  // namespace tilecast
