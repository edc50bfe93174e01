#pragma once

#include "ops/op_def.h"

namespace tilecast {

/// The sizes that the operator takes.
inline SizeList taken_sizes(std::string_view op, const SizeList& sizes) {
  SizeList taken;
  for (const Attribute& size : sizes) {
    if (find_size(op_def(require_op(op)), size.name) != nullptr) taken.push_back(size);
  }
  return taken;
}

}  // namespace tilecast
