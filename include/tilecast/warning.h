#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tilecast {

/// What a warning is about, with its subject and facts. `warning_code_name` (report.h) gives the
/// word that JSON has for it.
enum class WarningCode {
  /// What a reader of files takes to be so. Subject: model or device; message.
  kModelFile,
  kCheckpoint,
  kDeviceFile,
  /// The device has no unit for the type of the checkpoint. Subject: device; requested, used.
  kDtypeReplaced,
  /// Training of a checkpoint in low precision. Subject: model; scheme, source, used.
  kQuantizationIgnored,
  /// The device cannot multiply what the checkpoint stores. Subject: device; scheme, source,
  /// compute_dtype, weight_bits, dtype, used, known (1: serving software has such kernels).
  kSchemeReplaced,
  /// The same of the cache. Subject: device; requested, source, used.
  kCacheDtypeReplaced,
  /// `share` of the time is outside the training range. Subject: the step, "" for a pass.
  kExtrapolated,
  /// The weights hold no model of some kernels: `share` of the time is the data sheet's roofline.
  /// Subject: the step, "" for a pass; kernels.
  kNoModel,
  /// `share` of the time the GPU waits for the host. Subject: the step, "" for a pass; for a step
  /// cuda_graphs (1: in use).
  kHostWait,
  /// Experts in low precision take longer by `share` than in 16 bits. Subject: the step, "" for a
  /// pass; scheme, dtype, software, device.
  kSlowerExperts,
  /// Subject: device; needed_bytes, usable_bytes, device_bytes; largest_batch where it was asked
  /// for (0: not even one sequence); token by token ranks and utilization.
  kDoesNotFit,
  /// Lengths were given beside a trace, which has its own.
  kLengthsIgnored,
  /// More clients than requests: clients, requests.
  kIdleClients,
  /// The server does not keep up. Subject: "rate" or "trace"; rate, answered (requests a second).
  kOverloaded,
};

/// A detail of a warning. Units stand in the name.
struct WarningFact {
  std::string name;
  std::variant<int64_t, double, std::string> value;
};

/// Something that whoever reads the forecast should know. The sentence is made by `warning_text`
/// (report.h).
struct Warning {
  WarningCode code = WarningCode::kModelFile;
  std::string subject;
  double share = 0;  ///< a ratio; 0 where the code has none
  std::vector<WarningFact> facts;
};

}  // namespace tilecast
