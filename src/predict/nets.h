#pragma once

// The kinds of kernels that have a learned model, each with its features. What a kind is made of
// stands in one file, net_*.cc, and its line in the table of nets.cc.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "ops/kernel.h"
#include "predict/conditions.h"
#include "predict/tiles.h"

namespace tilecast {

/// The learned models: one per kind of kernel. Matrix products in single precision share one, those
/// in other types (tensor cores) another, all kernels that only stream memory a third.
enum class NetKind : uint8_t {
  kMatmul,
  kElementwise,
  kSoftmax,
  kLayerNorm,
  kTensorMatmul,
  kAttention,
  kDecodeAttention,
  kExperts
};
inline constexpr size_t kNetCount = 8;

/// Most features that any network reads.
inline constexpr size_t kMaxFeatures = 32;
using Features = std::array<float, kMaxFeatures>;

struct Bound;

/// What a feature is called, and how it is computed from what its kind prepares. Free of units, so
/// that it carries over to devices of another size; absolute times and raw rates would name the few
/// devices that were measured (docs/accuracy.md, what was tried).
template <class Inputs>
struct Feature {
  std::string_view name;
  float (*value)(const Inputs&);
};

/// The features of a kind: those that its base model sees, then those that only device residuals
/// see, in one list or several. All are constexpr arrays, so the calls are direct.
template <const auto& kBase, const auto&... kOwn>
struct FeatureTable {
  static constexpr size_t kBaseCount = kBase.size();
  static_assert((kBase.size() + ... + kOwn.size()) <= kMaxFeatures);

  static std::vector<std::string_view> names() {
    std::vector<std::string_view> all;
    const auto append = [&](const auto& features) {
      for (const auto& feature : features) all.push_back(feature.name);
    };
    append(kBase);
    (append(kOwn), ...);
    return all;
  }
  template <class Inputs>
  static Features values(const Inputs& x) {
    Features all{};
    float* out = all.data();
    fill<kBase>(x, out, std::make_index_sequence<kBase.size()>());
    (fill<kOwn>(x, out, std::make_index_sequence<kOwn.size()>()), ...);
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

/// Where the operands of a kind's measured kernels lay, which is what its model means.
enum class MeasuredCaches : uint8_t {
  kUnknown,   ///< calls one by one: at best all of L2 is warm
  kCold,      ///< everything came from DRAM
  kReplayed,  ///< what fits L2 was warm; a cold kernel takes longer
};

/// How training learns a kind.
struct Learning {
  bool forests = false;           ///< residuals are forests, one for each software; else networks
  bool small_base_model = false;  ///< half the units, a fifth of the epochs
  bool thins_base_rows = false;   ///< the base model learns from a draw of the rows (fold.cc)
  bool keeps_layers = false;      ///< rows of a layer are held out together
  bool drops_rows_below_bound = false;  ///< rows faster than Bound::law_s are left out
};
/// For what was measured in whole layers, many rows each, on few devices: the base model is kept
/// simple, and forests hold what is each device's and software's own.
inline constexpr Learning kLearnedFromLayers = {.forests = true,
                                                .small_base_model = true,
                                                .thins_base_rows = true,
                                                .keeps_layers = true,
                                                .drops_rows_below_bound = true};

/// What the model of a kind is made of: the only place that knows it.
struct NetDef {
  std::string_view name;
  /// The kernels that it is for; the first kind in the table counts.
  bool (*covers)(const Kernel&) = nullptr;
  std::vector<std::string_view> features;
  /// The first so many are what the base model, which all devices share, sees.
  size_t base_features = 0;
  /// The lowest logit of utilization: where a network extrapolates it has no other floor.
  float lowest_logit = -5.0f;
  /// Whether what the kernels take beside their bound (launch, filling the pipeline, the first
  /// loads) is counted in cycles; else in seconds.
  bool counts_cycles = false;
  MeasuredCaches caches = MeasuredCaches::kUnknown;
  /// Whether profiles tell which tiles the library picks; else the usual one is shown.
  bool profiled_tiles = false;
  Learning learning;
  /// Types in which pairs of unmeasured kernels are drawn (train/trainer.h).
  std::vector<DType> pair_dtypes;
  Features (*make)(const Kernel&, const Device&, const Conditions&, const Bound&, Tile) = nullptr;
};

const NetDef& net_def(NetKind kind);
std::string_view net_name(NetKind kind);
const std::vector<std::string_view>& feature_names(NetKind kind);

/// The kind that learns a kernel; nullopt where none does.
std::optional<NetKind> find_net(const Kernel& kernel);
/// The same where there must be one.
NetKind net_of(const Kernel& kernel);

// The kinds, one file for each that has its own features.
NetDef matmul_net();
NetDef tensor_matmul_net();
NetDef elementwise_net();
NetDef softmax_net();
NetDef layer_norm_net();
NetDef attention_net();
NetDef decode_attention_net();
NetDef experts_net();

}  // namespace tilecast
