// The options of GPUs that training and text generation share.

#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {

std::vector<OptionDef> cluster_options(const std::string& otherwise) {
  return {
      {.name = "cluster",
       .access = field<[](auto& r) -> auto& { return r.parallel.cluster; }>(),
       .value = "CLUSTER",
       .help =
           "id or alias ('tilecast clusters'), or a cluster file (.json); default: " + otherwise},
      {.name = "nodes",
       .access = field<[](auto& r) -> auto& { return r.parallel.nodes; }>(),
       .value = "N",
       .unit = "nodes",
       .help = "of the cluster; default: as few as hold all GPUs"},
      {.name = "tp",
       .access = field<[](auto& r) -> auto& { return r.execution.tp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "tensor-parallel GPUs, which share each layer"},
      {.name = "pp",
       .access = field<[](auto& r) -> auto& { return r.execution.pp; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "pipeline stages, which share the layers"},
  };
}

}  // namespace tilecast
