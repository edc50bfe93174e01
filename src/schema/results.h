#pragma once

// All results that have a table of fields.

#include <span>
#include <string_view>

#include "schema/record.h"
#include "tilecast/forecast.h"

namespace tilecast {

extern template const RecordDef& record_of<KernelForecast>();
extern template const RecordDef& record_of<Forecast>();
extern template const RecordDef& record_of<RankTables>();

/// An output of the program: a JSON document and its schema.
struct ResultDef {
  std::string_view name;     ///< of its schema: docs/schema/<name>.schema.json
  std::string_view command;  ///< that writes it
  const RecordDef* record;
};
std::span<const ResultDef> results();

}  // namespace tilecast
