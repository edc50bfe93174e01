#pragma once

// Price tables: what an hour of a GPU costs, a row for each GPU or cluster, with its currency, date
// and source. Those of data/prices come with the program; a CSV file is one, too.

#include <string>
#include <vector>

#include "tilecast/request.h"

namespace tilecast {

/// A row, and where it stands.
struct PriceRow {
  GpuPrice price;
  std::string where;  ///< "prices.csv: line 3", for messages
};

/// Names of the tables that come with the program, sorted.
const std::vector<std::string>& price_table_names();

/// The rows of a table that comes with the program. Throws OptionError with the names of all.
std::vector<PriceRow> find_price_table(const std::string& name);

/// The rows of a CSV file: columns gpu and price_per_gpu_hour, and where there are any currency
/// (three letters), date (2025, 2025-06 or 2025-06-30) and source. Throws Error{kInput} with line
/// and column.
std::vector<PriceRow> parse_price_table(const std::string& content, const std::string& where);

}  // namespace tilecast
