#pragma once

// The options of questions as JSON, for forms and clients.

#include <string>

#include "command/question.h"

namespace tilecast::server {

/// The options of all questions, each once.
std::string option_list();

/// One question: its help, and its options by group, each with the help and default that it has
/// there, the range of a whole number, and whether it is among those that are shown first.
std::string grouped_options(const Question& question);

}  // namespace tilecast::server
