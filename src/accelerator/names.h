#pragma once

// Names of accelerators: all that a build without accelerators knows of them
// (TILECAST_ACCELERATOR).

#include <cstdint>
#include <string>
#include <vector>

#include "base/embedded.h"

namespace tilecast::accelerator {

inline constexpr uint64_t kLargestDescription = uint64_t{1} << 20;  ///< bytes of a file

/// Bundled accelerators: data/accelerators.
std::vector<std::string> bundled_accelerators();

/// Their ids and aliases.
const std::vector<std::string>& accelerator_names();

/// The description of the bundled accelerator with that id or alias, however it is spelled; nullptr
/// if there is none.
const EmbeddedFile* find_bundled_accelerator(const std::string& name);

/// Whether the text names a bundled accelerator, or a file that describes one. The part after the
/// first ':' is not looked at.
bool names_accelerator(const std::string& spec);

}  // namespace tilecast::accelerator
