// Lists of embedding tables of any content are read whole or refused with an Error that is not a
// bug.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "embedding/tables.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tilecast::Json json =
        tilecast::parse_json({reinterpret_cast<const char*>(data), size}, "tables.json");
    const tilecast::TableSet set = tilecast::read_tables(tilecast::JsonObject(json, "tables.json"));
    for (const tilecast::EmbeddingTable& table : set.tables) {
      if (table.rows < 1 || table.dim < 1 || !std::isfinite(table.pooling)) std::abort();
    }
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
