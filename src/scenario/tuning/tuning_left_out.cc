// Builds with TILECAST_TUNING=OFF have this file in place of the others of its folder.

#include "base/left_out.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

[[noreturn]] void fail() { fail_left_out("tuning", "TILECAST_TUNING"); }

}  // namespace

bool is_tune_problem(const std::string&) { fail(); }
bool is_product_problem(const std::string&) { fail(); }
void check_tune_problem(const std::string&) { fail(); }

TuneForecast tune_problem(const std::string&, const GpuRef&, const TuneOptions&) { fail(); }
ProductForecast tune_product(const std::string&, const GpuRef&, const TuneOptions&) { fail(); }

std::vector<TuneForecast> tune_model(const ModelRef&, const GpuRef&, const Request&,
                                     const TuneOptions&, std::vector<std::string>&) {
  fail();
}

std::vector<TuneForecast> tune_log(const std::string&, const GpuRef&, const TuneOptions&,
                                   std::vector<std::string>&) {
  fail();
}

std::string find_database(const std::vector<TuneForecast>&) { fail(); }
std::string perf_database(const std::vector<TuneForecast>&) { fail(); }

}  // namespace tilecast
