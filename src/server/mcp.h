#pragma once

// The service for programs that talk (Model Context Protocol): JSON-RPC 2.0, a message a line.

#include <string>
#include <string_view>

#include "server/api.h"

namespace tilecast::server {

/// The answer to a message, without its newline; "": it asks for none. Each question of the service
/// is a tool; its answer is a table as text, or the JSON fields that `fields` names.
std::string mcp_answer(const Api& api, std::string_view message);

}  // namespace tilecast::server
