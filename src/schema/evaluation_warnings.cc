#include <fmt/format.h>

#include "tilecast/learn.h"

namespace tilecast {

std::vector<std::string> evaluation_warnings(const Evaluation& evaluation) {
  if (evaluation.unmatched.empty()) return {};
  return {fmt::format("{} could not be evaluated; the result lists {}",
                      evaluation.unmatched.size() == 1
                          ? "1 kind of row or file"
                          : fmt::format("{} kinds of rows or files", evaluation.unmatched.size()),
                      evaluation.unmatched.size() == 1 ? "it" : "them")};
}

}  // namespace tilecast
