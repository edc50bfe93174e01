#include <fmt/format.h>

#include <string>

#include "base/text.h"
#include "measurements/layouts.h"

// Single layers of a server, as LLMServingSim profiles them: the kernels' own times in an engine
// with one layer. Weights and caches come from DRAM, since the rest of the layer has run in
// between. Activations do not where L2 is large: the kernel before has just written them.

namespace tilecast {
namespace {

/// Sizes of a model whose layers were profiled; the table states its name alone.
struct LayerSizes {
  std::string_view model;
  int64_t width, inner, heads, kv_heads, head_dim, vocabulary;
};
// From the models' config.json.
constexpr LayerSizes kModels[] = {
    {"meta-llama--Llama-3.1-8B", 4096, 14336, 32, 8, 128, 128256},
};

class ServedLayers {
 public:
  ServedLayers(const CsvTable& table, Collector& collector)
      : table_(table), collector_(collector) {}

  void read() {
    for (size_t row = 0; row < table_.rows.size(); ++row) read_row(row);
  }

 private:
  const std::string& text(size_t row, std::string_view column) const {
    return table_.rows[row][table_.require_column(column)];
  }
  int64_t size(size_t row, std::string_view column) const {
    return table_.integer(row, table_.require_column(column));
  }
  void skip(const std::string& why) { collector_.skip(table_.where, why); }

  void read_row(size_t row) {
    const std::string& name = text(row, "model");
    const LayerSizes* model = nullptr;
    for (const LayerSizes& known : kModels) {
      if (known.model == name) model = &known;
    }
    if (model == nullptr)
      return skip(fmt::format("the sizes of model '{}' are not known", shown_name(name)));
    const std::string& software = text(row, "software");
    if (!find_software(software.substr(0, software.find(' '))))
      return skip(fmt::format("software '{}' is unknown", shown_name(software)));
    if (text(row, "dtype") != "bf16" && text(row, "dtype") != "fp16")
      return skip(fmt::format("dtype '{}' is not forecast", shown_name(text(row, "dtype"))));
    const int64_t ranks = size(row, "tp");
    if (ranks < 1 || model->heads % ranks != 0 || model->kv_heads % ranks != 0 ||
        model->inner % ranks != 0 || model->vocabulary % ranks != 0)
      return skip("ranks do not divide a layer");
    LayerSizes own = *model;
    own.heads /= ranks;
    own.kv_heads /= ranks;
    own.inner /= ranks;
    own.vocabulary /= ranks;
    if (text(row, "layer") == "attention") {
      read_attention(row, own);
    } else {
      read_layer(row, own);
    }
  }

  void read_layer(size_t row, const LayerSizes& of) {
    const std::string& layer = text(row, "layer");
    const int64_t tokens = size(row, "tokens"), queries = of.heads * of.head_dim;
    const int64_t keys = of.kv_heads * of.head_dim;
    const auto product = [&](int64_t n, int64_t k) {
      add(row, "gemm", {{"m", tokens}, {"n", n}, {"k", k}});
    };
    const auto rows = [&](const char* op, int64_t columns) {
      add(row, op, {{"rows", tokens}, {"columns", columns}});
    };
    if (layer == "qkv_proj") return product(queries + 2 * keys, of.width);
    if (layer == "o_proj") return product(of.width, queries);
    if (layer == "gate_up_proj") return product(2 * of.inner, of.width);
    if (layer == "down_proj") return product(of.width, of.inner);
    if (layer == "lm_head") return product(of.vocabulary, of.width);
    if (layer == "act_fn") return rows("gated_activation", of.inner);
    if (layer == "layernorm" || layer == "final_layernorm") return rows("add_rms_norm", of.width);
    if (layer == "rotary_emb") return rows("rotary", queries + keys);
    skip(fmt::format("layer '{}' is not compared: it is several kernels, or none that is forecast",
                     shown_name(layer)));
  }

  void read_attention(size_t row, const LayerSizes& of) {
    const int64_t chunk = size(row, "prefill_tokens"), decodes = size(row, "decodes");
    if (chunk > 0 && decodes > 0)
      return skip(
          "attention of prompts and of decoding sequences in one kernel is not forecast as one");
    if (chunk == 0 && decodes == 0) return skip("attention without queries");
    SizeList sizes = {
        {"head_dim", of.head_dim}, {"heads", of.heads}, {"kv_heads", of.kv_heads}, {"causal", 1}};
    const auto more = [&](const char* name, int64_t value) { sizes.push_back({name, value}); };
    if (chunk > 0) {
      more("batch", 1);
      more("queries", chunk);
      more("keys", chunk + size(row, "prefill_past"));
      return add(row, "attention", sizes, size(row, "prefill_past") > 0 ? " (after a prefix)" : "");
    }
    sizes.pop_back();  // one query attends to all keys
    more("batch", decodes);
    more("queries", 1);
    more("keys", size(row, "decode_past") + 1);
    add(row, "cached_attention", sizes);
  }

  void add(size_t row, const char* op, const SizeList& sizes, const char* note = "") {
    const std::string& software = text(row, "software");
    collector_.add_kernel({table_, row}, op,
                          text(row, "dtype") == "fp16" ? DType::kFp16 : DType::kBf16, sizes,
                          {.gpu = text(row, "gpu"),
                           .seconds = table_.number(row, table_.require_column("latency_s")),
                           .software = *find_software(software.substr(0, software.find(' '))),
                           .caches = Caches::kCold,
                           .label_note = note});
  }

  const CsvTable& table_;
  Collector& collector_;
};

}  // namespace

extern const LayoutDef kServedLayersLayout = {
    "served_layers",
    {"gpu", "software", "dtype", "model", "tp", "layer", "tokens", "prefill_tokens", "prefill_past",
     "decodes", "decode_past", "latency_s"},
    [](const CsvTable& table, Collector& collector) { ServedLayers(table, collector).read(); }};

}  // namespace tilecast
