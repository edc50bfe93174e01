#pragma once

// The parts of the table of options.

#include <string>
#include <vector>

#include "tilecast/request.h"

namespace tilecast {

/// The options of text generation.
std::vector<OptionDef> token_options();

/// The options among them about GPUs: the layout of a server, several servers, drafts.
std::vector<OptionDef> deployment_options();
/// When a server looks for requests and starts them, and how it launches its steps.
std::vector<OptionDef> scheduling_options();

/// The adapters that the requests of a server have.
std::vector<OptionDef> served_adapter_options();

/// How many GPUs there are and how they share layers: the same for both. `otherwise`: what runs
/// without a cluster.
std::vector<OptionDef> cluster_options(const std::string& otherwise);

/// Power, and what it costs.
std::vector<OptionDef> energy_options();

/// What pipelines of image and video diffusion make.
std::vector<OptionDef> diffusion_options();

/// The options of training on several ranks.
std::vector<OptionDef> parallel_options();

}  // namespace tilecast
