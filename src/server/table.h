#pragma once

// Tables of forecasts: lines in, a line out for each, made block by block.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "server/message.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"

namespace tilecast::server {

struct TableWork {
  Limits limits;  ///< the time is that of all blocks together, the memory that of one
  ShowProgress show_progress;
};

/// Whether it asks for a table, whose body may be larger than others.
bool is_table(std::string_view target);

/// JSON lines or CSV, by the request's content type or its first character; the answer's are by
/// what it accepts, else as the request's. A row that cannot be forecast has an `error`. `fields`:
/// of ForecastTotals, all if there are none. Throws Error{kInput} for a field or a column of a
/// header that there is not.
HttpResponse table_answer(std::shared_ptr<const Forecaster> forecaster, const HttpRequest& request,
                          std::vector<std::string> fields, TableWork work);

}  // namespace tilecast::server
