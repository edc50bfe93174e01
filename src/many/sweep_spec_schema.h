#pragma once

#include <string>

namespace tilecast {

/// The JSON schema (draft 2020-12) of a sweep's spec, from the table of options and the numbers of
/// devices: docs/schema/sweep_spec.schema.json.
std::string sweep_spec_schema();

}  // namespace tilecast
