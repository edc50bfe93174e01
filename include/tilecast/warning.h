#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tilecast {

/// The subject of a warning. The comments list the subject and the facts of each code.
/// `warning_code_name` gives its name in JSON.
enum class WarningCode {
  /// An assumption made while reading a file. Subject: model or device. Facts: message.
  kModelFile,
  kCheckpoint,
  kDeviceFile,
  /// The device does not support the dtype of the checkpoint. Subject: device. Facts: requested,
  /// used.
  kDtypeReplaced,
  /// Training was requested for a quantized checkpoint. Subject: model. Facts: scheme, source,
  /// used.
  kQuantizationIgnored,
  /// The device does not support the compute dtype of the checkpoint's scheme. Subject: device.
  /// Facts: scheme, source, compute_dtype, weight_bits, dtype, used, known (1: serving software has
  /// kernels for the replacement).
  kSchemeReplaced,
  /// The device does not support the dtype of the checkpoint's KV cache. Subject: device. Facts:
  /// requested, source, used.
  kCacheDtypeReplaced,
  /// `share` of the time belongs to kernels outside the training range. Subject: the step; "" for a
  /// pass.
  kExtrapolated,
  /// `share` of the time belongs to operators without any measured kernel: they are forecast as
  /// kernels of other operators. Subject: "". Facts: message.
  kUnmeasuredOperators,
  /// The weights have no model for some kernels: `share` of the time comes from the roofline.
  /// Subject: the step; "" for a pass. Facts: kernels.
  kNoModel,
  /// The GPU waits for the host for `share` of the time. Subject: the step; "" for a pass. Facts:
  /// for a step, cuda_graphs (1: in use).
  kHostWait,
  /// `share` of the time of a step over several ranks is exposed communication over links on which
  /// no collective was measured. Subject: the cluster, and how many of its GPUs are used.
  kUnmeasuredLinks,
  /// `share` of the time is communication, in part over PCIe, which was measured on one server
  /// only. Subject: as of kUnmeasuredLinks.
  kOneMeasuredServer,
  /// Experts in low precision take longer than in 16 bits, by `share`. Subject: the step; "" for a
  /// pass. Facts: scheme, dtype, software, device.
  kSlowerExperts,
  /// Text generation in the precision that was asked for is no faster than in 16 bits, by `share`
  /// at most. Subject: "". Facts: dtype, reference_dtype, and ttft_s and reference_ttft_s, or
  /// tpot_s and reference_tpot_s, or all four.
  kSlowerPrecision,
  /// The model does not fit into memory. Subject: device. Facts: needed_bytes, usable_bytes,
  /// device_bytes; largest_batch if it was computed (0: not even one sequence fits); for text
  /// generation, ranks, rule, utilization, prefill if it is a prefill worker, and the changes with
  /// which it fits, if there are any:
  /// tp_that_fits, dtype_that_fits, kv_dtype_that_fits, tokens_that_fit, utilization_that_fits.
  kDoesNotFit,
  /// A step over several ranks leaves only `share` of the memory: less than what the allocator may
  /// lose. Subject: device. Facts: free_bytes.
  kTightMemory,
  /// Prompt or output lengths were given together with a trace, which has its own lengths.
  kLengthsIgnored,
  /// There are more clients than requests. Facts: clients, requests.
  kIdleClients,
  /// The server cannot keep up with the load. Subject: "rate" or "trace". Facts: rate, answered
  /// (requests per second).
  kOverloaded,
};

/// A detail of a warning. The name ends in the unit.
struct WarningFact {
  std::string name;
  std::variant<int64_t, double, std::string> value;
};

/// Something that readers of the forecast should know. `warning_text` turns it into a
/// sentence.
struct Warning {
  WarningCode code = WarningCode::kModelFile;
  std::string subject;
  double share = 0;  ///< a ratio; 0 if the code does not use it
  std::vector<WarningFact> facts;
};

/// The sentence that a program shows for a warning.
std::string warning_text(const Warning& warning);
std::vector<std::string> warning_texts(const std::vector<Warning>& warnings);
/// The name of a code in JSON: "extrapolated", "does_not_fit", …
std::string_view warning_code_name(WarningCode code);
std::vector<std::string> warning_code_names(const std::vector<Warning>& warnings);

}  // namespace tilecast
