#pragma once

#include <string>
#include <string_view>

namespace tilecast {

/// The text in single quotes, which a POSIX shell reads as one word.
std::string shell_quoted(std::string_view text);

/// The same, without quotes where none are needed.
std::string shell_word(std::string_view text);

}  // namespace tilecast
