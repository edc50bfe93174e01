#include "placement/costs.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/checked.h"
#include "collectives/collective.h"
#include "predict/embedding.h"

namespace tilecast {
namespace {

/// A function that does not fall, from a table at sizes that grow by a constant factor.
class Tabulated {
 public:
  Tabulated(double first, double last, const std::function<double(double)>& f) : first_(first) {
    constexpr int kPerDoubling = 8;
    ratio_ = std::exp2(1.0 / kPerDoubling);
    for (double x = first;; x *= ratio_) {
      values_.push_back(std::max(f(x), values_.empty() ? 0 : values_.back()));
      if (x >= last) break;
    }
  }
  double operator()(double x) const {
    if (x <= first_) return values_.front();
    const double place = std::log(x / first_) / std::log(ratio_);
    const auto below = static_cast<size_t>(place);
    if (below + 1 >= values_.size()) return values_.back();
    const double low = first_ * std::pow(ratio_, static_cast<double>(below));
    const double part = (x - low) / (low * (ratio_ - 1));
    return values_[below] + std::min(1.0, part) * (values_[below + 1] - values_[below]);
  }

 private:
  double first_, ratio_ = 2;
  std::vector<double> values_;
};

double bytes_of(DType dtype) { return static_cast<double>(dtype_bits(dtype)) / 8; }

DType stored(const PlacementSetup& setup, const EmbeddingTable& table) {
  return table.dtype.value_or(setup.dtype);
}

class Costs {
 public:
  explicit Costs(const PlacementSetup& setup)
      : setup_(setup), chip_(setup.cluster.device, bundled_laws()) {
    double rows = 0;
    for (const EmbeddingTable& table : setup.tables.tables) rows += static_cast<double>(table.rows);
    const auto ranks = static_cast<double>(setup.ranks);
    key_bits_ = key_bits(rows / ranks);
    sharing_ = tables_at_once(static_cast<double>(setup.tables.tables.size()) / ranks,
                              static_cast<double>(setup.batch));
  }

  ShardTable table(size_t index) const {
    const EmbeddingTable& t = setup_.tables.tables[index];
    ShardTable result{.name = t.name, .choices = {}};
    add(result, index, {.way = ShardWay::kTableWise});
    constexpr int64_t kFewestColumns = 32, kColumnUnit = 4;
    for (int64_t parts = 2; parts <= setup_.ranks; parts *= 2) {
      if (t.dim % (parts * kColumnUnit) == 0 && t.dim / parts >= kFewestColumns)
        add(result, index, {.way = ShardWay::kColumnWise, .parts = parts});
    }
    for (int64_t parts = 2; parts < 2 * setup_.ranks && setup_.ranks > 1; parts *= 2) {
      const int64_t used = std::min(parts, setup_.ranks);
      if (t.rows >= used) add(result, index, {.way = ShardWay::kRowWise, .parts = used});
    }
    // Whole samples: a rank that gets a part of one is none.
    if (setup_.ranks > 1 && setup_.batch % setup_.ranks == 0)
      add(result, index, {.way = ShardWay::kReplicated, .parts = setup_.ranks});
    return result;
  }

 private:
  double seconds(const TableTraffic& t) const {
    return bag_seconds({t.bytes(), t.gathered_bytes, t.hit_bytes(chip_.l2_bytes / sharing_)},
                       chip_);
  }

  void add(ShardTable& to, size_t index, ShardChoice choice) const {
    const TableWork work = shard_work(setup_, index, choice);
    TableShard& part = choice.part;
    part.lookups = work.access.lookups;
    part.forward_s = seconds(forward_traffic(work));
    const bool trains = setup_.mode == Mode::kTraining;
    if (trains)
      part.backward_s = seconds(sort_traffic(work, key_bits_)) +
                        seconds(update_traffic(work, setup_.tables.optimizer));
    part.columns = choice.way == ShardWay::kReplicated ? 0 : work.dim;
    const ShardBytes bytes = shard_bytes(setup_, index, choice);
    part.bytes = checked_add(bytes.rows_bytes, bytes.state_bytes);
    if (choice.way == ShardWay::kReplicated && trains) {
      const int64_t gradient = bytes.rows_bytes;
      part.backward_s += dense_update_s(setup_, index, choice);
      part.bytes = checked_add(part.bytes, gradient);
      choice.reduce_bytes = static_cast<double>(gradient);
    }
    to.choices.push_back(choice);
  }

