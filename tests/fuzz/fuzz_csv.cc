// A CSV file of any content gives rows as wide as their header or an Error that is not a bug.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/csv.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace {

template <typename Function>
void try_reading(Function read) {
  try {
    read();
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
    // Messages hold nothing that acts on a terminal.
    if (tilecast::printable_lines(error.what()) != error.what()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try_reading([&] {
    const tilecast::CsvTable table =
        tilecast::parse_csv({reinterpret_cast<const char*>(data), size}, "t.csv");
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (table.rows[r].size() != table.header.size()) std::abort();
      for (size_t c = 0; c < table.header.size(); ++c) {
        try_reading([&] {
          if (!std::isfinite(table.number(r, c))) std::abort();
        });
        try_reading([&] {
          if (table.integer(r, c) < 0) std::abort();
        });
      }
    }
  });
  return 0;
}
