#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "ops/kernel.h"
#include "predict/conditions.h"
#include "predict/tiles.h"

namespace tilecast {

/// The learned networks: one per kind of law. Matrix products in single precision share one, those
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

/// What a kind of law is made of: the only place that knows it.
struct NetDef {
  std::string_view name;
  /// Free of units, so that they carry over to devices of another size; absolute times and raw
  /// rates would name the few devices that were measured (docs/accuracy.md, what was tried).
  std::vector<std::string_view> features;
  /// The first so many are what the law shared by all devices sees; corrections to single devices
  /// see all.
  size_t shared = 0;
  /// The lowest logit of utilization: where a network extrapolates it has no other floor.
  float lowest_logit = -5.0f;
  /// Whether what the kernels take beside their bound (launch, filling the pipeline, the first
  /// loads) is counted in cycles; else in seconds.
  bool counts_cycles = false;
  /// Whether measurements hold whole layers, many rows each: then rows of a layer are held out
  /// together, and corrections are forests (predict/forest.h), one for each software.
  bool by_layer = false;
  /// Operators that are drawn for pairs of unmeasured kernels (train/trainer.h).
  std::vector<const char*> pair_ops;
  Features (*make)(const Kernel&, const Device&, const Conditions&, const Bound&, Tile) = nullptr;
};

const NetDef& net_def(NetKind kind);

// The kinds, one file for each that has its own features.
NetDef matmul_net();
NetDef tensor_matmul_net();
NetDef elementwise_net();
NetDef row_net(std::string_view name, const char* op);
NetDef attention_net();
NetDef decode_attention_net();
NetDef experts_net();

// What the files share.

/// 1 where it holds.
float flag(bool value);

/// log2 of a number that may be 0.
float log2_of(double x);

/// log2 of the largest power of two up to 2^limit that divides x, as a share of limit.
float alignment(int64_t x, int limit = 5);

/// Strides of large powers of two fall on the same memory channels and cache sets.
inline constexpr int kStrideBits = 12;

/// Filled share of blocks of `block` that cover `size`.
float fill_of(int64_t size, int64_t block);

}  // namespace tilecast
