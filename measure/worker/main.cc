// The kit's worker: reads a request a line on stdin, answers a line on stdout. It knows nothing of
// campaigns: which cases, in which order, for how long and where results go is measure/kit's.
// Requests (fields, see request.h):
//   do=facts                          the card, driver and libraries
//   do=time family=… op=… …           times one operation; l2=cold|warm, load=burst|sustained
//   do=verify family=… op=… …         compares the result with the operator's definition
//   do=release                        gives all device memory back
// Answers carry status: ok, unsupported, out_of_memory, failed; after `lost=1` the process ends.

#include <cstdio>
#include <iostream>
#include <new>

#include "cuda_error.h"
#include "operations.h"
#include "timing.h"

namespace tilecast::measure {

Operation make_operation(Session& session, const Request& request) {
  const std::string op = request.text("op");
  if (op == "gemm" || op == "linear" || op == "matmul") return make_matmul(session, request);
  if (op.starts_with("conv_") || op.starts_with("attention")) return make_cudnn(session, request);
  return make_own_kernel(session, request);
}

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

Fields facts(Session& session) {
  const cudaDeviceProp& card = session.properties();
  int driver = 0, runtime = 0;
  TILECAST_CUDA(cudaDriverGetVersion(&driver));
  TILECAST_CUDA(cudaRuntimeGetVersion(&runtime));
  const auto version = [](int v) {
    return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
  };
  return {{"gpu_name", card.name},
          {"compute_capability", std::to_string(card.major) + "." + std::to_string(card.minor)},
          {"sm_count", std::to_string(card.multiProcessorCount)},
          {"l2_bytes", std::to_string(card.l2CacheSize)},
          {"memory_bytes", std::to_string(card.totalGlobalMem)},
          {"driver", session.nvml().driver_version()},
          {"cuda_driver", version(driver)},
          {"cuda_runtime", version(runtime)},
          {"cublaslt", cublaslt_version()},
          {"cudnn", cudnn_version()},
          {"power_cap_w", number(session.nvml().power_cap_w())},
          {"highest_sm_clock_hz", number(session.nvml().highest_sm_clock_hz())},
          {"highest_memory_clock_hz", number(session.nvml().highest_memory_clock_hz())}};
}

Fields answer(Session& session, const Request& request) {
  const std::string what = request.text("do");
  if (what == "facts") return facts(session);
  if (what == "release") {
    session.release();
    return {};
  }
  if (what == "verify") {
    const std::string difference = verify_operation(session, make_operation(session, request));
    if (difference.empty()) return {};
    return {{"status", difference == "no reference" ? "unsupported" : "failed"},
            {"detail", difference}};
  }
  if (what != "time") throw Unsupported("do: expected facts, time, verify or release");
  if (request.text("family") == "device") return measure_device_fact(session, request);
  return time_operation(session, make_operation(session, request),
                        {.cold_l2 = request.text("l2", "cold") == "cold",
                         .sustained = request.text("load", "burst") == "sustained"});
}

/// Answers one line; false where the process can't go on.
bool serve(Session& session, const std::string& line) {
  Fields fields;
  bool lost = false;
  try {
    fields = answer(session, Request(parse_fields(line)));
    fields.emplace("status", "ok");
  } catch (const Unsupported& error) {
    fields = {{"status", "unsupported"}, {"detail", error.what()}};
  } catch (const CudaError& error) {
    lost = error.lost();
    fields = {{"status", error.code == cudaErrorMemoryAllocation ? "out_of_memory" : "failed"},
              {"detail", error.what()}};
  } catch (const std::bad_alloc&) {
    fields = {{"status", "out_of_memory"}, {"detail", "the host's memory does not hold it"}};
  } catch (const std::exception& error) {
    // A library in an unknown state: a fresh process is safer.
    lost = true;
    fields = {{"status", "failed"}, {"detail", error.what()}};
  }
  if (lost) fields["lost"] = "1";
  std::cout << format_fields(fields) << std::endl;
  return !lost;
}

int run() {
  std::unique_ptr<Session> session;
  try {
    session = std::make_unique<Session>();
  } catch (const std::exception& error) {
    std::cerr << "tilecast_measure: " << error.what() << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    if (!line.empty() && !serve(*session, line)) return 3;
  }
  return 0;
}

}  // namespace
}  // namespace tilecast::measure

int main() { return tilecast::measure::run(); }
