#pragma once

// The views of answers by name: "table", "json", "csv", "svg".

#include <optional>
#include <string>
#include <string_view>

#include "command/answer.h"
#include "tilecast/view.h"

namespace tilecast {

/// The answer in a view; nullopt if answers of its type have no such view.
std::optional<std::string> view(const Answer& answer, std::string_view name,
                                const TableStyle& style = {});

}  // namespace tilecast
