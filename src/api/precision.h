#pragma once

// What a forecast computes in: as asked, else as the checkpoint says, else a default; as far as the
// device can.

#include <functional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "importers/model.h"
#include "passes/passes.h"
#include "tilecast/warning.h"

namespace tilecast {

struct Precision {
  /// Of weights and activations; with autocast, of matrix products, convolutions and attention.
  DType dtype = DType::kFp32;
  SchemeOf scheme_of;                       ///< null: nothing is in few bits
  QuantScheme scheme = QuantScheme::kNone;  ///< of most weights
  bool autocast = false;
  std::string name;    ///< as in options and output
  std::string source;  ///< "asked", "default", "graph", or the field of the config that says so
  std::vector<Warning> warnings;
};

struct PrecisionRequest {
  std::string asked;              ///< one of `precision_names`; "": as the checkpoint says
  DType fallback = DType::kFp32;  ///< where the checkpoint says nothing
  bool training = false;
};

/// Throws Error{kUnsupported} where the device, the model's file or training does not allow what is
/// asked, or where the checkpoint's types are not known.
Precision resolve_precision(const Model& model, const Device& device,
                            const PrecisionRequest& request);

/// The cache's type: the checkpoint's where its types are used, else that of the activations.
DType cache_dtype(const Model& model, const Device& device, Precision& precision);

}  // namespace tilecast
