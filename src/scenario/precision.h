#pragma once

// The precision of a forecast: as requested, else the checkpoint's, else a default; replaced if the
// device does not support it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "importers/model.h"
#include "passes/passes.h"
#include "tilecast/result.h"

namespace tilecast {

struct Precision {
  /// Dtype of weights and activations; with autocast, of matrix products, convolutions and
  /// attention.
  DType dtype = DType::kFp32;
  SchemeOf scheme_of;                       ///< null: not quantized
  QuantScheme scheme = QuantScheme::kNone;  ///< the scheme of most weights
  bool autocast = false;
  std::optional<DType> trains_in;  ///< products of training multiply in fp8 or fp4
  /// The device multiplies rows of both operands in this dtype only.
  bool rows_only = false;
  bool as_stored = false;  ///< the weights are the checkpoint's, byte by byte
  std::string name;        ///< its name in options and output
  std::string source;  ///< "asked", "default", "graph", or the field of the config that states it
  std::vector<Warning> warnings;
};

struct PrecisionRequest {
  std::string asked;              ///< one of `precision_names`; "": not given
  DType fallback = DType::kFp32;  ///< used if the checkpoint has no dtype
  bool training = false;
  bool mixed = false;    ///< by default, training of a model in fp32 runs under torch.autocast
  bool serving = false;  ///< checkpoints in fp32 run in the fallback, as by vLLM's `dtype` auto
  bool frozen_weights = false;  ///< training changes adapters only, so weights may be quantized
};

/// Throws Error{kUnsupported} if the device, the model file or training does not allow the
/// requested precision, or if the checkpoint's dtypes are not known.
Precision resolve_precision(const Model& model, const Device& device,
                            const PrecisionRequest& request);

/// Gives the weights of a graph the bytes that the checkpoint stores. `share`: the rank's share of
/// the weights of the whole model; nullopt: all.
void store_as_in_checkpoint(Graph& graph, const Checkpoint& checkpoint,
                            std::optional<double> share);

/// The dtype of the KV cache: the checkpoint's if the checkpoint's dtypes are used, else that of
/// the activations.
DType cache_dtype(const Model& model, const Device& device, Precision& precision);

}  // namespace tilecast
