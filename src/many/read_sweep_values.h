#pragma once

#include <string>

#include "many/spec_node.h"
#include "many/sweep_spec.h"

namespace tilecast {

/// What values are for. A list of its own has each once, a zip repeats some. What is drawn needs no
/// step.
enum class ValuesOf : uint8_t { kList, kZip, kDraw };

/// The list or range of a column of which all but the values is known. Throws Error{kInput} with
/// line and column.
SweepValues read_sweep_values(const SpecNode& node, const SweepColumn& column, ValuesOf use);

/// The number that a word is, also "2k"; not a number where it is none.
double number_of_word(const std::string& word);

}  // namespace tilecast
