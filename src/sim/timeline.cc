#include "sim/timeline.h"

#include "sim/stream.h"

namespace tilecast {

double Timeline::phase_s(Phase phase) const {
  double seconds = 0;
  for (const Span& span : spans) {
    if (span.phase == phase) seconds += span.end_s - span.start_s;
  }
  return seconds;
}

Timeline simulate(const Program& program, std::span<const double> kernel_s, double host_launch_s) {
  Timeline timeline;
  timeline.events.reserve(program.launches.size());
  timeline.spans.reserve(program.blocks.size());
  HostFedStream stream(host_launch_s);
  for (const Block& block : program.blocks) {
    HostFedStream::Sequence body;
    const double start_s = stream.end_s();
    for (size_t i = block.first_launch; i < block.first_launch + block.launch_count; ++i) {
      const Launch& launch = program.launches[i];
      const double seconds = kernel_s[launch.kernel];
      stream.append(body, seconds, program.kernels[launch.kernel].host);
      timeline.events.push_back({.launch = i,
                                 .kernel = launch.kernel,
                                 .start_s = stream.end_after(body) - seconds,
                                 .duration_s = seconds,
                                 .count = block.repeat,
                                 .stream = launch.stream,
                                 .rank = launch.rank});
    }
    stream.run(body, block.repeat);
    timeline.spans.push_back({block.phase, start_s, stream.end_s()});
  }
  return timeline;
}

}  // namespace tilecast
