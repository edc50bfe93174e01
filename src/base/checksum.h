#pragma once

#include <cstdint>

namespace tilecast {

/// Whether content is verified by its checksum, or trusted because a build put it into the program.
/// Weights of trusted content hold views of it, so it must outlive them.
enum class Checksum : uint8_t { kVerify, kTrust };

}  // namespace tilecast
