#include <fmt/format.h>

#include <map>

#include "measurements/layouts.h"

namespace tilecast {
namespace {

void read_aiconfigurator(const CsvTable& table, Collector& collector) {
  const auto m = table.column("m"), n = table.column("n"), k = table.column("k");
  if (!m || !n || !k)
    return collector.skip(table.where,
                          "only matrix products (columns m, n, k) are forecast of this layout");
  static const std::map<std::string, DType> kDtypes = {
      {"bfloat16", DType::kBf16}, {"float16", DType::kFp16}, {"fp8", DType::kFp8}};
  const size_t gpu = table.require_column("gpu");
  const size_t dtype = table.require_column("dtype");
  const size_t software = table.require_column("software");
  const size_t latency = table.require_column("latency_ms");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const auto type = kDtypes.find(table.rows[r][dtype]);
    if (type == kDtypes.end()) {
      collector.skip(table.where, fmt::format("dtype '{}' is not forecast", table.rows[r][dtype]));
      continue;
    }
    // "vllm 0.24.0": the version counts as the newest.
    const std::string& name = table.rows[r][software];
    const auto known = find_software(name.substr(0, name.find(' ')));
    if (!known) {
      collector.skip(table.where, fmt::format("software '{}' is unknown", name));
      continue;
    }
    collector.add_kernel(table, "gemm", type->second,
                         {1, table.integer(r, *m), table.integer(r, *n), table.integer(r, *k)},
                         {.gpu = table.rows[r][gpu],
                          .seconds = table.number(r, latency) * 1e-3,
                          .software = *known});
  }
}

}  // namespace

const LayoutDef kAiconfiguratorLayout = {
    "aiconfigurator", {"gpu", "software", "latency_ms"}, read_aiconfigurator};

}  // namespace tilecast
