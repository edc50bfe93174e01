#include <filesystem>

#include "measurements/layouts.h"

// The PipeWeave repository's FP8 products, gemm_fp8.csv: one kernel of its own, with tiles of 128
// rows and never split, which no serving software runs in this form.

namespace tilecast {
namespace {

void read_pipeweave(const CsvTable& table, Collector& collector) {
  // The columns do not state the dtype.
  if (std::filesystem::path(table.where).filename().string().find("fp8") == std::string::npos)
    return collector.skip(table.where,
                          "neither the columns nor the file's name state a dtype (PipeWeave's "
                          "products are gemm_fp8.csv)");
  const auto column = [&](std::string_view name) { return table.require_column(name); };
  const size_t gpu = column("gpu"), latency = column("latency_us");
  const size_t m = column("m"), n = column("n"), k = column("k");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    collector.add_kernel({table, r}, "quantized_linear", DType::kBf16,
                         {{"m", table.integer(r, m)},
                          {"n", table.integer(r, n)},
                          {"k", table.integer(r, k)},
                          {"scheme", QuantScheme::kFp8}},
                         {.gpu = table.rows[r][gpu],
                          .seconds = table.number(r, latency) * 1e-6,
                          .software = software_of("pipeweave")});
  }
}

}  // namespace

extern const LayoutDef kPipeWeaveLayout = {
    "pipeweave", {"gpu", "m", "n", "k", "latency_us"}, read_pipeweave};

}  // namespace tilecast
