#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilecast {

/// The bytes of a text in base64 (RFC 4648, section 4: + and /, padded with =); nullopt: it is
/// none.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace tilecast
