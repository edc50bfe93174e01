#include "predict/cost_models.h"

#include <array>

#include "predict/class_roofline.h"
#include "predict/collective.h"
#include "predict/embedding.h"
#include "predict/learned.h"
#include "predict/miopen.h"
#include "predict/roofline.h"

namespace tilecast {
namespace {

template <KernelKind kKind>
CostModel learned() {
  return {kernel_kind_name(kKind),
          [](const Kernel& kernel, const Device& device, const Weights& weights) {
            return device.as_gpu() != nullptr && weights.model(kKind).known() &&
                   kernel_kind_def(kKind).covers(kernel);
          },
          [](const CostBatch& batch, const Weights& weights) {
            estimate_learned(kKind, batch, weights);
          }};
}

template <size_t... kKinds>
std::array<CostModel, kKernelKindCount + 5> table(std::index_sequence<kKinds...>) {
  return {CostModel{kClassRoofline,
                    [](const Kernel& kernel, const Device& device, const Weights&) {
                      return is_known_by_class(kernel, device);
                    },
                    estimate_by_class},
          CostModel{"miopen",
                    [](const Kernel& kernel, const Device& device, const Weights&) {
                      return runs_in_miopen(kernel, device);
                    },
                    estimate_miopen},
          learned<static_cast<KernelKind>(kKinds)>()...,
          CostModel{"all_reduce",
                    [](const Kernel& kernel, const Device&, const Weights&) {
                      return kernel.is<Collective>();
                    },
                    estimate_collectives},
          CostModel{"embedding_bag",
                    [](const Kernel& kernel, const Device& device, const Weights&) {
                      return kernel.is<EmbeddingBag>() && device.as_gpu() != nullptr;
                    },
                    estimate_embedding_bags},
          CostModel{kRoofline, [](const Kernel&, const Device&, const Weights&) { return true; },
                    estimate_unlearned}};
}

}  // namespace

std::span<const CostModel> cost_models() {
  // Chips without laws first, then MIOpen's convolutions, the learned models in the order of
  // KernelKind.
  static const std::array models = table(std::make_index_sequence<kKernelKindCount>());
  return models;
}

}  // namespace tilecast
