#include "graph/role.h"

#include <algorithm>
#include <iterator>

namespace tilecast {
namespace {

constexpr Bearer kOfNodes[] = {Bearer::kNode}, kOfWeights[] = {Bearer::kWeight},
                 kOfSegments[] = {Bearer::kSegment},
                 kOfInputsAndSegments[] = {Bearer::kInput, Bearer::kSegment};
constexpr std::span<const std::string_view> kAnyOp = {};
constexpr std::string_view kSums[] = {"add", "fused_pointwise"};
constexpr std::string_view kSoftmaxOps[] = {"softmax", "cast", "fused_softmax", "fused_pointwise"};

constexpr RoleInfo kRoles[] = {
    {Role::kResidual, "residual", kOfNodes, kSums,
     "the sum at the end of a sublayer: until then variables of PyTorch code hold its operands"},
    {Role::kSoftmax, "softmax", kOfNodes, kSoftmaxOps,
     "the softmax of attention's scores, and its casts: a variable holds the scores meanwhile"},
    {Role::kSharedExpert, "shared_expert", kOfNodes, kAnyOp,
     "of the expert that all tokens go through, which can run beside the others"},
    {Role::kOutput, "output", kOfNodes, kAnyOp,
     "of the output layer: a step of serving software runs it for the last tokens only"},
    {Role::kGroup, "group", kOfNodes, kAnyOp,
     "of a serving step: processes one group of sequences, not all tokens"},
    {Role::kBottomMlp, "bottom_mlp", kOfNodes, kAnyOp,
     "of a recommendation model: can run while ranks exchange sums of the embedding tables"},
    {Role::kExperts, "experts", kOfWeights, kAnyOp,
     "of a layer of experts: ranks divide it by experts"},
    {Role::kQkv, "qkv", kOfWeights, kAnyOp, "three matrices in one: of queries, keys and values"},
    {Role::kGateUp, "gate_up", kOfWeights, kAnyOp, "two matrices in one: of a gated MLP"},
    {Role::kLatents, "latents", kOfWeights, kAnyOp,
     "two matrices in one: to the latent vectors of queries and of keys"},
    {Role::kRouter, "router", kOfWeights, kAnyOp,
     "chooses the experts: common checkpoints do not quantize it, and it gets no adapter"},
    {Role::kGate, "gate", kOfWeights, kAnyOp,
     "of a small gate: common checkpoints do not quantize it"},
    {Role::kReceived, "received", kOfInputsAndSegments, kAnyOp,
     "another rank computes it; a segment: what a part of a model receives or computes again"},
    {Role::kVision, "vision", kOfSegments, kAnyOp,
     "of a vision tower beside a language model: not quantized"},
    {Role::kSixteenBits, "sixteen_bits", kOfSegments, kAnyOp,
     "layers that multiply in 16 bits where training in fewer leaves out the first and the last"},
};

const RoleInfo* info_of(Role role) {
  const auto* found = std::find_if(std::begin(kRoles), std::end(kRoles),
                                   [role](const RoleInfo& info) { return info.role == role; });
  return found == std::end(kRoles) ? nullptr : found;
}

}  // namespace

std::span<const RoleInfo> roles() { return kRoles; }

std::string_view role_word(Role role) {
  const RoleInfo* info = info_of(role);
  return info == nullptr ? std::string_view() : info->word;
}

std::optional<Role> find_role(std::string_view word) {
  for (const RoleInfo& info : kRoles) {
    if (info.word == word) return info.role;
  }
  return std::nullopt;
}

bool role_fits(Role role, Bearer bearer) {
  const RoleInfo* info = info_of(role);
  return info == nullptr ||
         std::find(info->bearers.begin(), info->bearers.end(), bearer) != info->bearers.end();
}

bool role_fits_op(Role role, std::string_view op) {
  const RoleInfo* info = info_of(role);
  return info == nullptr || (role_fits(role, Bearer::kNode) &&
                             (info->ops.empty() || std::find(info->ops.begin(), info->ops.end(),
                                                             op) != info->ops.end()));
}

}  // namespace tilecast
