#pragma once

// How one server is divided over GPUs: its stages, its groups of ranks, and what they exchange.

#include "scenario/parallel/collective_costs.h"
#include "scenario/parallel/rank_layout.h"

namespace tilecast {

/// The layout of one server (replica) of a request for text generation. Ranks are numbered as in
/// training: tensor-parallel ranks are neighbours, then data-parallel ones, then stages. Throws
/// Error{kInput} if the cluster does not hold the servers of the request, or the model has fewer
/// layers than stages.
RankLayout server_ranks(const Model& model, const Device& device, const Request& request,
                        const Graph& modules);

/// GPUs of one server, of one prefill worker, and of all together, encode workers included.
int64_t server_gpus(const Request& request);
int64_t prefill_worker_gpus(const Request& request);
int64_t all_gpus(const Request& request);

/// The request as a prefill worker sees it: its layout, prompts only.
Request prefill_worker_request(const Request& request);

/// Which of DeepEP's kernels run.
enum class ExpertKernels : uint8_t { kNormal, kLowLatency };

/// Replaces the times of collectives by the times for the layout's groups.
void price_collectives(const RankLayout& layout, const Graph& graph, const Program& program,
                       ExpertKernels kernels, Software software, std::vector<KernelTime>& times);

/// Sending the result of a stage with these outputs to the next stage.
double send_s(const RankLayout& layout, const Graph& stage, StageLinks links, Software software);

}  // namespace tilecast
