#pragma once

// Sentences of warnings that depend on which facts there are.

#include <string>

#include "tilecast/result.h"

namespace tilecast {

std::string slower_precision_text(const Warning& warning);
std::string does_not_fit_text(const Warning& warning);
std::string does_not_start_text(const Warning& warning);

}  // namespace tilecast
