#pragma once

// The graph of one pass or training step, and its memory.

#include <optional>
#include <vector>

#include "devices/device.h"
#include "importers/model.h"
#include "memory/by_purpose.h"
#include "memory/lifetimes.h"
#include "passes/vocabulary.h"
#include "scenario/fit.h"
#include "scenario/precision.h"
#include "tilecast/result.h"

namespace tilecast {

PrecisionRequest precision_request(const Request& request);

/// The part of a request that the model's graph depends on; `seq` must be set.
GraphRequest graph_request(const Request& request, const Precision& precision);

/// Throws Error if the model cannot be run as requested, with `seq` tokens.
void check_model(const Model& model, const Request& request, int64_t seq);

/// Throws Error{kInput} if the request is not for one pass.
void check_is_pass(const Request& request);
/// Throws Error{kInput} if the request is not for one pass, or contradicts itself.
void check_pass(const Request& request);

/// A request with its defaults, `seq` among them, and the precision in which the model runs.
struct CheckedPass {
  Request request;
  Precision precision;
};

/// Of a request that has been checked. Throws Error if the model or the device cannot run it.
CheckedPass completed_pass(const Model& model, const Device& device, const Request& request);
/// Throws Error if the request is not for one pass, contradicts itself, or the model or the device
/// cannot run it.
CheckedPass checked_pass(const Model& model, const Device& device, const Request& request);

/// The graph of the pass as PyTorch runs it. `seq` of the request must be given.
Graph build_graph(const Model& model, const Request& request, const Precision& precision);

/// The graph of modules of the forward pass, with adapters and the vision tower.
struct ModelModules {
  Graph graph;
  std::optional<PaddedVocabulary> vocabulary;  ///< of tensor-parallel ranks
  int64_t parameters = 0;                      ///< without that padding
  int64_t layers = 0;  ///< `layer_count` of the model without its vision tower
};
/// How layers are stored: those of a pattern together, or each alone, as ranks divide them.
enum class LayerForm : uint8_t { kPatterns, kSingle };
ModelModules build_modules(const Model& model, const Request& request, const Precision& precision,
                           LayerForm form = LayerForm::kPatterns);

/// Whether selective checkpointing finds scores to compute again.
bool has_scores(const Graph& modules, const EagerForm& form);

/// Differences of one of several ranks.
struct RankForm {
  bool has_head = true;          ///< the part of the model ends in its output
  int64_t vocabulary_ranks = 1;  ///< that divide the logits
  int64_t optimizer_shards = 1;  ///< data-parallel ranks that divide the optimizer step
  double expert_ranks = 1;       ///< how many times fewer of them have an expert
};

/// From modules, of one rank's share, to the pass as PyTorch runs it.
Graph complete_graph(Graph modules, const Model& model, const Request& request,
                     const Precision& precision, const RankForm& form = {});

/// The pass to run, and the device. The request has its `seq`.
struct PassSetup {
  const Model& model;
  const Device& device;
  const Request& request;
  const Precision& precision;
};

PassMemory forecast_memory(const Graph& graph, const PassSetup& setup);
/// The same, of a plan that was made before.
PassMemory forecast_memory(const Graph& graph, const MemoryByPurpose& plan, const PassSetup& setup);

/// nullopt if not even one sequence fits.
std::optional<int64_t> largest_fitting_batch(const PassSetup& setup,
                                             std::optional<BatchBytes> too_many);

/// Bytes by use as the façade names them.
MemoryParts parts_of(const BytesByUse& bytes);

}  // namespace tilecast
