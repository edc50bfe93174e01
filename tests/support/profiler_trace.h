#pragma once

// Events of torch.profiler's traces, as tests write them.

#include <string>

namespace tilecast {

/// A trace of an H100 with these events.
inline std::string h100_trace(const std::string& events) {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3",
 "totalGlobalMem": 85018279936, "numSms": 132}], "record_shapes": 1, "traceEvents": [)" +
         events + R"(], "traceName": "t.json"})";
}

inline std::string op_event(const std::string& name, int id, double ts, double dur,
                            const std::string& arguments) {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 1, "ts": )" +
         std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) +
         R"(, "args": {"External id": )" + std::to_string(id) + ", " + arguments + "}}";
}

inline std::string call_event(const std::string& name, int correlation, double ts, double dur) {
  return R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + name +
         R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(ts) + R"(, "dur": )" +
         std::to_string(dur) + R"(, "args": {"correlation": )" + std::to_string(correlation) + "}}";
}

inline std::string kernel_event(const std::string& name, int id, int correlation, double ts,
                                double dur, int stream = 7) {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 7, "ts": )" +
         std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) +
         R"(, "args": {"External id": )" + std::to_string(id) + R"(, "device": 0, "stream": )" +
         std::to_string(stream) + R"(, "correlation": )" + std::to_string(correlation) +
         R"(, "registers per thread": 32, "grid": [8, 2, 1], "block": [128, 1, 1]}})";
}

inline constexpr const char* kProductArguments =
    R"("Input Dims": [[4096, 1024], [1024, 2048]], "Input type": ["c10::BFloat16",
 "c10::BFloat16"], "Input Strides": [[1024, 1], [1, 1024]], "Concrete Inputs": ["", ""])";

/// Two products: the first 90 us late by the host, the second launched in time.
inline std::string two_products() {
  return h100_trace(op_event("aten::mm", 1, 100, 30, kProductArguments) + ",\n" +
                    call_event("cudaLaunchKernel", 11, 110, 5) + "," +
                    kernel_event("gemm_kernel", 1, 11, 120, 30) + "," +
                    op_event("aten::mm", 2, 125, 10, kProductArguments) + "," +
                    call_event("cudaLaunchKernel", 12, 128, 4) + "," +
                    kernel_event("gemm_kernel", 2, 12, 152, 30));
}

}  // namespace tilecast
