// Exchanges between the ranks that share experts, and their backward passes.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "ops/collectives.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// What the busiest rank gets, where the mean rank gets `mean`.
int64_t of_busiest(const OpContext& context, int64_t mean) {
  return ceil_divide(checked_multiply(mean, context.integer("busiest_percent")), int64_t{100});
}

/// Rows that the experts of a rank get, for each of the rank's own tokens.
int64_t rows_of_token(const OpContext& context) {
  return context.integer(context.integer("copies") == 1 ? "top_k" : "ranks");
}

/// expert_dispatch: the rank gets the tokens of all ranks that have one of its experts, in the
/// shape [ranks · b, …]; expert_combine is the reverse.
std::vector<TensorSpec> infer_dispatched(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  if (spec.shape.empty()) context.fail("expected rows of tokens, found a scalar");
  spec.shape[0] = checked_multiply(spec.shape[0], rows_of_token(context));
  // Each token is sent to the ranks of its experts, not to all.
  const int64_t ranks = context.integer("ranks"), top_k = context.integer("top_k");
  if (context.integer("copies") == 0 && top_k < ranks) {
    const int64_t all = checked_multiply(tensor_bytes(context.input(0)), ranks);
    const int64_t sent = checked_multiply(tensor_bytes(context.input(0)), top_k);
    spec.stored_bytes = std::min(all, of_busiest(context, sent));
  }
  return {spec};
}

std::vector<TensorSpec> infer_combined(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  if (spec.shape.empty() || spec.shape[0] % rows_of_token(context) != 0)
    context.fail("the tokens of all ranks are no multiple of their number");
  spec.shape[0] /= rows_of_token(context);
  return {spec};
}

/// Rows that a rank's own tokens send to experts, of the rows of all expert-parallel ranks.
int64_t sent_elements(const OpContext& context, const Tensor& dispatched) {
  return checked_multiply(element_count(dispatched.shape) / context.integer("expert_ranks"),
                          context.integer("top_k"));
}

/// expert_all_gather: the dispatched tokens of all ranks that divide an expert: [b, …] to
/// [ranks · b, …]; expert_reduce_scatter is the reverse.
std::vector<TensorSpec> infer_expert_gathered(const OpContext& context) {
  const Tensor& x = context.input(0);
  if (x.shape.empty()) context.fail("expected rows of tokens, found a scalar");
  const int64_t ranks = context.integer("ranks");
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype};
  spec.shape[0] = checked_multiply(spec.shape[0], ranks);
  if (x.stored_bytes) spec.stored_bytes = checked_multiply(*x.stored_bytes, ranks);
  return {spec};
}
std::vector<TensorSpec> infer_expert_scattered(const OpContext& context) {
  const Tensor& x = context.input(0);
  const int64_t ranks = context.integer("ranks");
  if (x.shape.empty() || x.shape[0] % ranks != 0)
    context.fail("the tokens of all ranks are no multiple of their number");
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype};
  spec.shape[0] /= ranks;
  if (x.stored_bytes) spec.stored_bytes = ceil_divide(*x.stored_bytes, ranks);
  return {spec};
}

/// A row for each token and expert, as an all-to-all of experts has sent it. All ranks wait for
/// those whose experts get most.
void work_expert_rows(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t ranks = context.integer("ranks");
  if (ranks == 1) return;
  const Tensor &in = context.input(0), &out = context.output(0);
  const bool gathers = element_count(in.shape) < element_count(out.shape);
  const int64_t own = of_busiest(context, sent_elements(context, gathers ? in : out));
  const int64_t all = checked_multiply(own, ranks);
  Kernel kernel{.shape = Collective{all, ranks}, .dtype = in.dtype};
  const int64_t bits = dtype_bits(in.dtype);
  kernel.read_bytes = checked_multiply(gathers ? own : all, bits) / kBitsPerByte;
  kernel.write_bytes = checked_multiply(gathers ? all : own, bits) / kBitsPerByte;
  kernels.push_back(kernel);
}

/// Copies of a token that are sent to its experts. DeepEP's kernels send one to a rank, whatever
/// the number of its experts there; an all-to-all sends rows in the order of experts, `top_k` of
/// them.
int64_t copies_sent(const OpContext& context) {
  const int64_t top_k = context.integer("top_k");
  const bool once = context.integer("num_experts") > 0 || context.integer("copies") == 1;
  return once ? std::min(top_k, context.integer("ranks")) : top_k;
}

