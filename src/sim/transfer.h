#pragma once

namespace tilecast {

/// Facts of a collective, or of several one after the other, beside its time.
struct Transfer {
  /// How long it would fill the links of its ranks if nothing else were on them: those inside the
  /// node, and those between nodes. The rest of its time is start-up and steps.
  double node_s = 0, network_s = 0;
  double both_s = 0;              ///< of these, in which it fills both kinds at the same time
  double less_s = 0, more_s = 0;  ///< 80 % interval: by how much it may be shorter or longer
  Transfer& operator+=(const Transfer& other) {
    node_s += other.node_s;
    network_s += other.network_s;
    both_s += other.both_s;
    less_s += other.less_s;
    more_s += other.more_s;
    return *this;
  }
};

}  // namespace tilecast
