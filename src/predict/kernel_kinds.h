#pragma once

// The kinds of kernels that have a learned model, each with its features. The parts of a kind
// stand in one file, kind_*.cc, and its line in the table of kernel_kinds.cc.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/kernel.h"
#include "predict/law.h"

namespace tilecast {

/// The learned models: one per kind of kernel. Matrix products in single precision share one, those
/// in other types (tensor cores) another, all kernels that only stream memory a third.
enum class KernelKind : uint8_t {
  kMatmul,
  kCausalConv,
  kElementwise,
  kSoftmax,
  kLayerNorm,
  kTensorMatmul,
  kAttention,
  kDecodeAttention,
  kExperts,
  kScan,
  kScanStep,
  kConvolution,
  kBlockRows
};
inline constexpr size_t kKernelKindCount = 13;

/// Most features that any kind has.
inline constexpr size_t kMaxFeatures = 32;
using Features = std::array<float, kMaxFeatures>;

/// Name of a feature, and how it is computed from what its kind prepares.
template <class Inputs>
struct Feature {
  std::string_view name;
  float (*value)(const Inputs&);
};

/// The features of a kind, in one list or several. All are constexpr arrays, so the calls are
/// direct.
template <const auto&... kLists>
struct FeatureTable {
  static_assert((kLists.size() + ...) <= kMaxFeatures);

  static std::vector<std::string_view> names() {
    std::vector<std::string_view> all;
    const auto append = [&](const auto& features) {
      for (const auto& feature : features) all.push_back(feature.name);
    };
    (append(kLists), ...);
    return all;
  }
  template <class Inputs>
  static Features values(const Inputs& x) {
    Features all{};
    float* out = all.data();
    (fill<kLists>(x, out, std::make_index_sequence<kLists.size()>()), ...);
    return all;
  }

 private:
  /// Writes the features of one list and moves `out` behind them.
  template <const auto& kFeatures, class Inputs, size_t... I>
  static void fill(const Inputs& x, float*& out, std::index_sequence<I...>) {
    ((out[I] = kFeatures[I].value(x)), ...);
    out += sizeof...(I);
  }
};

/// How training learns a kind.
struct Learning {
  /// Measured in whole layers, many rows each, which are held out together; rows that are faster
  /// than the data sheet allows are left out.
  bool from_layers = false;
  /// Whether a device of an architecture that was not measured takes the residual of one with the
  /// same matrix instruction and kind of memory, if there is one: software has the same kernels for
  /// both.
  bool borrows = false;
  /// Whether PyTorch's kernels differ from serving software's, so that a residual of one says
  /// nothing about the other.
  bool apart = false;
  /// Whether the power of a board holds its kernels back: where one device of a class was measured,
  /// what its residual adds does not count on a device that has more power for its rate.
  bool limited_by_power = false;
};
inline constexpr Learning kLearnedFromLayers = {.from_layers = true, .borrows = true};

/// Definition of the model of a kind: the only place that knows it.
struct KernelKindDef {
  std::string_view name;
  /// The kernels that it is for; the first kind in the table counts.
  bool (*covers)(const Kernel&) = nullptr;
  Law law = nullptr;
  /// Whether forecasts take all operands from DRAM; else what fits into L2 may come from there, as
  /// it does when operators follow one another.
  bool cold = false;
  /// Features of the residual. They describe the kernel and its conditions alone: the device counts
  /// in the law, so that a device with more of everything is never slower than one of its class.
  std::vector<std::string_view> features;
  Learning learning;
  Features (*make)(const Kernel&, const Conditions&) = nullptr;
};

const KernelKindDef& kernel_kind_def(KernelKind kind);
std::string_view kernel_kind_name(KernelKind kind);
const std::vector<std::string_view>& feature_names(KernelKind kind);

/// The kind that learns a kernel; nullopt where none does.
std::optional<KernelKind> find_kernel_kind(const Kernel& kernel);
/// The same where there must be one.
KernelKind kernel_kind(const Kernel& kernel);

// The kinds, one file for each that has its own features.
KernelKindDef convolution_kind();
KernelKindDef matmul_kind();
KernelKindDef tensor_matmul_kind();
KernelKindDef elementwise_kind();
KernelKindDef softmax_kind();
KernelKindDef layer_norm_kind();
KernelKindDef attention_kind();
KernelKindDef decode_attention_kind();
KernelKindDef experts_kind();
KernelKindDef causal_conv_kind();
KernelKindDef scan_kind();
KernelKindDef scan_step_kind();
KernelKindDef block_rows_kind();

}  // namespace tilecast
