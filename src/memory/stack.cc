#include "memory/stack.h"

namespace tilecast {

const SoftwareStack& default_stack() { return software_def(Software{}).memory; }

int64_t framework_bytes(const SoftwareStack& stack, bool training) {
  return stack.context_bytes + libraries_bytes(stack, training);
}

int64_t libraries_bytes(const SoftwareStack& stack, bool training) {
  return stack.modules_bytes + stack.libraries_bytes +
         (training ? stack.training_bytes : stack.inference_bytes);
}

int64_t workspace_bytes(const SoftwareStack& stack, bool large, bool training) {
  return (large ? stack.workspace_large_bytes : stack.workspace_bytes) * (training ? 2 : 1);
}

}  // namespace tilecast
