#include "measurements/aiconfigurator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/number.h"
#include "base/text.h"
#include "measurements/slow_series.h"
#include "tilecast/error.h"

// The tables of aiconfigurator: gemm, attention_prefill, attention_decode, attention_encoder, moe
// here, mla_* and linear attention in files of their own. A table is recognized by its columns;
// other tables are listed as not forecast. Attention and experts were measured by replays with the
// same operands: operands that fit into L2 are warm. For matrix products the weights alternate
// between copies.

namespace tilecast {
namespace {

/// The tables' names of dtypes and quantization schemes; activations outside of a layer are
/// bfloat16.
std::optional<AiTable::Precision> find_precision(const std::string& name) {
  static const std::map<std::string, AiTable::Precision> kNames = {
      {"bfloat16", {DType::kBf16, QuantScheme::kNone}},
      {"float16", {DType::kFp16, QuantScheme::kNone}},
      {"fp8", {DType::kBf16, QuantScheme::kFp8}},
      {"fp8_block", {DType::kBf16, QuantScheme::kFp8Block}},
      {"int8_wo", {DType::kBf16, QuantScheme::kInt8WeightOnly}},
      {"int4_wo", {DType::kBf16, QuantScheme::kInt4WeightOnly}},
      {"sq", {DType::kBf16, QuantScheme::kInt8}},  // SmoothQuant: weights and activations in int8
      {"w4a16_mxfp4", {DType::kBf16, QuantScheme::kFp4WeightOnly}},
      {"w4a8_mxfp4_mxfp8", {DType::kBf16, QuantScheme::kFp4Fp8}},
      {"nvfp4", {DType::kBf16, QuantScheme::kFp4}}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

/// Bits of a stored weight, or of an element of attention.
std::optional<int64_t> bits_of(const std::string& dtype) {
  const auto found = find_precision(dtype);
  if (!found) return std::nullopt;
  return dtype_bits(found->scheme == QuantScheme::kNone ? found->dtype
                                                        : scheme_info(found->scheme).weight_dtype);
}

void read_product(AiTable& table, size_t row, RowFacts facts) {
  const auto p = table.precision(row, "dtype");
  if (!p) return;
  SizeList sizes = {
      {"m", table.size(row, "m")}, {"n", table.size(row, "n")}, {"k", table.size(row, "k")}};
  const bool stored = p->scheme != QuantScheme::kNone;
  if (stored) sizes.push_back({"scheme", p->scheme});
  facts.caches = Caches::kAlternating;
  table.add(row, stored ? "quantized_linear" : "gemm", p->dtype, sizes, std::move(facts));
}

std::optional<SizeList> attention_sizes(AiTable& table, size_t row, int64_t queries, int64_t keys) {
  SizeList sizes = {{"batch", table.size(row, "batch")},
                    {"queries", queries},
                    {"keys", keys},
                    {"head_dim", table.size(row, "head_dim")},
                    {"heads", table.size(row, "num_heads")}};
  if (table.has("num_kv_heads")) sizes.push_back({"kv_heads", table.size(row, "num_kv_heads")});
  if (table.has("window_size")) sizes.push_back({"window", table.size(row, "window_size")});
  if (table.has("kv_dtype")) {
    const auto p = table.precision(row, "kv_dtype");
    if (!p) return std::nullopt;
    sizes.push_back({"kv_dtype", compute_dtype(p->scheme, p->dtype)});
  }
  return sizes;
}

void add_attention(AiTable& table, size_t row, const char* op, const std::optional<SizeList>& sizes,
                   RowFacts facts) {
  const auto p = table.precision(row, "dtype");
  if (!p || !sizes) return;
  facts.caches = Caches::kWarm;
  table.add(row, op, compute_dtype(p->scheme, p->dtype), *sizes, std::move(facts));
}

void read_prefill(AiTable& table, size_t row, RowFacts facts) {
  const int64_t length = table.size(row, "seq_len");
  std::optional<SizeList> sizes = attention_sizes(table, row, length, length);
  // Tables of encoders have no column for key heads.
  if (sizes && table.has("num_kv_heads")) sizes->push_back({"causal", 1});
  add_attention(table, row, "attention", sizes, std::move(facts));
}

/// kv_len counts the cached tokens; the new token attends to itself too.
void read_decode(AiTable& table, size_t row, RowFacts facts) {
  add_attention(table, row, "cached_attention",
                attention_sizes(table, row, 1, table.size(row, "kv_len") + 1), std::move(facts));
}

/// The layers of Nemotron 3, whose experts use relu² without a gate. The tables do not state it,
/// but vLLM and TensorRT-LLM run them at up to 1.3 times the DRAM bandwidth that a gate would
/// take. SGLang's rows of the same layers stay below it: measured with a gate.
bool has_no_gate(const AiTable& table, size_t row, Software software) {
  if (software == software_of("sglang")) return false;
  const int64_t experts = table.size(row, "num_experts"), top_k = table.size(row, "topk");
  return (experts == 512 && top_k == 22) ||
         (experts == 128 && top_k == 6 && table.size(row, "hidden_size") == 2688 &&
          table.size(row, "inter_size") == 1856);
}

void read_experts(AiTable& table, size_t row, RowFacts facts) {
  const auto p = table.precision(row, "dtype");
  if (!p) return;
  if (table.measured_other_kernel(row))
    return table.skip(
        "layers of experts were also measured with kernels that the software runs for fewer or "
        "more tokens only");
  const int64_t experts = table.size(row, "num_experts"), ranks = table.size(row, "ep");
  const int64_t inner = table.size(row, "inter_size"), tensor_ranks = table.size(row, "tp");
  if (tensor_ranks < 1 || inner % tensor_ranks != 0 || ranks < 1 || experts % ranks != 0)
    return table.skip("ranks do not divide a layer of experts");
  SizeList sizes = {{"tokens", table.size(row, "num_tokens")},
                    {"ffn_dim", inner / tensor_ranks},
                    {"hidden_dim", table.size(row, "hidden_size")},
                    {"num_experts", experts},
                    {"top_k", table.size(row, "topk")},
                    {"ranks", ranks},
                    {"scheme", p->scheme},
                    {"gated", has_no_gate(table, row, facts.software) ? 0 : 1}};
  const std::string& spread = table.text(row, "distribution");
  constexpr std::string_view kPowerLaw = "power_law_";
  if (spread.starts_with(kPowerLaw)) {
    const std::optional<double> exponent = parse_number<double>(spread.substr(kPowerLaw.size()));
    constexpr double kLargest = 100;
    if (!exponent || !(std::abs(*exponent) <= kLargest))
      return table.skip(fmt::format("distribution '{}' is not forecast", shown_name(spread)));
    sizes.push_back({"skew", std::llround(100 * *exponent)});
  } else if (spread != "balanced") {
    return table.skip(fmt::format("distribution '{}' is not forecast", spread));
  }
  facts.caches = Caches::kWarm;
  table.add(row, "experts", p->dtype, sizes, std::move(facts));
}

/// In the order in which they are tried: tables of latent attention have fewer columns than those
/// of plain attention. Series of products are not compared: only their rows near the host's floor
/// say nothing of the kernel, and training finds these (train/host_rows.h).
std::vector<AiKind> all_kinds() {
  const std::vector<std::string_view> layer = {
      "hidden_size", "inter_size", "topk", "num_experts", "tp", "ep", "distribution"};
  const std::vector<std::string_view> heads = {"batch", "num_heads", "num_kv_heads", "head_dim",
                                               "window_size"};
  const std::vector<std::string_view> dtypes = {"dtype", "kv_dtype"};
  std::vector<AiKind> kinds = {
      {{"dtype", "m", "n", "k"}, read_product},
      {{"dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "tp", "ep",
        "distribution"},
       read_experts,
       SeriesColumns{"num_tokens", layer, {"dtype"}}},
      {{"dtype", "batch", "kv_len", "num_heads", "head_dim"},
       read_decode,
       SeriesColumns{"kv_len", heads, dtypes}},
      {{"dtype", "batch", "seq_len", "num_heads", "head_dim"},
       read_prefill,
       SeriesColumns{"seq_len", heads, dtypes}},
  };
  for (const std::vector<AiKind>& more : {latent_attention_tables(), scan_tables()})
    kinds.insert(kinds.end(), more.begin(), more.end());
  return kinds;
}

void read_aiconfigurator(const CsvTable& csv, Collector& collector) {
  static const std::vector<AiKind> kKinds = all_kinds();
  AiTable table(csv, collector);
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const AiKind& k) {
    return std::all_of(k.columns.begin(), k.columns.end(),
                       [&](std::string_view c) { return table.has(c); });
  });
  if (kind == kKinds.end())
    return table.skip(
        fmt::format("{} rows of a table of this kind are not forecast; its columns: {}",
                    csv.rows.size(), join(csv.header, ", ")));
  std::optional<SlowSeries> slow;
  if (kind->series) slow.emplace(csv, *kind->series, bits_of);
  for (size_t row = 0; row < csv.rows.size(); ++row) {
    const std::string* why = slow ? slow->reason(row) : nullptr;
    if (why != nullptr) {
      table.skip(*why);
    } else if (std::optional<RowFacts> facts = table.facts(row)) {
      kind->read(table, row, std::move(*facts));
    }
  }
}

}  // namespace

AiTable::AiTable(const CsvTable& table, Collector& collector)
    : table_(table),
      collector_(collector),
      gpu_(table.require_column("gpu")),
      software_(table.require_column("software")),
      latency_(table.require_column("latency_ms")) {}

std::optional<AiTable::Precision> AiTable::precision(size_t row, std::string_view column) {
  const std::string& name = text(row, column);
  const std::optional<Precision> found = find_precision(name);
  if (!found) skip(fmt::format("dtype '{}' is not forecast", name));
  return found;
}

bool AiTable::measured_other_kernel(size_t row) {
  // The tables hold TensorRT-LLM's layers in FP4 twice: by kernels for few tokens, and by those for
  // many, which take two to ten times as long for few. TensorRT-LLM chooses the former for up to
  // 128 tokens where it has them (aiconfigurator's own look-up does the same).
  constexpr std::string_view kFewTokens = "moe_torch_flow_min_latency";
  constexpr int64_t kMostTokens = 128;
  if (!has("kernel")) return false;
  const auto layer = [&](size_t of) {
    std::string key;
    for (const std::string_view column : {"gpu", "software", "dtype", "hidden_size", "inter_size",
                                          "topk", "num_experts", "tp", "ep"})
      key.append(text(of, column)).push_back(',');
    return key;
  };
  if (!layers_with_few_token_kernels_) {
    layers_with_few_token_kernels_.emplace();
    for (size_t other = 0; other < table_.rows.size(); ++other) {
      if (text(other, "kernel") == kFewTokens) layers_with_few_token_kernels_->insert(layer(other));
    }
  }
  const bool few = size(row, "num_tokens") <= kMostTokens;
  if (text(row, "kernel") == kFewTokens) return !few;
  return few && !layers_with_few_token_kernels_->empty() &&
         layers_with_few_token_kernels_->contains(layer(row));
}

std::optional<RowFacts> AiTable::facts(size_t row) {
  // "vllm 0.24.0": the version is ignored.
  const std::string& name = table_.rows[row][software_];
  const std::optional<Software> known = find_software(name.substr(0, name.find(' ')));
  if (!known) {
    skip(fmt::format("software '{}' is unknown", name));
    return std::nullopt;
  }
  return RowFacts{.gpu = table_.rows[row][gpu_],
                  .seconds = table_.number(row, latency_) * 1e-3,
                  .software = *known};
}

extern const LayoutDef kAiconfiguratorLayout = {
    "aiconfigurator", {"gpu", "software", "latency_ms"}, read_aiconfigurator};

}  // namespace tilecast
