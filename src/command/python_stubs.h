#pragma once

#include <string>
#include <string_view>

namespace tilecast {

/// The functions of all questions for type checkers, with a typed keyword for each option, and the
/// class Forecaster with those that it answers. `before`: the rest of the file; an answer that is
/// no class of it is Any.
std::string question_stubs(std::string_view before);

}  // namespace tilecast
