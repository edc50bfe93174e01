// A trace of any content gives requests in the order of their arrival or an Error that is not a
// bug.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "request/load.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    double last_s = 0;
    for (const tilecast::TraceRequest& request :
         tilecast::parse_trace({reinterpret_cast<const char*>(data), size}, "trace.csv")) {
      if (!std::isfinite(request.arrival_s) || request.arrival_s < last_s) std::abort();
      if (request.prompt < 1 || request.output < 1) std::abort();
      last_s = request.arrival_s;
    }
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
    // Messages hold nothing that acts on a terminal.
    if (tilecast::printable_lines(error.what()) != error.what()) std::abort();
  }
  return 0;
}
