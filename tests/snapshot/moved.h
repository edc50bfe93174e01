#pragma once

#include <string>
#include <vector>

namespace tilecast {

/// Which numbers differ between two snapshots, and by how much: for each kind of forecast and each
/// number of the headline ("s", "ttft", "flops", …) how many lines moved, the median change, and
/// the largest one with its line. Lines that are new, gone, or refused in one of them are counted.
/// Lines are matched by model, device and kind.
///
///   inference  s       12 of 392 moved, median +1.2 %, most +8.4 % (gpt2 nvidia-t4)
std::string moved_report(const std::vector<std::string>& expected,
                         const std::vector<std::string>& found);

}  // namespace tilecast
