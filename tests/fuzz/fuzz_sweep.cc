// The spec of a sweep of any content either gives points, each made without the others, or an Error
// that is not a bug.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "many/sweep_spec.h"
#include "tilecast/error.h"

namespace {

/// A point has a value in each column, the same whenever it is asked for.
void check_point(const tilecast::SweepSpec& spec, size_t point) {
  for (const tilecast::SweepColumn& column : spec.columns()) {
    if (spec.text_at(column, point) != spec.text_at(column, point)) std::abort();
    if (spec.code_at(column, point) != spec.code_at(column, point)) std::abort();
  }
  spec.accepts(point);
}

}  // namespace

extern int fuzz_accepted;
int fuzz_accepted = 0;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Names are those of bundled models and devices: no file of this machine is read.
  const tilecast::LimitScope limits({.memory_bytes = {}, .seconds = 10, .files = false});
  try {
    const tilecast::SweepSpec spec({reinterpret_cast<const char*>(data), size}, "sweep.json");
    if (spec.size() < 1 || static_cast<double>(spec.size()) > tilecast::SweepSpec::kMostPoints)
      std::abort();
    for (const size_t point : {size_t{0}, spec.size() / 3, spec.size() / 2, spec.size() - 1}) {
      check_point(spec, point);
      check_point(spec, spec.index_at(point));
    }
    ++fuzz_accepted;
  } catch (const tilecast::LimitReached&) {
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
