#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "measurements/layouts.h"
#include "tilecast/error.h"

// The tables of aiconfigurator: gemm, attention_prefill, attention_decode, attention_encoder, moe.
// A table is recognized by its columns; other tables are listed as not forecast. Attention and
// experts were measured by replays with the same operands: operands that fit into L2 are warm. For
// matrix products the weights alternate, so the cache is cold.

namespace tilecast {
namespace {

struct Precision {
  DType dtype = DType::kBf16;
  QuantScheme scheme = QuantScheme::kNone;
};

/// The tables' names of dtypes and quantization schemes; activations outside of a layer are
/// bfloat16.
std::optional<Precision> find_precision(const std::string& name) {
  static const std::map<std::string, Precision> kNames = {
      {"bfloat16", {DType::kBf16, QuantScheme::kNone}},
      {"float16", {DType::kFp16, QuantScheme::kNone}},
      {"fp8", {DType::kBf16, QuantScheme::kFp8}},
      {"fp8_block", {DType::kBf16, QuantScheme::kFp8Block}},
      {"int8_wo", {DType::kBf16, QuantScheme::kInt8WeightOnly}},
      {"int4_wo", {DType::kBf16, QuantScheme::kInt4WeightOnly}},
      {"sq", {DType::kBf16, QuantScheme::kInt8}},  // SmoothQuant: weights and activations in int8
      {"w4a16_mxfp4", {DType::kBf16, QuantScheme::kFp4WeightOnly}},
      {"nvfp4", {DType::kBf16, QuantScheme::kFp4}}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

/// One kind of table: its columns, and how a row is converted to a kernel.
class Table {
 public:
  Table(const CsvTable& table, Collector& collector)
      : table_(table),
        collector_(collector),
        gpu_(table.require_column("gpu")),
        software_(table.require_column("software")),
        latency_(table.require_column("latency_ms")) {}

  void read() {
    // The first kind whose columns all exist.
    static const Kind kKinds[] = {
        {{"dtype", "m", "n", "k"}, &Table::product},
        {{"dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "tp", "ep",
          "distribution"},
         &Table::experts},
        {{"dtype", "batch", "kv_len", "num_heads", "head_dim"}, &Table::decode},
        {{"dtype", "batch", "seq_len", "num_heads", "head_dim"}, &Table::prefill},
    };
    for (const Kind& kind : kKinds) {
      const bool all =
          std::all_of(kind.columns.begin(), kind.columns.end(),
                      [&](std::string_view c) { return table_.column(c).has_value(); });
      if (all) return each(kind.reader);
    }
    collector_.skip(table_.where,
                    fmt::format("{} rows of a table of this kind are not forecast; its columns: {}",
                                table_.rows.size(), join(table_.header, ", ")));
  }

 private:
  using RowReader = void (Table::*)(size_t row, RowFacts facts);
  struct Kind {
    std::vector<std::string_view> columns;
    RowReader reader;
  };

  void each(RowReader reader) {
    for (size_t r = 0; r < table_.rows.size(); ++r) {
      // "vllm 0.24.0": the version is ignored.
      const std::string& name = table_.rows[r][software_];
      const auto known = find_software(name.substr(0, name.find(' ')));
      if (!known) {
        collector_.skip(table_.where, fmt::format("software '{}' is unknown", name));
        continue;
      }
      (this->*reader)(r, {.gpu = table_.rows[r][gpu_],
                          .seconds = table_.number(r, latency_) * 1e-3,
                          .software = *known});
    }
  }

  int64_t at(size_t row, std::string_view column) const {
    return table_.integer(row, table_.require_column(column));
  }

  std::optional<Precision> precision(size_t row, std::string_view column) {
    const std::string& name = table_.rows[row][table_.require_column(column)];
    const std::optional<Precision> found = find_precision(name);
    if (!found) collector_.skip(table_.where, fmt::format("dtype '{}' is not forecast", name));
    return found;
  }

  void product(size_t row, RowFacts facts) {
    const std::optional<Precision> p = precision(row, "dtype");
    if (!p) return;
    SizeList sizes = {{"m", at(row, "m")}, {"n", at(row, "n")}, {"k", at(row, "k")}};
    const bool stored = p->scheme != QuantScheme::kNone;
    if (stored) sizes.push_back({"scheme", p->scheme});
    collector_.add_kernel({table_, row}, stored ? "quantized_linear" : "gemm", p->dtype, sizes,
                          std::move(facts));
  }

  std::optional<SizeList> attention(size_t row, int64_t queries, int64_t keys) {
    SizeList sizes = {{"batch", at(row, "batch")},
                      {"queries", queries},
                      {"keys", keys},
                      {"head_dim", at(row, "head_dim")},
                      {"heads", at(row, "num_heads")}};
    if (table_.column("num_kv_heads")) sizes.push_back({"kv_heads", at(row, "num_kv_heads")});
    if (table_.column("window_size")) sizes.push_back({"window", at(row, "window_size")});
    if (table_.column("kv_dtype")) {
      const std::optional<Precision> p = precision(row, "kv_dtype");
      if (!p) return std::nullopt;
      sizes.push_back({"kv_dtype", compute_dtype(p->scheme, p->dtype)});
    }
    return sizes;
  }

  void add_attention(size_t row, const char* op, const std::optional<SizeList>& sizes,
                     RowFacts facts) {
    const std::optional<Precision> p = precision(row, "dtype");
    if (!p || !sizes) return;
    facts.warm = true;
    collector_.add_kernel({table_, row}, op, compute_dtype(p->scheme, p->dtype), *sizes, std::move(facts));
  }

  void prefill(size_t row, RowFacts facts) {
    const int64_t length = at(row, "seq_len");
    std::optional<SizeList> sizes = attention(row, length, length);
    // Tables of encoders have no column for key heads.
    if (sizes && table_.column("num_kv_heads")) sizes->push_back({"causal", 1});
    add_attention(row, "attention", sizes, std::move(facts));
  }

  /// kv_len counts the cached tokens; the new token attends to itself too.
  void decode(size_t row, RowFacts facts) {
    add_attention(row, "cached_attention", attention(row, 1, at(row, "kv_len") + 1),
                  std::move(facts));
  }

  void experts(size_t row, RowFacts facts) {
    const std::optional<Precision> p = precision(row, "dtype");
    if (!p) return;
    const int64_t experts = at(row, "num_experts"), ranks = at(row, "ep");
    const int64_t inner = at(row, "inter_size"), tensor_ranks = at(row, "tp");
    if (tensor_ranks < 1 || inner % tensor_ranks != 0 || ranks < 1 || experts % ranks != 0)
      return collector_.skip(table_.where, "ranks do not divide a layer of experts");
    SizeList sizes = {{"tokens", at(row, "num_tokens")},
                      {"ffn_dim", inner / tensor_ranks},
                      {"hidden_dim", at(row, "hidden_size")},
                      {"num_experts", experts},
                      {"top_k", at(row, "topk")},
                      {"ranks", ranks},
                      {"scheme", p->scheme},
                      {"gated", has_no_gate(row, facts.software) ? 0 : 1}};
    const std::string& spread = table_.rows[row][table_.require_column("distribution")];
    constexpr std::string_view kPowerLaw = "power_law_";
    if (spread.starts_with(kPowerLaw)) {
      const double exponent = std::stod(spread.substr(kPowerLaw.size()));
      sizes.push_back({"skew", static_cast<int64_t>(100 * exponent + 0.5)});
    } else if (spread != "balanced") {
      return collector_.skip(table_.where,
                             fmt::format("distribution '{}' is not forecast", spread));
    }
    facts.warm = true;
    collector_.add_kernel({table_, row}, "experts", p->dtype, sizes, std::move(facts));
  }

  /// The layers of Nemotron 3, whose experts use relu² without a gate. The tables do not state it,
  /// but vLLM and TensorRT-LLM run them at up to 1.3 times the DRAM bandwidth that a gate would
  /// take. SGLang's rows of the same layers stay below it: measured with a gate.
  bool has_no_gate(size_t row, Software software) const {
    if (software == Software::kSglang) return false;
    const int64_t experts = at(row, "num_experts"), top_k = at(row, "topk");
    return (experts == 512 && top_k == 22) ||
           (experts == 128 && top_k == 6 && at(row, "hidden_size") == 2688 &&
            at(row, "inter_size") == 1856);
  }

  const CsvTable& table_;
  Collector& collector_;
  size_t gpu_, software_, latency_;
};

void read_aiconfigurator(const CsvTable& table, Collector& collector) {
  Table(table, collector).read();
}

}  // namespace

extern const LayoutDef kAiconfiguratorLayout = {
    "aiconfigurator", {"gpu", "software", "latency_ms"}, read_aiconfigurator};

}  // namespace tilecast
