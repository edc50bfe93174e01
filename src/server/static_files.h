#pragma once

// The page of the service: the files of web/, which the build puts into the program.

#include <optional>
#include <string_view>

#include "server/api.h"

namespace tilecast::server {

/// Whether a path is one of the page's: "/", or below "/web/".
bool is_of_page(std::string_view path);

/// The file of a path, "/" or "/web/page.js", with the headers that keep a browser from running
/// anything else; 304 where `known`, the header If-None-Match, has its tag; nullopt: there is none.
std::optional<HttpResponse> page_file(std::string_view path, std::string_view known);

}  // namespace tilecast::server
