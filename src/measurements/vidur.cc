#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "measurements/layouts.h"
#include "tilecast/error.h"

// The Vidur repository's profiles of transformer layers:
// data/profiling/compute/<gpu>/<org>/<model>/ mlp.csv, FP16: the time of the kernels in ms, to a
// microsecond. Read are the four matrix products, which are PyTorch's, and the norms, the
// activation and the rotary embedding of layers with gated activations, which are vLLM's. Layers
// without gates have PyTorch's norms and activations, and the file does not say which part of a
// head is turned. The sum of the residual (`add`) and the embedding (`emb`) are PyTorch's.

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

/// One rank's share of a layer.
struct Layer {
  int64_t tokens, width, inner, heads, kv_heads, head;

  int64_t queries_and_keys() const { return (heads + kv_heads) * head; }
};

class VidurReader {
 public:
  VidurReader(const CsvTable& table, std::string gpu, Collector& collector)
      : table_(table), gpu_(std::move(gpu)), collector_(collector) {}

  void read() {
    for (size_t r = 0; r < table_.rows.size(); ++r) read_row(r);
  }

 private:
  void read_row(size_t r) {
    const int64_t d = table_.integer(r, width_), h = table_.integer(r, heads_);
    const int64_t g = table_.integer(r, kv_heads_), f = table_.integer(r, inner_);
    const int64_t n = table_.integer(r, ranks_), m = table_.integer(r, tokens_);
    if (n < 1 || h < 1 || h % n != 0 || f % n != 0 || d % h != 0)
      return collector_.skip(table_.where, "ranks do not divide a layer");
    const bool gated = table_.rows[r][gated_] == "True";
    const Layer layer{m, d, f / n, h / n, std::max<int64_t>(1, g / n), d / h};
    const auto product = [&](size_t time, int64_t columns, int64_t reduction) {
      add(r, time, "gemm", {{"m", m}, {"n", columns}, {"k", reduction}}, software_of("pytorch"));
    };
    product(qkv_, layer.queries_and_keys() + layer.kv_heads * layer.head, d);
    product(out_, d, d / n);
    product(up_, (gated ? 2 : 1) * layer.inner, d);
    product(down_, d, layer.inner);
    if (gated) read_row_kernels(r, layer);
  }

  void read_row_kernels(size_t r, const Layer& layer) {
    const auto served = [&](std::optional<size_t> time, const char* op, int64_t columns) {
      if (time)
        add(r, *time, op, {{"rows", layer.tokens}, {"columns", columns}}, software_of("vllm"));
    };
    served(input_norm_, "rms_norm", layer.width);
    served(attention_norm_, "rms_norm", layer.width);
    served(activation_, "gated_activation", layer.inner);
    served(rotary_, "rotary", layer.queries_and_keys());
  }

  void add(size_t r, size_t time, const char* op, const SizeList& sizes, Software software) {
    collector_.add_kernel({table_, r}, op, DType::kFp16, sizes,
                          {.gpu = gpu_,
                           .seconds = table_.number(r, time) * 1e-3,
                           .software = software,
                           .scalar_rows = true});
  }

  size_t column(std::string_view name) const { return table_.require_column(name); }

  const CsvTable& table_;
  const std::string gpu_;
  Collector& collector_;
  const size_t width_ = column("n_embd"), heads_ = column("n_head"),
               kv_heads_ = column("n_kv_head");
  const size_t inner_ = column("n_expanded_embd"), gated_ = column("use_gated_mlp");
  const size_t tokens_ = column("num_tokens"), ranks_ = column("num_tensor_parallel_workers");
  const size_t qkv_ = column("time_stats.attn_pre_proj.median");
  const size_t out_ = column("time_stats.attn_post_proj.median");
  const size_t up_ = column("time_stats.mlp_up_proj.median");
  const size_t down_ = column("time_stats.mlp_down_proj.median");
  const std::optional<size_t> input_norm_ = table_.column("time_stats.input_layernorm.median");
  const std::optional<size_t> attention_norm_ =
      table_.column("time_stats.post_attention_layernorm.median");
  const std::optional<size_t> activation_ = table_.column("time_stats.mlp_act.median");
  const std::optional<size_t> rotary_ = table_.column("time_stats.attn_rope.median");
};

void read_vidur(const CsvTable& table, Collector& collector) {
  std::string gpu = gpu_of(table.where);
  if (gpu.empty())
    return collector.skip(table.where, "the path names no GPU (…/compute/<gpu>/<model>/mlp.csv)");
  VidurReader(table, std::move(gpu), collector).read();
}

}  // namespace

extern const LayoutDef kVidurLayout = {"vidur",
                                       {"num_tokens", "num_tensor_parallel_workers",
                                        "n_expanded_embd", "time_stats.mlp_up_proj.median"},
                                       read_vidur};

}  // namespace tilecast
