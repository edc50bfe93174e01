#pragma once

// A request as it is asked elsewhere: the line for a terminal, and the call of Python.

#include <string>

#include "base/json.h"
#include "command/question.h"

namespace tilecast::server {

/// {"command_line": "tilecast forecast gpt2 --gpu H100", "python": "tilecast.forecast(...)"}.
/// `command_line` is null where no command asks the question. Content in place of a name is the
/// file of that option, "model.json". Throws Error{kInput} for an option that the question lacks.
std::string calls_json(const Question& question, const JsonObject& body);

}  // namespace tilecast::server
