#include <algorithm>
#include <bit>
#include <cmath>

#include "base/rng.h"
#include "devices/registry.h"
#include "ops/op_def.h"
#include "train/fold.h"

// Pairs of kernels that nobody measured, of which the larger does more work.

namespace tilecast {
namespace {

/// Pairs that a network of a fold is held to grow on.
constexpr size_t kPairsOfNet = 32768;

int trailing_zeros(int64_t x) { return std::countr_zero(static_cast<uint64_t>(x)); }

/// The operators whose kernels a network forecasts, of those that training draws.
std::vector<const OpDef*> drawn_operators(NetKind kind, const std::vector<DType>& dtypes) {
  constexpr int kTried = 64, kLeast = kTried / 4;  // others' kernels may be of the kind by chance
  std::vector<const OpDef*> drawn;
  for (const OpDef& op : op_table()) {
    if (!op.random_sizes || !op.random_sizes->in_training) continue;
    Rng rng(1);
    int of_kind = 0;
    for (int i = 0; i < kTried; ++i) {
      const DType dtype = dtypes[rng.below(dtypes.size())];
      of_kind += find_net(kernels_of_sizes(op.name, dtype, draw_sizes(op, rng)).front()) == kind;
    }
    if (of_kind >= kLeast) drawn.push_back(&op);
  }
  return drawn;
}

/// The sizes of which more is more work, whatever the kernel.
std::vector<std::string_view> growing(const OpDef& op) {
  std::vector<std::string_view> names;
  for (const SizeDef& size : op.sizes) {
    if (size.grows) names.push_back(size.name);
  }
  return names;
}

void fill_pairs(FoldPart& smaller, FoldPart& larger, const Weights& weights, NetKind kind,
                const std::vector<const Device*>& devices, Rng rng) {
  const std::vector<DType>& dtypes = net_def(kind).pair_dtypes;
  const std::vector<const OpDef*> ops = drawn_operators(kind, dtypes);
  while (smaller.rows.count() < kPairsOfNet) {
    const size_t d = rng.below(devices.size());
    const DType dtype = dtypes[rng.below(dtypes.size())];
    const OpDef& op = *ops[rng.below(ops.size())];
    const SizeList sizes = draw_sizes(op, rng);
    SizeList grown = sizes;
    const std::vector<std::string_view> names = growing(op);
    int64_t& one = integer_in(grown, names[rng.below(names.size())]);
    const int before = trailing_zeros(one);
    const uint64_t how = rng.below(3);
    one = how == 0 ? one * 2 : how == 1 ? one + 1 : one + 1 + rng.log_uniform(3) * one / 2;
    // A library really may get faster where a dimension gets better aligned.
    if (how > 0 && trailing_zeros(one) > before) continue;
    if (op.random_sizes->fit != nullptr) op.random_sizes->fit(grown);
    const std::vector<Kernel> small = kernels_of_sizes(op.name, dtype, sizes);
    const std::vector<Kernel> large = kernels_of_sizes(op.name, dtype, grown);
    for (size_t i = 0; i < small.size(); ++i) {
      if (small[i] == large[i] || find_net(small[i]) != kind || find_net(large[i]) != kind)
        continue;
      if (!has_unit_for(small[i], *devices[d])) continue;
      for (const auto& [part, kernel] :
           {std::pair{&smaller, &small[i]}, std::pair{&larger, &large[i]}}) {
        append_kernel(*part, weights, kind, *kernel,
                      describe(weights, kind, *kernel, *devices[d], {}), *devices[d]);
        part->device.push_back(d);
      }
    }
  }
}

}  // namespace

void fill_all_pairs(Fold& fold, NetKind kind, const TrainingData& data, uint64_t seed) {
  FoldNet& rows = fold.net(kind);
  const size_t base = net_def(kind).base_features;
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
  FoldPart smaller = empty_part(kind), larger = smaller;
  rows.smaller = rows.larger = smaller;
  fill_pairs(smaller, larger, fold.weights, kind, sheets, rng);
  const std::vector<bool> every(smaller.device.size(), true);
  rows.base_pairs = {selected_rows(smaller.rows, base, every),
                     selected_rows(larger.rows, base, every)};
  if (net_def(kind).learning.forests) return;  // forests know no pairs
  fill_pairs(rows.smaller, rows.larger, fold.weights, kind, measured, rng);
  for (FoldPart* part : {&rows.smaller, &rows.larger}) {
    for (size_t& d : part->device) d = index[d];
  }
}

}  // namespace tilecast
