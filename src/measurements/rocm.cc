#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "measurements/layouts.h"

// Matrix products of rocBLAS, as a table: for each tuned size the fastest kernel that a tuning run
// of the library found, from the "library logic" files of ROCm/rocBLAS. One problem was launched
// again and again: the cache is warm. Some sessions ran at a set clock, which `clock_mhz` states.

namespace tilecast {
namespace {

/// Sessions with the unit percent_stream were timed by the host, which takes about 50 us.
constexpr double kHostBoundS = 0.3e-3;

class RocmTable {
 public:
  RocmTable(const CsvTable& table, Collector& collector) : table_(table), collector_(collector) {}

  void read() {
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      if (const std::string why = not_used(row); !why.empty()) {
        collector_.skip(table_.where, why);
      } else {
        add(row);
      }
    }
  }

 private:
  const std::string& text(size_t row, std::string_view column) const {
    return table_.rows[row][table_.require_column(column)];
  }
  int64_t size(size_t row, std::string_view column) const {
    return table_.integer(row, table_.require_column(column));
  }
  double seconds(size_t row) const {
    return table_.number(row, table_.require_column("latency_us")) * 1e-6;
  }

  std::optional<double> clock_hz(size_t row) const {
    if (text(row, "clock_mhz").empty()) return std::nullopt;
    return table_.number(row, table_.require_column("clock_mhz")) * 1e6;
  }

  /// Why a row is left out; "": it is not.
  std::string not_used(size_t row) const {
    if (!find_software(text(row, "library")))
      return fmt::format("library '{}' is unknown", shown_name(text(row, "library")));
    const std::string& dtype = text(row, "in");
    if (dtype != "fp32" && dtype != "fp16" && dtype != "bf16" && dtype != "int8")
      return fmt::format("dtype '{}' is not forecast", shown_name(dtype));
    if (const auto hz = clock_hz(row); hz && !(*hz > 0)) return "clock_mhz is not above 0";
    if (text(row, "unit") == "percent_stream" && seconds(row) < kHostBoundS)
      return "times below 0.3 ms of the unit percent_stream hold the host's";
    return "";
  }

  /// A note of what sets a row apart from others of its operator and dtype.
  std::string note(size_t row) const {
    std::vector<std::string> notes = {"warm L2"};
    if (text(row, "acc") == "fp16") notes.emplace_back("fp16 sums");
    if (text(row, "in") != "int8" && text(row, "out") != text(row, "in"))
      notes.push_back(shown_name(text(row, "out")) + " output");
    return " (" + join(notes, ", ") + ")";
  }

  /// The kernel's tile, in the order in which its name has it (tile_in_name). A few rows state
  /// none.
  std::optional<Tile> tile(size_t row) const {
    if (text(row, "tile_m").empty() || text(row, "tile_n").empty()) return std::nullopt;
    const int64_t m = size(row, "tile_m"), n = size(row, "tile_n");
    constexpr int64_t kMost = 1024;  // threads of a workgroup
    if (m < 1 || n < 1 || m > kMost || n > kMost) return std::nullopt;
    return Tile{static_cast<int>(m), static_cast<int>(n)};
  }

  void add(size_t row) {
    RowFacts facts{.gpu = text(row, "gpu"),
                   .seconds = seconds(row),
                   .tile = tile(row),
                   .software = *find_software(text(row, "library")),
                   .caches = Caches::kWarm,
                   .clock_hz = clock_hz(row),
                   .half_sums = text(row, "acc") == "fp16",
                   .label_note = note(row)};
    // BLAS stores matrices by columns: its m x n result is n x m by rows.
    SizeList sizes = {{"m", size(row, "n")}, {"n", size(row, "m")}, {"k", size(row, "k")}};
    const int64_t batch = size(row, "batch");
    const bool batched = batch != 1;
    if (batched) sizes.push_back({"batch", batch});
    // int8 is a quantization scheme here: activations are bf16 outside of the layer.
    const bool quantized = text(row, "in") == "int8";
    if (quantized) sizes.push_back({"scheme", QuantScheme::kInt8});
    const DType dtype = quantized ? DType::kBf16 : *find_dtype(text(row, "in"));
    const char* op = batched ? "matmul" : quantized ? "quantized_linear" : "gemm";
    collector_.add_kernel({table_, row}, op, dtype, sizes, std::move(facts));
  }

  const CsvTable& table_;
  Collector& collector_;
};

}  // namespace

extern const LayoutDef kRocmLayout = {
    "rocm",
    {"gpu", "library", "in", "acc", "out", "m", "n", "batch", "k", "latency_us", "tile_m", "tile_n",
     "unit", "clock_mhz"},
    [](const CsvTable& table, Collector& collector) { RocmTable(table, collector).read(); }};

}  // namespace tilecast
