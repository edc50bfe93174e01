#include "embedding/traffic.h"

#include <algorithm>
#include <cmath>

namespace tilecast {
namespace {

constexpr double kSector = 32;
constexpr double kIdBytes = 8;      // int64, as torch's EmbeddingBag and FBGEMM take them
constexpr double kOffsetBytes = 8;  // of a bag's first id
constexpr double kInfoBytes = 4;    // table and bag of an id (FBGEMM: int32)
constexpr double kRunBytes = 12;    // a row's id and how many gradients it gets

double in_sectors(double bytes) { return kSector * std::ceil(bytes / kSector); }

}  // namespace

int64_t state_bytes_per_row(SparseOptimizer optimizer) {
  return optimizer == SparseOptimizer::kRowwiseAdagrad ? 4 : 0;
}

double TableWork::row_bytes() const { return in_sectors(dim * element_bytes); }
double TableWork::pooled_bytes() const { return in_sectors(dim * result_bytes); }

double TableTraffic::hit_bytes(double cache_bytes) const {
  if (gathered_bytes <= 0) return 0;
  return gathered_bytes * hit_share(access, {.cache_bytes = cache_bytes,
                                             .row_bytes = row_bytes,
                                             .streamed_bytes = streamed_bytes});
}

TableTraffic forward_traffic(const TableWork& work) {
  const double lookups = work.access.lookups;
  TableTraffic t{.access = work.access, .row_bytes = work.row_bytes()};
  t.gathered_bytes = lookups * work.row_bytes();
  // The table's offset and the bag's offsets, a sector each, and the ids.
  const double ids = work.bags * (2 * kSector + in_sectors(kIdBytes * lookups / work.bags));
  t.read_bytes = t.gathered_bytes + ids;
  t.write_bytes = work.bags * work.pooled_bytes();
  t.streamed_bytes = lookups > 0 ? kIdBytes + t.write_bytes / lookups : 0;
  t.flops = std::max(0.0, lookups - work.bags) * work.dim;
  return t;
}

TableTraffic sort_traffic(const TableWork& work, int key_bits) {
  constexpr double kBitsPerPass = 8;  // of CUB's radix sort
  const double lookups = work.access.lookups, pair = kIdBytes + kInfoBytes;
  const double passes = std::ceil(key_bits / kBitsPerPass);
  TableTraffic t;
  // Ids of all tables are numbered through; the sort counts digits, then moves pairs; runs of equal
  // ids are found.
  t.read_bytes =
      lookups * (kIdBytes + kIdBytes + passes * pair + kIdBytes) + work.bags * kOffsetBytes;
  t.write_bytes = lookups * (pair + passes * pair) + distinct_rows(work.access) * kRunBytes;
  return t;
}

TableTraffic update_traffic(const TableWork& work, SparseOptimizer optimizer) {
  const double lookups = work.access.lookups, distinct = distinct_rows(work.access);
  const double pooling = std::max(1.0, lookups / work.bags);
  TableTraffic t{.row_bytes = work.pooled_bytes()};
  // The gradient of a bag is read for each of its rows, in the order of the rows.
  t.access = {.lookups = lookups,
              .recorded = lookups,
              .classes = {{.rows = lookups / pooling, .uses = pooling}}};
  t.gathered_bytes = lookups * t.row_bytes;
  const double state = state_bytes_per_row(optimizer) > 0 ? kSector : 0;
  const double per_row = work.row_bytes() + state;
  t.read_bytes = t.gathered_bytes + lookups * kInfoBytes + distinct * (per_row + kRunBytes);
  t.write_bytes = distinct * per_row;
  t.streamed_bytes = lookups > 0 ? kInfoBytes + 2 * distinct * per_row / lookups : 0;
  // The sum, and one multiply and add per element; Adagrad's mean of squares.
  t.flops = lookups * work.dim +
            distinct * work.dim * (optimizer == SparseOptimizer::kRowwiseAdagrad ? 4 : 2);
  return t;
}

int key_bits(double rows) {
  return std::max(1, static_cast<int>(std::ceil(std::log2(std::max(2.0, rows)))));
}

double tables_at_once(double tables, double bags) {
  if (bags <= 0) return 1;
  return std::clamp(kBagsAtOnce / bags, 1.0, std::max(1.0, tables));
}

}  // namespace tilecast
