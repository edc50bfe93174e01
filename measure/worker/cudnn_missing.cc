#include "operations.h"

namespace tilecast::measure {

std::string cudnn_version() { return ""; }

Operation make_cudnn(Session&, const Request&) {
  throw Unsupported(
      "the kit was built without cuDNN: install cuDNN and its frontend's headers (pip install "
      "nvidia-cudnn-cu13 nvidia-cudnn-frontend) and build again");
}

}  // namespace tilecast::measure
