// Builds with TILECAST_ACCELERATOR=OFF have this file in place of the others of its folder:
// accelerators are known by name, and whoever asks for one is told what is missing.

#include "base/left_out.h"
#include "scenario/accelerator/accelerator_scenario.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_accelerators() { fail_left_out("accelerators", "TILECAST_ACCELERATOR"); }

}  // namespace

std::vector<std::string> accelerator_ids() { return accelerator::bundled_accelerators(); }

void set_mapping(AcceleratorOptions& options, const std::string& text_or_path) {
  options.mapping = text_or_path;
}

void check_runs_on_accelerators(const Request&) { refuse_accelerators(); }
std::string timing_key(const AcceleratorRef&) { refuse_accelerators(); }
Result run_accelerator(const Inquiry&) { refuse_accelerators(); }

AcceleratorForecast forecast_accelerator(const ModelRef&, const std::string&, const Request&,
                                         const AcceleratorOptions&) {
  refuse_accelerators();
}

std::string accelerator_mappings(const AcceleratorForecast&) { refuse_accelerators(); }

AcceleratorOccupancy accelerator_occupancy(const ModelRef&, const std::string&, const Request&,
                                           const AcceleratorOptions&) {
  refuse_accelerators();
}

}  // namespace tilecast