/// Tokens that the rank's sequences send to experts. All ranks wait for the one that gets most.
void work_expert_exchange(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t ranks = context.integer("ranks");
  if (ranks == 1) return;
  const int64_t copies = copies_sent(context);
  const Tensor &in = context.input(0), &out = context.output(0);
  const bool dispatch = element_count(in.shape) < element_count(out.shape);
  const Tensor& own = dispatch ? in : out;
  const int64_t elements = of_busiest(context, checked_multiply(element_count(own.shape), copies));
  Kernel kernel{.shape = Collective{elements, ranks}, .dtype = in.dtype};
  kernel.read_bytes = of_busiest(context, checked_multiply(tensor_bytes(own), copies));
  kernel.write_bytes = kernel.read_bytes;
  kernel.host.waits = context.integer("counts_awaited") != 0;
  kernels.push_back(kernel);
}

/// The numbers are known by then.
void backward_dispatch(GradientBuilder& g, const Node& node) {
  Node known = node;
  std::erase_if(known.attributes, [](const Attribute& a) { return a.name == "counts_awaited"; });
  backward_through(g, known, "expert_combine");
}
void backward_combine(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "expert_dispatch");
}

void backward_expert_gather(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "expert_reduce_scatter");
}
void backward_expert_scatter(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "expert_all_gather");
}

AttributeDef busiest_attribute() {
  return {.name = "busiest_percent",
          .doc = "tokens of the rank whose experts get most, over the mean of the ranks",
          .default_value = int64_t{100},
          .min = 100};
}

std::vector<AttributeDef> of_experts() {
  return {ranks_attribute(),
          {.name = "top_k", .doc = "experts per token", .default_value = int64_t{1}, .min = 1},
          flag_attribute("own_rows", "1: tensor-parallel ranks exchange rows of their own"),
          flag_attribute("counts_awaited",
                         "1: the host waits for the numbers of tokens, which buffers depend on"),
          flag_attribute("copies",
                         "1: the experts get a row for each token and expert of theirs, "
                         "as many as the mean rank; 0: a row for each token"),
          {.name = "num_experts",
           .doc = "on all ranks; kernels send a token to a rank once. 0: a copy for each expert",
           .default_value = int64_t{0},
           .min = 0},
          busiest_attribute()};
}

std::vector<AttributeDef> of_expert_rows() {
  return {ranks_attribute(),
          {.name = "expert_ranks",
           .doc = "ranks that the experts are spread over",
           .default_value = int64_t{1},
           .min = 1},
          {.name = "top_k", .doc = "experts per token", .default_value = int64_t{1}, .min = 1},
          busiest_attribute()};
}

}  // namespace

std::vector<OpDef> expert_exchange_ops() {
  return {
      {.name = "expert_dispatch",
       .doc = "tokens to the ranks that have their experts: [b, …] to [ranks · b, …]",
       .aten = "c10d::alltoall_",
       .attributes = of_experts(),
       .infer = infer_dispatched,
       .work = work_expert_exchange,
       .backward = backward_dispatch,
       .shard = shard_dispatch,
       .example = "x: bf16[64, 256] {ranks=4, top_k=2}"},
      {.name = "expert_combine",
       .doc = "the experts' results back to the ranks of the tokens: [ranks · b, …] to [b, …]",
       .aten = "c10d::alltoall_",
       .attributes = of_experts(),
       .infer = infer_combined,
       .work = work_expert_exchange,
       .backward = backward_combine,
       .shard = shard_like_first,
       .example = "x: bf16[64, 256] {ranks=4, top_k=2}"},
      {.name = "expert_all_gather",
       .doc = "dispatched tokens of the ranks that divide each expert: [b, …] to [ranks · b, …]",
       .aten = "c10d::allgather_",
       .attributes = of_expert_rows(),
       .infer = infer_expert_gathered,
       .work = work_expert_rows,
       .backward = backward_expert_gather,
       .shard = shard_rows,
       .example = "x: bf16[64, 256] {ranks=2, expert_ranks=4, top_k=2}"},
      {.name = "expert_reduce_scatter",
       .doc = "sums of the parts of an expert, to the ranks that have sent the tokens on",
       .aten = "c10d::reduce_scatter_",
       .attributes = of_expert_rows(),
       .infer = infer_expert_scattered,
       .work = work_expert_rows,
       .backward = backward_expert_scatter,
       .shard = shard_rows,
       .example = "x: bf16[64, 256] {ranks=2, expert_ranks=4, top_k=2}"},
  };
}

}  // namespace tilecast
