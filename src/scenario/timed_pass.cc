#include "scenario/timed_pass.h"

#include <utility>

#include "ops/op_def.h"
#include "predict/unmeasured.h"

namespace tilecast {
namespace {

/// Imported graphs have kernels of operators that the table lacks, or that it has under this name
/// only: the node says so, the kernel does not.
void mark_traced_operators(const Program& program, const IntervalConstants& constants,
                           std::vector<KernelTime>& times) {
  static const OpId stream = require_op("stream");
  for (const Launch& launch : program.launches) {
    const Node& node = *launch.node;
    if (node.op != stream) continue;
    if (node.find_attribute("unmeasured") != nullptr || node.find_attribute("unmapped") != nullptr)
      mark_unmeasured(program.kernels[launch.kernel], constants, times[launch.kernel]);
  }
}

/// How often each kernel runs in the forward and backward pass, which all micro-batches repeat.
std::vector<double> counts_of_passes(const Program& program) {
  std::vector<double> counts(program.kernels.size(), 0);
  for (const Launch& launch : program.launches) {
    if (launch.node->phase != Phase::kOptimizer)
      counts[launch.kernel] += static_cast<double>(program.count(launch));
  }
  return counts;
}

}  // namespace

TimingSetup timing_setup(const PassSetup& setup, const Predictor& predictor) {
  const Execution& execution = setup.request.execution;
  return {.execution = execution,
          .predictor = predictor,
          .device = setup.device,
          .conditions = conditions_of(execution, setup.device),
          .power_cap_w = setup.request.energy.power_cap_w,
          .host = host_rates(setup, predictor.laws())};
}

void run_kernels(TimedPass& pass, const TimingSetup& setup) {
  const Program& program = pass.program();
  const PowerTerms power = setup.power();
  const std::optional<BoardPower> board = power.board();
  if (board)
    add_energies(*board, program.kernels, setup.conditions, power.clock_share(), pass.times);
  pass.timeline = run_program(program, pass.times, setup.host_launch_s());
  if (!board || !power.holds()) return;
  const double elapsed_s =
      pass.timeline.phase_s(Phase::kForward) + pass.timeline.phase_s(Phase::kBackward);
  hold_power(*board, {program.kernels, counts_of_passes(program), elapsed_s}, pass.times);
  pass.timeline = run_program(program, pass.times, setup.host_launch_s());
}

TimedPass time_pass(std::shared_ptr<const PassWork> work, const TimingSetup& setup) {
  TimedPass pass{.work = std::move(work)};
  const Program& program = pass.program();
  pass.times.resize(program.kernels.size());
  setup.predictor.predict(program.kernels, setup.device, setup.conditions, pass.times);
  mark_traced_operators(program, setup.predictor.laws().intervals, pass.times);
  price_host_work(program, setup.host, pass.times);
  if (setup.price_collectives) setup.price_collectives(program, pass.times);
  run_kernels(pass, setup);
  pass.totals = totals_of(pass.timeline, program.kernel_counts(), pass.times);
  return pass;
}

}  // namespace tilecast
