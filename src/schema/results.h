#pragma once

// All results that the program writes.

#include <span>
#include <string>
#include <string_view>

#include "schema/record.h"

namespace tilecast {

/// An output of the program: a JSON document and its schema.
struct ResultDef {
  std::string_view name;     ///< of its schema: docs/schema/<name>.schema.json
  std::string_view command;  ///< that writes it, without the program
  const RecordDef* record;
  bool is_list = false;  ///< the document is a list of records
};
std::span<const ResultDef> results();

/// The command line that writes its JSON.
std::string result_command(const ResultDef& result);

}  // namespace tilecast
