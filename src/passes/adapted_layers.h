#pragma once

// Which linear layers have low-rank adapters (LoRA): in training and of a server's requests.

#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// "layers.0.self_attn.q_proj": "q_proj".
std::string layer_name(const Node& node);

/// The linear layers that may have an adapter: peft's "all-linear" leaves out the output layer;
/// routers of experts are no linear layers there.
bool may_have_adapter(const Graph& graph, const Node& node);

/// By the last part of their names; {"all-linear"}: all of them.
bool is_target(const std::vector<std::string>& targets, const std::string& name);

/// Throws Error{kInput} where no layer has the name of a target. `known`: the names of all layers
/// that may have an adapter.
void check_targets(const Graph& graph, const std::vector<std::string>& targets,
                   const std::set<std::string>& known);
/// The same for a graph of modules.
void check_targets(const Graph& modules, const std::vector<std::string>& targets);

}  // namespace tilecast
