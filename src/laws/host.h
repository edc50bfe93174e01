#pragma once

// Constants of hosts: how the time of a fast or slow one compares with the costs in data/software,
// and the rates at which one keeps and updates an optimizer's states. What each is and how it was
// found: data/laws/host.json.

namespace tilecast {

class ConstantTable;

struct HostConstants {
  double fast_ratio, slow_ratio, memory_bytes_per_s, link_ratio;

  void describe(ConstantTable& table);
  bool operator==(const HostConstants&) const = default;
};

}  // namespace tilecast
