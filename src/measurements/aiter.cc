#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "base/text.h"
#include "measurements/layouts.h"

// AITER's tuned kernels, as tables: for each size that somebody tuned, the fastest of many kernels
// and the mean of its device time. Operands rotate through more memory than the caches hold, so
// they are cold. Tables of matrix products and of fused layers of experts.

namespace tilecast {
namespace {

/// The cells of a table that make up a key.
std::string cells_of(const CsvTable& table, size_t row,
                     std::initializer_list<std::string_view> columns) {
  std::string key;
  for (const std::string_view column : columns)
    key.append(table.rows[row][table.require_column(column)]).push_back(',');
  return key;
}

class AiterTable {
 public:
  AiterTable(const CsvTable& table, Collector& collector) : table_(table), collector_(collector) {}

 protected:
  const std::string& text(size_t row, std::string_view column) const {
    return table_.rows[row][table_.require_column(column)];
  }
  int64_t size(size_t row, std::string_view column) const {
    return table_.integer(row, table_.require_column(column));
  }
  double latency_us(size_t row) const {
    return table_.number(row, table_.require_column("latency_us"));
  }
  RowFacts facts(size_t row) const {
    return {.gpu = text(row, "gpu"),
            .seconds = latency_us(row) * 1e-6,
            .software = software_of("aiter"),
            .caches = Caches::kCold};
  }

  const CsvTable& table_;
  Collector& collector_;
};

class AiterProducts : public AiterTable {
 public:
  using AiterTable::AiterTable;

  void read() {
    find_fastest();
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      if (fastest_.at(key(row)) != row) {
        collector_.skip(table_.where,
                        "the same product was tuned in another file or for another order of the "
                        "weights in memory, and is faster there");
      } else {
        add(row);
      }
    }
  }

 private:
  std::string key(size_t row) const {
    return cells_of(table_, row, {"gpu", "dtype", "scale", "out_dtype", "batch", "m", "n", "k"});
  }

  void find_fastest() {
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      const auto [at, fresh] = fastest_.emplace(key(row), row);
      if (!fresh && latency_us(row) < latency_us(at->second)) at->second = row;
    }
  }

  /// nullopt where it is not forecast.
  std::optional<QuantScheme> scheme(size_t row) const {
    const std::string name = text(row, "dtype") + ' ' + text(row, "scale");
    if (name == "bf16 " || name == "fp16 ") return QuantScheme::kNone;
    if (name == "fp8 token") return QuantScheme::kFp8;
    if (name == "fp8 1x128") return QuantScheme::kFp8Block;
    if (name == "int8 token") return QuantScheme::kInt8;
    if (name == "fp4 1x32") return QuantScheme::kFp4;
    return std::nullopt;
  }

  void add(size_t row) {
    const std::optional<QuantScheme> found = scheme(row);
    if (!found)
      return collector_.skip(table_.where, fmt::format("dtype '{}' with scale '{}' is not forecast",
                                                       shown_name(text(row, "dtype")),
                                                       shown_name(text(row, "scale"))));
    SizeList sizes = {{"m", size(row, "m")}, {"n", size(row, "n")}, {"k", size(row, "k")}};
    const bool quantized = *found != QuantScheme::kNone, batched = size(row, "batch") != 1;
    if (batched) sizes.push_back({"batch", size(row, "batch")});
    if (quantized) sizes.push_back({"scheme", *found});
    const DType dtype = text(row, "dtype") == "fp16" ? DType::kFp16 : DType::kBf16;
    const char* op = batched ? "matmul" : quantized ? "quantized_linear" : "gemm";
    collector_.add_kernel({table_, row}, op, dtype, sizes, facts(row));
  }

  std::map<std::string, size_t> fastest_;  ///< row by key
};

class AiterExperts : public AiterTable {
 public:
  using AiterTable::AiterTable;

  void read() {
    find_copied();
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      if (copied_.contains(timed(row))) {
        collector_.skip(table_.where,
                        "one time stands for several numbers of tokens of a layer of experts: "
                        "which of them was measured is not known");
      } else {
        add(row);
      }
    }
  }

 private:
  std::string timed(size_t row) const {
    return cells_of(table_, row,
                    {"gpu", "activation_dtype", "weight_dtype", "scale", "hidden_dim", "ffn_dim",
                     "num_experts", "top_k", "gated", "file", "latency_us"});
  }

  void find_copied() {
    std::map<std::string, std::string> tokens;
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      const auto [at, fresh] = tokens.emplace(timed(row), text(row, "tokens"));
      if (!fresh && at->second != text(row, "tokens")) copied_.insert(at->first);
    }
  }

  /// nullopt where it is not forecast. Scales of 32 elements in FP8 cost three percent of a byte:
  /// taken as FP8 without groups.
  std::optional<QuantScheme> scheme(size_t row) const {
    const std::string name = text(row, "activation_dtype") + ' ' + text(row, "weight_dtype");
    const std::string& scale = text(row, "scale");
    if (name == "fp8 fp8" && scale == "1x128") return QuantScheme::kFp8Block;
    if (name == "fp8 fp8" && (scale == "token" || scale == "1x32")) return QuantScheme::kFp8;
    if (name == "fp4 fp4") return QuantScheme::kFp4;
    if (name == "fp8 fp4") return QuantScheme::kFp4Fp8;
    if (name == "bf16 fp4") return QuantScheme::kFp4WeightOnly;
    if (name == "bf16 int4") return QuantScheme::kInt4WeightOnly;
    return std::nullopt;
  }

  void add(size_t row) {
    const std::optional<QuantScheme> found = scheme(row);
    if (!found || text(row, "dtype") != "bf16")
      return collector_.skip(
          table_.where,
          fmt::format("experts in '{}' with weights in '{}' and scale '{}' are not forecast",
                      shown_name(text(row, "activation_dtype")),
                      shown_name(text(row, "weight_dtype")), shown_name(text(row, "scale"))));
    collector_.add_kernel({table_, row}, "experts", DType::kBf16,
                          {{"tokens", size(row, "tokens")},
                           {"ffn_dim", size(row, "ffn_dim")},
                           {"hidden_dim", size(row, "hidden_dim")},
                           {"num_experts", size(row, "num_experts")},
                           {"top_k", size(row, "top_k")},
                           {"scheme", *found},
                           {"gated", size(row, "gated")}},
                          facts(row));
  }

  std::set<std::string> copied_;
};

}  // namespace

extern const LayoutDef kAiterProductsLayout = {
    "aiter_products",
    {"gpu", "dtype", "scale", "out_dtype", "batch", "m", "n", "k", "preshuffled", "latency_us",
     "file"},
    [](const CsvTable& table, Collector& collector) { AiterProducts(table, collector).read(); }};

extern const LayoutDef kAiterExpertsLayout = {
    "aiter_experts",
    {"gpu", "dtype", "activation_dtype", "weight_dtype", "scale", "tokens", "hidden_dim", "ffn_dim",
     "num_experts", "top_k", "gated", "latency_us", "file"},
    [](const CsvTable& table, Collector& collector) { AiterExperts(table, collector).read(); }};

}  // namespace tilecast
