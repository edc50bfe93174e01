#pragma once

// The views of answers by name: "table", "json", "html", "csv", "svg".

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "command/answer.h"
#include "tilecast/view.h"

namespace tilecast {

/// The answer in a view; nullopt if answers of its type have no such view.
std::optional<std::string> view(const Answer& answer, std::string_view name,
                                const TableStyle& style = {});

/// As JSON, of a record the fields of these names alone. Throws Error{kInput} for a name that it
/// lacks, and for an answer that is no record.
std::string selected_json(const Answer& answer, std::span<const std::string> fields);

}  // namespace tilecast
