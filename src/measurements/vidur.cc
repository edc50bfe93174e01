#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "measurements/layouts.h"
#include "tilecast/error.h"

// The Vidur repository's profiles of transformer layers:
// data/profiling/compute/<gpu>/<org>/<model>/ mlp.csv, FP16, PyTorch. Only the columns of the four
// matrix products are read: the time of the kernels in ms.

namespace tilecast {
namespace {

std::string gpu_of(const std::string& where) {
  bool next = false;
  for (const std::filesystem::path& part : std::filesystem::path(where)) {
    if (next) return part.string();  // "a40", "a100", "h100": aliases of the GPUs
    next = part == "compute";
  }
  return "";
}

void read_vidur(const CsvTable& table, Collector& collector) {
  const std::string gpu = gpu_of(table.where);
  if (gpu.empty())
    return collector.skip(table.where, "the path names no GPU (…/compute/<gpu>/<model>/mlp.csv)");
  const auto column = [&](std::string_view name) { return table.require_column(name); };
  const size_t width = column("n_embd"), heads = column("n_head"), kv_heads = column("n_kv_head");
  const size_t inner = column("n_expanded_embd"), gated = column("use_gated_mlp");
  const size_t tokens = column("num_tokens"), ranks = column("num_tensor_parallel_workers");
  const size_t qkv = column("time_stats.attn_pre_proj.median");
  const size_t out = column("time_stats.attn_post_proj.median");
  const size_t up = column("time_stats.mlp_up_proj.median");
  const size_t down = column("time_stats.mlp_down_proj.median");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const int64_t d = table.integer(r, width), h = table.integer(r, heads);
    const int64_t g = table.integer(r, kv_heads), f = table.integer(r, inner);
    const int64_t n = table.integer(r, ranks), m = table.integer(r, tokens);
    if (n < 1 || h < 1 || h % n != 0 || f % n != 0 || d % h != 0) {
      collector.skip(table.where, "ranks do not divide a layer");
      continue;
    }
    const int64_t head = d / h;
    const int64_t queries_and_keys = h / n + 2 * std::max<int64_t>(1, g / n);
    const int64_t gates = table.rows[r][gated] == "True" ? 2 : 1;
    const auto add = [&](size_t time, int64_t columns, int64_t reduction) {
      collector.add_kernel({table, r}, "gemm", DType::kFp16,
                           {{"m", m}, {"n", columns}, {"k", reduction}},
                           {.gpu = gpu, .seconds = table.number(r, time) * 1e-3});
    };
    add(qkv, queries_and_keys * head, d);
    add(out, d, d / n);
    add(up, gates * f / n, d);
    add(down, d, f / n);
  }
}

}  // namespace

extern const LayoutDef kVidurLayout = {"vidur",
                                       {"num_tokens", "num_tensor_parallel_workers",
                                        "n_expanded_embd", "time_stats.mlp_up_proj.median"},
                                       read_vidur};

}  // namespace tilecast