  const PlacementSetup& setup_;
  Chip chip_;
  int key_bits_ = 1;
  double sharing_ = 1;
};

}  // namespace

TableWork shard_work(const PlacementSetup& setup, size_t index, const ShardChoice& choice) {
  const EmbeddingTable& table = setup.tables.tables[index];
  const auto parts = static_cast<double>(choice.parts);
  TableWork work{.rows = static_cast<double>(table.rows),
                 .dim = static_cast<double>(table.dim),
                 .bags = static_cast<double>(setup.batch),
                 .element_bytes = bytes_of(stored(setup, table)),
                 .result_bytes = bytes_of(setup.dtype),
                 .access = access_of(table, setup.tables, setup.batch)};
  switch (choice.way) {
    case ShardWay::kTableWise:
      break;
    case ShardWay::kColumnWise:
      work.dim /= parts;
      break;
    case ShardWay::kRowWise:
      work.rows /= parts;
      work.access = work.access.part_of_rows(1 / parts);
      break;
    case ShardWay::kReplicated:
      work.bags /= parts;
      work.access = work.access.part_of_batch(1 / parts);
      break;
  }
  return work;
}

ShardBytes shard_bytes(const PlacementSetup& setup, size_t index, const ShardChoice& choice) {
  const EmbeddingTable& table = setup.tables.tables[index];
  const bool rows = choice.way == ShardWay::kRowWise, columns = choice.way == ShardWay::kColumnWise;
  const int64_t part_rows = rows ? ceil_divide(table.rows, choice.parts) : table.rows;
  const int64_t part_dim = columns ? table.dim / choice.parts : table.dim;
  // Each column-wise part has states of its own, as FBGEMM's have.
  return {
      .rows_bytes = checked_product({part_rows, part_dim, dtype_bits(stored(setup, table))}) / 8,
      .state_bytes = setup.mode == Mode::kTraining
                         ? checked_multiply(part_rows, state_bytes_per_row(setup.tables.optimizer))
                         : 0};
}

double exchange_s(const PlacementSetup& setup, double columns) {
  if (setup.ranks == 1 || columns <= 0) return 0;
  const double bytes = columns * static_cast<double>(setup.batch) * bytes_of(setup.dtype);
  return collective_time(CollectiveKind::kAllToAll, std::llround(bytes), setup.dtype,
                         packed_group(setup.ranks, setup.cluster), setup.cluster)
      .seconds;
}

double exchange_ids_s(const PlacementSetup& setup, double lookups, int64_t tables) {
  if (setup.ranks == 1 || lookups <= 0) return 0;
  // torchrec's KeyedJaggedTensor: int64 values, int32 lengths.
  constexpr double kIdBytes = 8, kLengthBytes = 4;
  const double lengths = static_cast<double>(checked_multiply(tables, setup.batch));
  const PlacementSetup& s = setup;
  return collective_time(CollectiveKind::kAllToAll,
                         std::llround(kIdBytes * lookups + kLengthBytes * lengths), DType::kInt64,
                         packed_group(s.ranks, s.cluster), s.cluster)
      .seconds;
}

double dense_update_s(const PlacementSetup& setup, size_t index, const ShardChoice& choice) {
  // Zeros are written; then gradient and rows are read, and rows are written.
  constexpr double kPasses = 4;
  const ShardBytes bytes = shard_bytes(setup, index, choice);
  return kPasses * static_cast<double>(bytes.rows_bytes) /
         Chip(setup.cluster.device, bundled_laws()).dram_bytes_per_s;
}

double all_reduce_s(const PlacementSetup& setup, int64_t bytes) {
  if (setup.ranks == 1) return 0;
  return collective_time(CollectiveKind::kAllReduce, bytes, DType::kFp32,
                         packed_group(setup.ranks, setup.cluster), setup.cluster)
      .seconds;
}

ShardProblem placement_problem(const PlacementSetup& setup) {
  const Costs costs(setup);
  ShardProblem problem{.ranks = setup.ranks,
                       .bytes_per_rank = setup.bytes_per_rank,
                       .tables = {},
                       .exchange_s = {},
                       .all_reduce_s = {}};
  double columns = 0;
  for (size_t t = 0; t < setup.tables.tables.size(); ++t) {
    problem.tables.push_back(costs.table(t));
    columns += static_cast<double>(setup.tables.tables[t].dim);
  }
  // Row-wise parts send all columns, from each rank: no rank sends more than all.
  const auto table = std::make_shared<const Tabulated>(
      1, std::max(2.0, columns), [&](double c) { return exchange_s(setup, c); });
  const double exchanges = setup.mode == Mode::kTraining ? 2 : 1;  // of sums; of their gradients
  problem.exchange_s = [table, exchanges](double c) { return exchanges * (*table)(c); };
  double gradients = 2;
  for (const ShardTable& t : problem.tables) gradients += t.choices.back().reduce_bytes;
  const auto reduce = std::make_shared<const Tabulated>(
      1, gradients, [&](double b) { return all_reduce_s(setup, std::llround(b)); });
  problem.all_reduce_s = [reduce](double b) { return (*reduce)(b); };
  return problem;
}

}  // namespace tilecast
