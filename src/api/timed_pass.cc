#include "api/timed_pass.h"

#include <utility>

namespace tilecast {

TimedPass time_pass(Graph graph, const TimingSetup& setup) {
  TimedPass pass;
  pass.graph = std::move(graph);
  pass.program = lower(pass.graph);
  pass.times.resize(pass.program.kernels.size());
  setup.predictor.predict(pass.program.kernels, setup.device, setup.conditions, pass.times);
  if (setup.price_collectives) setup.price_collectives(pass.program, pass.times);
  pass.timeline = run_program(pass.program, pass.times, setup.host_launch_s());
  pass.totals = totals_of(pass.timeline, pass.program.kernel_counts(), pass.times);
  return pass;
}

}  // namespace tilecast
