#include "timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "cuda_error.h"
#include "graph_facts.h"

namespace tilecast::measure {
namespace {

// A replay lasts about this long: far above the events' resolution (0.5 us) and the graph's start.
constexpr double kReplaySeconds = 1.5e-3;
constexpr int kMostLaunches = 64;
constexpr int kFewestSamples = 5, kMostSamples = 41;
// Sustained: power and clocks settle within about a second (NVML's power is a one-second mean).
constexpr double kSettleSeconds = 1.0, kSustainedSeconds = 1.0;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

/// A captured, instantiated sequence of launches.
class Graph {
 public:
  Graph(Session& session, const Operation& operation, const std::vector<Operands>& sets,
        int launches)
      : stream_(session.stream()) {
    TILECAST_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    try {
      for (int i = 0; i < launches; ++i)
        operation.launch(sets[static_cast<size_t>(i) % sets.size()], stream_);
    } catch (...) {
      // The stream must not stay in capture for the next case.
      cudaStreamEndCapture(stream_, &graph_);
      destroy();
      cudaGetLastError();
      throw;
    }
    TILECAST_CUDA(cudaStreamEndCapture(stream_, &graph_));
    const cudaError_t code = cudaGraphInstantiate(&executable_, graph_, 0);
    if (code != cudaSuccess) {
      destroy();
      check_cuda(code, "cudaGraphInstantiate");
    }
  }
  ~Graph() { destroy(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() { TILECAST_CUDA(cudaGraphLaunch(executable_, stream_)); }
  Fields facts() const { return graph_facts(graph_); }

 private:
  void destroy() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    executable_ = nullptr;
    graph_ = nullptr;
  }

  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

void add_sensors(Fields& fields, const Sensors& sensors) {
  fields["sm_clock_hz"] = text(sensors.sm_clock_hz);
  fields["memory_clock_hz"] = text(sensors.memory_clock_hz);
  fields["power_w"] = text(sensors.power_w);
  fields["temperature_c"] = text(sensors.temperature_c);
  char reasons[24];
  std::snprintf(reasons, sizeof reasons, "0x%llx",
                static_cast<unsigned long long>(sensors.throttle_reasons));
  fields["throttle_reasons"] = reasons;
}

}  // namespace

EventPair::EventPair() {
  TILECAST_CUDA(cudaEventCreate(&start_));
  TILECAST_CUDA(cudaEventCreate(&stop_));
}

EventPair::~EventPair() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}

void EventPair::start(cudaStream_t stream) { TILECAST_CUDA(cudaEventRecord(start_, stream)); }

double EventPair::stop(cudaStream_t stream) {
  TILECAST_CUDA(cudaEventRecord(stop_, stream));
  TILECAST_CUDA(cudaEventSynchronize(stop_));
  float ms = 0;
  TILECAST_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
  return ms * 1e-3;
}

double quantile(std::vector<double> samples, double q) {
  std::sort(samples.begin(), samples.end());
  const double at = q * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

Fields time_operation(Session& session, const Operation& operation, const Protocol& protocol) {
  int64_t set_bytes = 0;
  for (const Region& region : operation.regions) set_bytes += region.bytes() + 256;
  const int64_t usable = session.usable_bytes();
  if (set_bytes > usable)
    throw CudaError(cudaErrorMemoryAllocation, ("operands of " + std::to_string(set_bytes) +
                                                " bytes, " + std::to_string(usable) + " are free")
                                                   .c_str());

  // One set first: how long is a launch?
  std::vector<Operands> sets = session.place(operation.regions, 1);
  EventPair events;
  operation.launch(sets[0], session.stream());  // loads the module, fills the libraries' caches
  TILECAST_CUDA(cudaStreamSynchronize(session.stream()));
  events.start(session.stream());
  operation.launch(sets[0], session.stream());
  const double rough = std::max(events.stop(session.stream()), 1e-6);
  int launches = std::clamp(static_cast<int>(kReplaySeconds / rough), 1, kMostLaunches);

  if (protocol.cold_l2) {
    // Launches of one replay must not meet each other's operands in L2: as many sets as launches,
    // or enough of them to sweep the cache before one comes round again.
    const int64_t sweep = 1 + 3 * int64_t{session.properties().l2CacheSize} / set_bytes;
    const int64_t wanted = std::min<int64_t>(launches, sweep);
    const int64_t fitting = std::max<int64_t>(1, std::min(usable / set_bytes, wanted));
    if (fitting < wanted) launches = static_cast<int>(fitting);
    if (fitting > 1) sets = session.place(operation.regions, fitting);
  }

  Graph graph(session, operation, sets, launches);
  graph.replay();  // uploads the graph
  TILECAST_CUDA(cudaStreamSynchronize(session.stream()));

  std::vector<double> samples;
  Sensors sensors;
  const auto sample = [&] {
    if (protocol.cold_l2) session.flush_l2();
    events.start(session.stream());
    graph.replay();
    samples.push_back(events.stop(session.stream()) / launches);
  };
  if (protocol.sustained) {
    // No flush between replays: the card must stay under this load. A long replay lets the host
    // read the sensors meanwhile.
    const auto load = [&](double seconds) {
      std::vector<double> times;
      for (const auto begin = Clock::now(); seconds_since(begin) < seconds;) {
        events.start(session.stream());
        for (double queued = 0; queued < 0.05; queued += rough * launches) {
          graph.replay();
          times.push_back(0);
        }
        sensors = session.nvml().read();
        const double batch = events.stop(session.stream());
        samples.push_back(batch / static_cast<double>(launches) /
                          static_cast<double>(times.size()));
        times.clear();
      }
    };
    load(kSettleSeconds);
    samples.clear();
    load(kSustainedSeconds);
  } else {
    double total = 0;
    while (static_cast<int>(samples.size()) < kMostSamples &&
           (static_cast<int>(samples.size()) < kFewestSamples || total < protocol.burst_s)) {
      sample();
      total += samples.back() * launches;
    }
    sensors = session.nvml().read();
  }

  Fields fields = operation.facts;
  fields.merge(graph.facts());
  if (const auto count = fields.find("kernel_count"); count != fields.end())
    count->second = text(std::stod(count->second) / launches);
  fields["latency_s"] = text(quantile(samples, 0.5));
  fields["p25_s"] = text(quantile(samples, 0.25));
  fields["p75_s"] = text(quantile(samples, 0.75));
  fields["runs"] = std::to_string(samples.size());
  fields["launches"] = std::to_string(launches);
  fields["l2"] = protocol.cold_l2 ? "cold" : "warm";
  fields["load"] = protocol.sustained ? "sustained" : "burst";
  add_sensors(fields, sensors);
  return fields;
}

std::string verify_operation(Session& session, const Operation& operation) {
  if (!operation.reference) return "no reference";
  const Operands operands = session.place(operation.regions, 1).front();
  std::vector<std::vector<double>> inputs;
  for (size_t i = 0; i < operation.regions.size(); ++i) {
    if (!operation.regions[i].output)
      inputs.push_back(read_region(operation.regions[i], operands[i]));
  }
  operation.launch(operands, session.stream());
  TILECAST_CUDA(cudaStreamSynchronize(session.stream()));
  const std::vector<double> found = read_region(operation.regions.back(), operands.back());
  const std::vector<double> expected = operation.reference(inputs);
  if (found.size() != expected.size()) return "the reference has another size";
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    // Written so that a NaN fails.
    if (!(std::abs(found[i] - expected[i]) <= operation.tolerance * std::max(largest, 1e-30)))
      return "element " + std::to_string(i) + ": expected " + text(expected[i]) + ", found " +
             text(found[i]);
  }
  return "";
}

}  // namespace tilecast::measure
