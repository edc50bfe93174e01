// Builds with TILECAST_TUNING=OFF have this file in place of the others of its folder.

#include "base/left_out.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_tuning() { fail_left_out("tuning", "TILECAST_TUNING"); }

}  // namespace

bool is_tune_problem(const std::string&) { refuse_tuning(); }
bool is_product_problem(const std::string&) { refuse_tuning(); }
void check_tune_problem(const std::string&) { refuse_tuning(); }

TuneForecast tune_problem(const std::string&, const GpuRef&, const TuneOptions&) {
  refuse_tuning();
}
ProductForecast tune_product(const std::string&, const GpuRef&, const TuneOptions&) {
  refuse_tuning();
}

std::vector<TuneForecast> tune_model(const ModelRef&, const GpuRef&, const Request&,
                                     const TuneOptions&, std::vector<std::string>&) {
  refuse_tuning();
}

std::vector<TuneForecast> tune_log(const std::string&, const GpuRef&, const TuneOptions&,
                                   std::vector<std::string>&) {
  refuse_tuning();
}

std::string find_database(const std::vector<TuneForecast>&) { refuse_tuning(); }
std::string perf_database(const std::vector<TuneForecast>&) { refuse_tuning(); }

}  // namespace tilecast
