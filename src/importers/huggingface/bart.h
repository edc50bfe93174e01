#pragma once

#include <vector>

#include "importers/huggingface/family.h"

namespace tilecast {

/// BART and the families that differ from it in known parts.
std::vector<FamilyDef> bart_families();

}  // namespace tilecast
