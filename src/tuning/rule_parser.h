#pragma once

#include "tuning/rules.h"

namespace tilecast::tuning {

/// The names of problem sizes that rules may use.
std::span<const std::string_view> size_names();

/// Sizes on which a rule file must have a legal set: small and large, of every pass and precision.
std::vector<Sizes> sample_sizes();

}  // namespace tilecast::tuning
