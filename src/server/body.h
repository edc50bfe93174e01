#pragma once

// From the JSON of a request's body to the given options of a question.

#include "base/json.h"
#include "command/question.h"

namespace tilecast::server {

/// Keys are the keywords of Python and of JSON's `options`. A model or a device is a name, or its
/// content: an object (config.json, a device file) or the text of a graph. Throws Error{kInput}
/// for an unknown key and a value of another type.
Given given_of(const Question& question, const JsonObject& body);

/// Whether a value is the content of a file: an object, or a text of several lines.
bool is_content(const Json& value);

/// Throws OptionError for a key that the question lacks.
void check_keys(const Question& question, const JsonObject& body);

}  // namespace tilecast::server
