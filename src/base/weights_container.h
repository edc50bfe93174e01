#pragma once

// The weights file: the magic line, the length of the header in decimal and a newline, the header
// (JSON: all that is small), then the payload: the forests' trees as they lie in memory. The header
// holds the size of the payload, in words of 32 bits, and its checksum.

#include <string>
#include <string_view>

#include "base/checksum.h"
#include "base/json.h"

namespace tilecast {

struct WeightsContainer {
  Json header;
  std::string_view payload;  ///< of the content that was read
};

/// Takes a file apart. Throws Error{kInput} for a foreign, truncated or damaged one.
WeightsContainer read_container(std::string_view content, const std::string& where,
                                Checksum checksum);
/// Adds size and checksum of the payload to the header. The payload begins at a multiple of 16
/// bytes, so that an embedded file's trees can be read where they lie.
std::string write_container(Json header, std::string_view payload);

/// Throws Error{kInput} that says what is wrong with the weights file `where`.
[[noreturn]] void unusable_weights(const std::string& where, const std::string& what);

}  // namespace tilecast
