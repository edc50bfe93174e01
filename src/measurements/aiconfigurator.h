#pragma once

// The tables of aiconfigurator, one reader for each kind of table.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measurements/layouts.h"
#include "measurements/slow_series.h"

namespace tilecast {

/// A table with the cells that all kinds have, and what readers of its rows need.
class AiTable {
 public:
  AiTable(const CsvTable& table, Collector& collector);

  struct Precision {
    DType dtype = DType::kBf16;
    QuantScheme scheme = QuantScheme::kNone;
  };

  bool has(std::string_view column) const { return table_.column(column).has_value(); }
  const std::string& text(size_t row, std::string_view column) const {
    return table_.rows[row][table_.require_column(column)];
  }
  int64_t size(size_t row, std::string_view column) const {
    return table_.integer(row, table_.require_column(column));
  }
  /// The precision that a cell names; nullopt, and the row is listed, if it is not forecast.
  std::optional<Precision> precision(size_t row, std::string_view column);
  /// GPU, time and software of a row; nullopt, and the row is listed, if the software is unknown.
  std::optional<RowFacts> facts(size_t row);
  void add(size_t row, std::string_view op, DType dtype, const SizeList& sizes, RowFacts facts) {
    collector_.add_kernel({table_, row}, op, dtype, sizes, std::move(facts));
  }
  /// Whether the software would run another of its kernels for the layer of experts in this row.
  bool measured_other_kernel(size_t row);
  void skip(const std::string& why) { collector_.skip(table_.where, why); }

 private:
  const CsvTable& table_;
  Collector& collector_;
  size_t gpu_, software_, latency_;
  /// Layers that have rows of kernels for few tokens; filled when first asked for.
  std::optional<std::set<std::string>> layers_with_few_token_kernels_;
};

/// A kind of table: a table with all of these columns is read by `read`, row by row.
struct AiKind {
  std::vector<std::string_view> columns;
  void (*read)(AiTable& table, size_t row, RowFacts facts);
  std::optional<SeriesColumns> series = {};  ///< nullopt: its series are not compared
};

/// Rows of DeepSeek's latent attention: prefill, decode and its two small products.
std::vector<AiKind> latent_attention_tables();
/// Rows of gated delta nets and Mamba-2.
std::vector<AiKind> scan_tables();

}  // namespace tilecast
