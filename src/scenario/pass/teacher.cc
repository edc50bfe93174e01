#include "scenario/pass/teacher.h"

#include <fmt/format.h>

#include "ops/joined_graphs.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "scenario/internal.h"
#include "scenario/pass/pass.h"
#include "software/software.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

/// The request as the teacher runs it: one pass over the same tokens, executed alike.
Request teacher_request(const Request& request, const Model& teacher) {
  Request own;
  own.batch = request.batch;
  own.seq = request.seq;
  own.decoder_seq = request.decoder_seq;
  own.images = request.images;
  own.image_size = request.image_size;
  own.execution = request.execution;
  own.execution.dp = own.execution.microbatches = 1;
  const bool fused = own.execution.attention == AttentionKind::kFlash &&
                     teacher.has_fused_attention && teacher.takes_fused_attention;
  own.execution.attention = fused ? AttentionKind::kFlash : AttentionKind::kEager;
  return own;
}

ModelModules teacher_modules(const Model& teacher, const Request& own, const Precision& precision) {
  if (!teacher.has_modules)
    throw Error(ErrorKind::kUnsupported,
                teacher.name + ": a graph file is no `teacher`; use a config");
  check_model(teacher, own, *own.seq);
  return build_modules(teacher, own, precision);
}

/// The student's attention is fused, or it is refused before.
void pack(Graph& forward, int64_t length, const Request& own) {
  if (own.execution.attention != AttentionKind::kFlash)
    throw Error(ErrorKind::kUnsupported,
                forward.name +
                    ": `packed-sequence-length` with `teacher`: the teacher's attention is eager, "
                    "whose kernels take no packed sequences; use another teacher");
  pack_sequences(forward, length);
}

}  // namespace

void check_teacher(const Request& r, const Precision& precision) {
  if (r.teacher.empty()) return;
  const auto refuse = [](const std::string& option, const std::string& advice) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("`teacher` with {}: how ranks divide a teacher is not modelled; {}",
                            option, advice));
  };
  const Parallel& p = r.parallel;
  if (r.execution.tp > 1) refuse(fmt::format("`tp` {}", r.execution.tp), "use `dp`");
  if (r.execution.pp > 1) refuse(fmt::format("`pp` {}", r.execution.pp), "use `dp`");
  if (p.cp > 1) refuse(fmt::format("`cp` {}", p.cp), "use `dp`");
  if (p.ep > 1) refuse(fmt::format("`ep` {}", p.ep), "use `dp`");
  if (p.zero == Zero::kParameters) refuse("`zero` 3", "use `zero` 2 or less");
  if (precision.trains_in || precision.scheme_of)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("`teacher` with `dtype` {}: products of a teacher in less than 16 bits "
                            "are not modelled; use bf16, fp16, amp or fp32",
                            precision.name));
  if (r.cross_entropy)
    throw Error(ErrorKind::kInput,
                "`cross-entropy` has no effect with `teacher`, whose loss takes its place; leave "
                "it out");
  if (r.loss == Loss::kNone)
    throw Error(ErrorKind::kInput,
                "`teacher` needs `loss` full or memory: its logits are for the loss");
}

Graph with_teacher(const Graph& student, const Request& request, const Precision& precision) {
  const ModelRef loaded = load_model_ref(request.teacher);
  const Model& teacher = loaded.content->model;
  const Request own = teacher_request(request, teacher);
  ModelModules modules = teacher_modules(teacher, own, precision);
  Graph forward = decompose(
      std::move(modules.graph),
      {.fused_attention = own.execution.attention == AttentionKind::kFlash,
       .training = false,
       .autocast = precision.autocast,
       .fused_modules = traits_of(own.execution.software.value_or(Software{})).fuses_modules});
  if (request.packed_length) pack(forward, *request.packed_length, own);
  for (Tensor& tensor : forward.tensors) {
    if (tensor.kind == TensorKind::kWeight) tensor.frozen = true;
    tensor.name = "teacher." + tensor.name;
  }
  for (Node& node : forward.nodes) node.name = "teacher." + node.name;
  JoinedGraphs joined;
  const std::vector<TensorId> taught = joined.add(forward), now = joined.add(student);
  Graph graph = joined.done();
  graph.name = student.name;
  for (const TensorId id : student.outputs) graph.outputs.push_back(now[static_cast<size_t>(id)]);
  graph.outputs.push_back(taught[static_cast<size_t>(forward.outputs.front())]);
  validate_if_debug(graph);
  return graph;
}

int64_t teacher_parameters(const Request& request, const Precision& precision) {
  const ModelRef loaded = load_model_ref(request.teacher);
  const Model& teacher = loaded.content->model;
  return teacher_modules(teacher, teacher_request(request, teacher), precision).parameters;
}

}  // namespace tilecast
