#include "api/timed_pass.h"

#include <utility>

namespace tilecast {

TimedPass time_pass(std::shared_ptr<const PassWork> work, const TimingSetup& setup) {
  TimedPass pass{.work = std::move(work)};
  const Program& program = pass.program();
  pass.times.resize(program.kernels.size());
  setup.predictor.predict(program.kernels, setup.device, setup.conditions, pass.times);
  if (setup.price_collectives) setup.price_collectives(program, pass.times);
  pass.timeline = run_program(program, pass.times, setup.host_launch_s());
  pass.totals = totals_of(pass.timeline, program.kernel_counts(), pass.times);
  return pass;
}

}  // namespace tilecast
