// Counts, on random kernels over all devices, forecasts that break a law: a time below the physical
// bound, and a time that falls when work grows. A library that changes its kernel may really get
// faster, so falls are told apart by what else changed: the tile, the alignment of a dimension, or
// nothing.
//   laws [kernels, 1000000 by default [weights folder]]

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/rng.h"
#include "devices/registry.h"
#include "ops/op_def.h"
#include "predict/bound.h"
#include "predict/predictor.h"

namespace {

using namespace tilecast;

struct Falls {
  size_t pairs = 0, any = 0, above_1 = 0, above_10 = 0, above_20 = 0;
  double deepest = 0;

  void add(double before, double after) {
    ++pairs;
    const double fall = 1 - after / before;
    // Below a millionth it is rounding.
    if (fall <= 1e-6) return;
    ++any;
    above_1 += fall > 0.01;
    above_10 += fall > 0.1;
    above_20 += fall > 0.2;
    deepest = std::max(deepest, fall);
  }
};

int trailing_bits(int64_t x) { return std::min(5, __builtin_ctzll(static_cast<uint64_t>(x))); }

/// A dimension that is less aligned than before may get slower: only the reverse can hide a fall.
bool better_aligned(const Gemm& before, const Gemm& after) {
  return trailing_bits(after.m) > trailing_bits(before.m) ||
         trailing_bits(after.n) > trailing_bits(before.n) ||
         trailing_bits(after.k) > trailing_bits(before.k);
}

/// A possible reason why a product falls; "" for other kernels.
const char* change_of(const Kernel& before, const Kernel& after, bool other_tile) {
  if (!before.is_product()) return "";
  if (other_tile) return "other tile";
  return better_aligned(gemm_of(before), gemm_of(after)) ? "better aligned" : "same kernel";
}

}  // namespace

int main(int argc, char** argv) {
  const size_t wanted = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
  const Weights weights = load_weights(argc > 2 ? argv[2] : "");
  const auto predictor = make_learned_predictor(weights);
  const std::vector<Device> devices = bundled_devices();
  const size_t share = (wanted + devices.size() - 1) / devices.size();
  Rng rng(1);
  std::vector<const OpDef*> ops;
  for (const OpDef& op : op_table()) {
    if (op.random_sizes) ops.push_back(&op);
  }
  size_t kernels = 0, below_bound = 0, low_below_bound = 0;
  std::map<std::string, Falls> falls;
  for (const Device& device : devices) {
    std::vector<DType> dtypes;
    for (const std::string& name : dtype_names()) {
      if (device.matmul_peak(*find_dtype(name)) > 0) dtypes.push_back(*find_dtype(name));
    }
    std::vector<Kernel> before, after;
    while (before.size() < share) {
      const OpDef& op = *ops[rng.below(ops.size())];
      const DType dtype = dtypes[rng.below(dtypes.size())];
      const SizeList sizes = draw_sizes(op, rng);
      SizeList grown = sizes;
      const SizeDef& dimension = op.sizes[rng.below(op.sizes.size())];
      if (!dimension.grows) continue;
      int64_t& one = integer_in(grown, dimension.name);
      // By one, by any factor up to eight, or to twice.
      const uint64_t how = rng.below(3);
      one = how == 0 ? one + 1 : how == 1 ? one + 1 + rng.log_uniform(3) * one / 2 : one * 2;
      if (op.random_sizes->fit != nullptr) op.random_sizes->fit(grown);
      const std::vector<Kernel> small = kernels_of_sizes(op.name, dtype, sizes);
      const std::vector<Kernel> large = kernels_of_sizes(op.name, dtype, grown);
      if (!has_unit_for(small.front(), device)) continue;
      before.insert(before.end(), small.begin(), small.end());
      after.insert(after.end(), large.begin(), large.end());
    }
    std::vector<KernelTime> a(before.size()), b(after.size());
    predictor->predict(before, device, {}, a);
    predictor->predict(after, device, {}, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const double bound = physical_bound(before[i], device, Caches::kWarm).seconds();
      below_bound += a[i].seconds < bound;
      low_below_bound += a[i].low_s < bound;
      const char* change = change_of(before[i], after[i], a[i].tile != b[i].tile);
      falls[fmt::format("{:16} {}", a[i].predictor, change)].add(a[i].seconds, b[i].seconds);
    }
    kernels += a.size();
  }
  fmt::print("{} kernels on {} devices\n", kernels, devices.size());
  fmt::print("forecasts below the physical bound: {}, of the interval's low end: {}\n", below_bound,
             low_below_bound);
  fmt::print(
      "forecasts that fall when a dimension grows (by one, to twice, or up to eight times):\n");
  fmt::print("{:30}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "", "pairs", "falls", "> 1 %", "> 10 %",
             "> 20 %", "deepest");
  for (const auto& [name, f] : falls)
    fmt::print("{:30}{:>10}{:>10}{:>10}{:>10}{:>10}{:>9.0f}%\n", name, f.pairs, f.any, f.above_1,
               f.above_10, f.above_20, 100 * f.deepest);
  return below_bound + low_below_bound > 0 ? 1 : 0;
}
