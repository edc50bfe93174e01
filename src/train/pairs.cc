#include <algorithm>
#include <bit>
#include <cmath>

#include "base/rng.h"
#include "devices/registry.h"
#include "ops/shapes.h"
#include "train/fold.h"

// Pairs of kernels that nobody measured, of which the larger does more work.

namespace tilecast {
namespace {

/// Pairs that a network of a fold is held to grow on.
constexpr size_t kPairsOfNet = 32768;

int trailing_zeros(int64_t x) { return std::countr_zero(static_cast<uint64_t>(x)); }

int64_t log_uniform(Rng& rng, int bits) {
  return static_cast<int64_t>(std::exp2(rng.uniform() * bits));
}

/// Log-uniform sizes, wider than what is measured: they say where a law has to be sane.
KernelShape draw_shape(std::string_view op, Rng& rng) {
  KernelShape shape{log_uniform(rng, 7), log_uniform(rng, 14), log_uniform(rng, 14),
                    log_uniform(rng, 13)};
  if (op == "attention" || op == "cached_attention") {
    constexpr std::array<int64_t, 4> kHeadSizes = {64, 128, 192, 256};
    shape.k = kHeadSizes[rng.below(kHeadSizes.size())];
    shape.kv_heads = log_uniform(rng, 5);
    shape.heads = shape.kv_heads * (int64_t{1} << rng.below(5));
    shape.causal = op == "attention" && rng.below(2) == 0;
    shape.m = op == "attention" ? shape.n : 1;
    shape.n += 1;
    if (rng.below(4) == 0) shape.window = 128 << rng.below(7);
  } else if (op == "experts") {
    shape.experts = int64_t{8} << rng.below(7);
    shape.chosen = std::min<int64_t>(shape.experts, 1 + static_cast<int64_t>(rng.below(16)));
    shape.n = 64 * log_uniform(rng, 8);
    shape.k = 1024 * (1 + static_cast<int64_t>(rng.below(8)));
    constexpr std::array<Scheme, 4> kSchemes = {Scheme::kNone, Scheme::kFp8, Scheme::kFp8Block,
                                                Scheme::kInt4WeightOnly};
    shape.scheme = kSchemes[rng.below(kSchemes.size())];
  } else if (op == "quantized_linear") {
    constexpr std::array<Scheme, 3> kSchemes = {Scheme::kFp8, Scheme::kFp8Block,
                                                Scheme::kInt4WeightOnly};
    shape.scheme = kSchemes[rng.below(kSchemes.size())];
  }
  return shape;
}

/// The dimensions of which more is more work, whatever the kernel.
std::vector<int64_t*> growing(std::string_view op, KernelShape& s) {
  if (op == "attention") return {&s.batch, &s.m, &s.n};
  if (op == "cached_attention") return {&s.batch, &s.n};
  if (op == "experts") return {&s.m, &s.n, &s.k};
  return {&s.batch, &s.m, &s.n, &s.k};
}

void fill_pairs(FoldPart& smaller, FoldPart& larger, const Weights& weights, NetKind kind,
                const std::vector<const Device*>& devices, Rng rng) {
  const std::vector<const char*>& ops = net_def(kind).pair_ops;
  const std::vector<DType>& dtypes = net_def(kind).pair_dtypes;
  while (smaller.rows.count() < kPairsOfNet) {
    const size_t d = rng.below(devices.size());
    const DType dtype = dtypes[rng.below(dtypes.size())];
    const char* op = ops[rng.below(ops.size())];
    const KernelShape shape = draw_shape(op, rng);
    KernelShape grown = shape;
    const std::vector<int64_t*> sizes = growing(op, grown);
    int64_t& one = *sizes[rng.below(sizes.size())];
    const int before = trailing_zeros(one);
    const uint64_t how = rng.below(3);
    one = how == 0 ? one * 2 : how == 1 ? one + 1 : one + 1 + log_uniform(rng, 3) * one / 2;
    // A library really may get faster where a dimension gets better aligned.
    if (how > 0 && trailing_zeros(one) > before) continue;
    if (grown.causal && grown.m > grown.n) grown.n = grown.m;
    const std::vector<Kernel> small = kernels_of_shape(op, dtype, shape);
    const std::vector<Kernel> large = kernels_of_shape(op, dtype, grown);
    for (size_t i = 0; i < small.size(); ++i) {
      if (small[i] == large[i] || find_net(small[i]) != kind || find_net(large[i]) != kind)
        continue;
      if (!has_unit_for(small[i], *devices[d])) continue;
      for (const auto& [part, kernel] :
           {std::pair{&smaller, &small[i]}, std::pair{&larger, &large[i]}}) {
        append_kernel(*part, weights, kind, *kernel,
                      features_of(weights, kind, *kernel, *devices[d], {}), *devices[d]);
        part->device.push_back(d);
      }
    }
  }
}

}  // namespace

void fill_all_pairs(Fold& fold, NetKind kind, const TrainingData& data, uint64_t seed) {
  FoldNet& rows = fold.net(kind);
  const size_t width = feature_names(kind).size();
  const size_t shared = net_def(kind).shared;
  const Rng rng(seed * 31 + static_cast<uint64_t>(kind));
  const std::vector<Device> all = bundled_devices();
  std::vector<const Device*> sheets, measured;
  for (const Device& device : all) {
    if (!fold.left_out || device.id != data.devices[*fold.left_out].id) sheets.push_back(&device);
  }
  std::vector<size_t> index;  // of the measured ones, into data.devices
  for (size_t d = 0; d < data.devices.size(); ++d) {
    const auto has = [&](const FoldPart& part) {
      return std::find(part.device.begin(), part.device.end(), d) != part.device.end();
    };
    if (!has(rows.train) && !has(rows.left)) continue;
    measured.push_back(&data.devices[d]);
    index.push_back(d);
  }
  FoldPart smaller{.rows = {.width = width, .lowest_logit = net_def(kind).lowest_logit}};
  FoldPart larger = smaller;
  rows.smaller = smaller;
  rows.larger = larger;
  fill_pairs(smaller, larger, fold.weights, kind, sheets, rng);
  const std::vector<bool> every(smaller.device.size(), true);
  rows.shared_pairs = {narrowed(smaller.rows, shared, every), narrowed(larger.rows, shared, every)};
  if (net_def(kind).learning.forests) return;  // forests know no pairs
  fill_pairs(rows.smaller, rows.larger, fold.weights, kind, measured, rng);
  for (FoldPart* part : {&rows.smaller, &rows.larger}) {
    for (size_t& d : part->device) d = index[d];
  }
}

}  // namespace tilecast
