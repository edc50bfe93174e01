#include "api/fit.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tilecast {

std::string does_not_fit(const Shortage& s, const Device& device) {
  std::string text =
      fmt::format("does not fit: {} are missing{}; {} needed, {} has {}",
                  format_bytes(s.needed_bytes - s.usable_bytes), s.ranks > 1 ? " on each GPU" : "",
                  format_bytes(s.needed_bytes), device.id, format_bytes(device.memory_bytes));
  if (s.utilization < 1)
    text += fmt::format(", of which {} may be used (--gpu-memory-utilization {})",
                        format_bytes(s.usable_bytes), s.utilization);
  if (s.largest_batch)
    text += *s.largest_batch == 0
                ? "; not even one sequence fits"
                : fmt::format("; the largest batch that fits is {}", *s.largest_batch);
  return text;
}

}  // namespace tilecast
