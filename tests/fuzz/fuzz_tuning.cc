// Rule files, databases, problems and driver logs of any content are read or give an Error that is
// not a bug.

#include <cstdint>
#include <string_view>

#include "tilecast/error.h"
#include "tuning/conv_problem.h"
#include "tuning/database.h"
#include "tuning/gemm_problem.h"
#include "tuning/rules.h"

namespace {

template <typename Function>
void try_reading(Function read) {
  try {
    read();
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilecast::tuning;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_reading([&] { RuleFile::parse(text, "f"); });
  try_reading([&] { parse_problem(text, "f"); });
  try_reading([&] { parse_gemm(text, "f"); });
  try_reading([&] { parse_driver_log(text, "f"); });
  try_reading([&] { format_find_database(parse_find_database(text, "f")); });
  try_reading([&] { format_perf_database(parse_perf_database(text, "f")); });
  return 0;
}
