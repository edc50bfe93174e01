// Collective operations between ranks.

#include "ops/builder.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

void work_all_reduce(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t ranks = context.integer("ranks");
  if (ranks == 1) return;
  Kernel kernel{.shape = Collective{element_count(context.input(0).shape), ranks},
                .dtype = context.input(0).dtype};
  kernel.read_bytes = tensor_bytes(context.input(0));
  kernel.write_bytes = kernel.read_bytes;
  kernels.push_back(kernel);
}

std::vector<SizeDef> collective_sizes() {
  std::vector<SizeDef> sizes = row_sizes();
  sizes.push_back({.name = "ranks", .doc = "that take part"});
  return sizes;
}

Operands collective_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype())}, {{"ranks", s["ranks"]}}};
}

}  // namespace

std::vector<OpDef> collective_ops() {
  return {
      {.name = "all_reduce",
       .doc = "sum over the ranks of a node",
       .aten = "c10d::allreduce_",
       .onnx = "",
       .attributes = {{.name = "ranks", .doc = "how many", .default_value = int64_t{1}, .min = 1}},
       .infer = infer_same,
       .work = work_all_reduce,
       .sizes = collective_sizes(),
       .operands = collective_operands,
       .example = "x: bf16[64, 256] {ranks=4}"},
  };
}

}  // namespace tilecast
