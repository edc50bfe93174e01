#include "importers/huggingface/relative_bias.h"

namespace tilecast {

TensorId relative_buckets(Layers& f, const std::string& stack, int64_t s, bool both_ways) {
  GraphBuilder& b = f.builder();
  const std::string name = stack + ".relative_attention_bias";
  const TensorId rows = b.input(stack + ".context_position", {s, 1}, DType::kInt64);
  const TensorId columns = b.input(stack + ".memory_position", {1, s}, DType::kInt64);
  TensorId distance = f.op("sub", {columns, rows}, name);
  if (both_ways) {
    const TensorId sign =
        f.op("cast", {f.op("compare", {distance}, name)}, name, {{"dtype", DType::kInt64}});
    f.op("mul_scalar", {sign}, name);
    distance = f.op("maximum_scalar", {distance}, name);  // the absolute value
  } else {
    distance = f.op("neg", {f.op("maximum_scalar", {distance}, name)}, name);
  }
  const TensorId near = f.op("compare", {distance}, name);
  TensorId far = f.op("cast", {distance}, name, {{"dtype", DType::kFp32}});
  for (const char* op : {"div_scalar", "log", "div_scalar", "mul_scalar"})
    far = f.op(op, {far}, name);
  far = f.op("cast", {far}, name, {{"dtype", DType::kInt64}});
  far = f.op("maximum_scalar", {f.op("add_scalar", {far}, name)}, name);
  return f.op("add_scalar", {f.op("where", {near, distance, far}, name)}, name);
}

TensorId relative_bias(Layers& f, TensorId buckets, int64_t bucket_count, int64_t heads,
                       const std::string& name) {
  const int64_t s = f.builder().graph().tensor(buckets).shape.back();
  const TensorId table =
      f.weight(name + ".weight", {bucket_count, heads}, 1, f.outputs(1, {heads}));
  const TensorId values = f.embedding(table, buckets, name);
  return f.view(f.transpose(values, {2, 0, 1}), {1, heads, s, s});
}

}  // namespace tilecast
