#pragma once

#include <string>

#include "schema/results.h"

namespace tilecast {

/// The JSON schema (draft 2020-12) of an output: docs/schema/<name>.schema.json. It refuses keys
/// that are not in the table. `unit` is an annotation.
std::string json_schema(const ResultDef& result);

}  // namespace tilecast
