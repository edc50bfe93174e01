#include "passes/distillation.h"

#include <fmt/format.h>

#include "base/check.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "tilecast/error.h"

namespace tilecast {

void add_distillation_loss(Graph& graph, const DistillationForm& form) {
  TILECAST_CHECK(graph.outputs.size() >= 2);
  const TensorId own = graph.outputs.front(), teacher = graph.outputs.back();
  graph.outputs.pop_back();
  const Shape shape = graph.tensor(own).shape, other = graph.tensor(teacher).shape;
  if (shape != other)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: logits {}, but the `teacher`'s are {}: a teacher has the same "
                            "vocabulary and sequence",
                            graph.name, format_shape(shape), format_shape(other)));
  GraphBuilder b(graph);
  b.begin_segment("loss", 1);
  b.set_counts(form.counts);
  const auto scaled = [&](TensorId logits, const char* name) {
    if (form.wide && graph.tensor(logits).dtype != DType::kFp32)
      logits = b.op("cast", {logits}, std::string(name) + ".upcast", {{"dtype", DType::kFp32}});
    return b.op("div_scalar", {logits}, std::string(name) + ".temperature");
  };
  const TensorId target = b.op("softmax", {scaled(teacher, "loss.teacher")}, "loss.softmax");
  const TensorId predicted = b.op("log_softmax", {scaled(own, "loss.student")}, "loss.log_softmax");
  // aten/src/ATen/native/Loss.cpp, kl_div: xlogy(target, target) - target * input, then the sum.
  const TensorId entropy = b.op("xlogy", {target}, "loss.kl_div.xlogy");
  const TensorId product = b.op("mul", {target, predicted}, "loss.kl_div.mul");
  const TensorId difference = b.op("sub", {entropy, product}, "loss.kl_div.sub");
  const TensorId sum = b.op("reduce_sum", {difference}, "loss.kl_div.sum", {{"shape", Shape{1}}});
  graph.losses = {b.op("mul_scalar", {sum}, "loss.scale")};
  validate_if_debug(graph);
}

}  // namespace tilecast
