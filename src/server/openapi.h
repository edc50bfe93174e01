#pragma once

// The description of the service, made of the tables of questions and results.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "command/question.h"

namespace tilecast::server {

/// Options that the service sets for all requests.
inline constexpr std::string_view kOptionsOfTheService[] = {"max_memory", "max_seconds", "weights",
                                                            "calibration"};
/// The type of one value of an option in JSON.
std::string_view json_type(const CommandOption& option);

/// Whether a request may have the option of this keyword.
bool is_of_requests(std::string_view keyword);

/// The question of that name, if the service answers it; nullptr: it does not.
const Question* find_served(std::string_view name);

/// The JSON schema of the options of a question.
nlohmann::ordered_json request_schema(const Question& question);

/// The whole description (OpenAPI 3.1).
std::string openapi();

}  // namespace tilecast::server
