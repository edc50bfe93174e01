// Imports the config of a recommendation model (DLRM, Naumov et al. 2019): Tilecast's own JSON with
// the sizes of its parts and the list of its embedding tables (docs/explanation/recommendation.md).
//
//   dense features → bottom MLP ─┐
//   ids → embedding tables ──────┴→ interaction → top MLP → one logit
//
// Interactions: "dot" (products of all pairs of vectors, beside the bottom MLP's output), "cat",
// and "dcn" (DCN v2 with low-rank cross layers, Wang et al. 2021, as in MLPerf's DLRM-DCNv2).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/checked.h"
#include "base/text.h"
#include "embedding/tables.h"
#include "importers/model.h"
#include "ops/builder.h"
#include "tilecast/choices.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kWidestMlp = 1 << 20, kMostMlpLayers = 1000;

enum class Interaction : uint8_t { kDot, kCat, kDcn };
constexpr std::string_view kInteractions[] = {"dot", "cat", "dcn"};

struct DlrmConfig {
  int64_t dense_features = 0;
  std::vector<int64_t> bottom, top;
  Interaction interaction = Interaction::kDot;
  int64_t cross_layers = 0, cross_rank = 0;
  TableSet tables;
};

std::vector<int64_t> widths(const JsonObject& config, const std::string& key) {
  const Json& list = config.has(key) ? config.json()[key] : Json();
  if (!list.is_array() || list.empty() || list.size() > kMostMlpLayers)
    config.fail(key, "expected a list of layer widths, such as [512, 256, 128]");
  std::vector<int64_t> result;
  for (const Json& entry : list) {
    const std::optional<int64_t> width = whole_number(entry, 1, kWidestMlp);
    if (!width) config.fail(key, fmt::format("expected whole numbers from 1 to {}", kWidestMlp));
    result.push_back(*width);
  }
  return result;
}

DlrmConfig dlrm_config(const JsonObject& config) {
  config.reject_unknown({"model_type", "tilecast_note", "source", "dense_features", "bottom_mlp",
                         "top_mlp", "interaction", "cross_layers", "cross_rank", "embedding_dim",
                         "sparse_optimizer", "reuse", "tables"});
  DlrmConfig c;
  c.dense_features = config.integer({"dense_features"}, 1, kWidestMlp);
  c.bottom = widths(config, "bottom_mlp");
  c.top = widths(config, "top_mlp");
  const std::string name = config.string("interaction");
  const auto* found = std::find(std::begin(kInteractions), std::end(kInteractions), name);
  if (found == std::end(kInteractions))
    config.fail("interaction", fmt::format("expected {}, found '{}'",
                                           fmt::join(kInteractions, ", "), shown_name(name)));
  c.interaction = static_cast<Interaction>(found - std::begin(kInteractions));
  if (c.interaction == Interaction::kDcn) {
    c.cross_layers = config.integer({"cross_layers"}, 1, kMostMlpLayers);
    c.cross_rank = config.integer({"cross_rank"}, 1, kWidestMlp);
  }
  c.tables = read_tables(config);
  if (c.interaction == Interaction::kDot) {
    for (const EmbeddingTable& table : c.tables.tables) {
      if (table.dim != c.bottom.back())
        config.fail("interaction",
                    fmt::format("dot products need vectors of one length: the bottom MLP ends in "
                                "{}, table '{}' has dim {}",
                                c.bottom.back(), shown_name(table.name), table.dim));
    }
  }
  return c;
}

/// Adds the nodes of one batch.
class Dlrm {
 public:
  Dlrm(Graph& graph, const DlrmConfig& config, const GraphRequest& request)
      : b_(graph), c_(config), r_(request) {}

  void build(bool with_tables) {
    b_.begin_segment("dlrm", 1);
    const TensorId sums = with_tables ? pooled() : received();
    const TensorId features = b_.input("dense_features", {r_.batch, c_.dense_features}, r_.dtype);
    const TensorId bottom = bottom_mlp(features);
    b_.graph().outputs = {mlp(interact(bottom, sums), c_.top, "top_mlp", false)};
  }

 private:
  const Shape& shape(TensorId id) { return b_.graph().tensor(id).shape; }

  TensorId linear(TensorId x, const std::string& name, int64_t out, bool bias = true) {
    std::vector<TensorId> inputs = {x,
                                    b_.weight(name + ".weight", {out, shape(x).back()}, r_.dtype)};
    if (bias) inputs.push_back(b_.weight(name + ".bias", {out}, r_.dtype));
    return b_.op("linear", std::move(inputs), name);
  }

  TensorId mlp(TensorId x, const std::vector<int64_t>& widths, std::string_view name,
               bool last_relu) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string layer = fmt::format("{}.{}", name, i);
      x = linear(x, layer, widths[i]);
      if (i + 1 < widths.size() || last_relu) x = b_.op("relu", {x}, layer + ".relu");
    }
    return x;
  }

  TensorId bottom_mlp(TensorId features) {
    const RoleScope role(b_, Role::kBottomMlp);
    return mlp(features, c_.bottom, "bottom_mlp", true);
  }

  TensorId received() {
    int64_t dims = 0;
    for (const EmbeddingTable& table : c_.tables.tables) dims += table.dim;
    return b_.tensor({.name = "received.embeddings",
                      .shape = {r_.batch, dims},
                      .dtype = r_.dtype,
                      .kind = TensorKind::kInput,
                      .role = Role::kReceived});
  }

  /// One launch for all tables of a dtype.
  TensorId pooled() {
    std::vector<DType> dtypes;
    for (const EmbeddingTable& table : c_.tables.tables) {
      const DType dtype = table.dtype.value_or(r_.dtype);
      if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) dtypes.push_back(dtype);
    }
    std::vector<TensorId> sums;
    for (const DType dtype : dtypes) sums.push_back(bags_of(dtype));
    return sums.size() == 1 ? sums[0] : b_.op("cat", sums, "embeddings.cat", {{"dim", int64_t{1}}});
  }

  TensorId bags_of(DType dtype) {
    constexpr double kMillion = 1e6;
    std::vector<TensorId> inputs = {-1};
    Shape lookups, recorded, reuse, used_rows;
    int64_t ids = 0;
    bool counted = false;
    for (const EmbeddingTable& table : c_.tables.tables) {
      if (table.dtype.value_or(r_.dtype) != dtype) continue;
      inputs.push_back(
          b_.weight(fmt::format("embeddings.{}", table.name), {table.rows, table.dim}, dtype));
      b_.graph().tensor(inputs.back()).frozen = true;  // updated by its own backward kernel
      lookups.push_back(lookups_of(table, r_.batch));
      ids = checked_add(ids, lookups.back());
      const Reuse* how = c_.tables.reuse_of(table);
      ReuseShares shares{};
      int64_t of_recording = lookups.back();
      if (how != nullptr && how->zipf_exponent)
        shares = zipf_shares(*how->zipf_exponent, static_cast<double>(table.rows),
                             static_cast<double>(lookups.back()));
      if (how != nullptr && how->shares) shares = *how->shares;
      if (how != nullptr && !how->zipf_exponent) of_recording = lookups_of(table, how->batch);
      const ReuseCounts counts = how == nullptr ? ReuseCounts{} : how->rows;
      counted = counted || !counts.empty();
      append_counts(used_rows, counts);
      recorded.push_back(of_recording);
      for (const double share : shares) reuse.push_back(std::llround(kMillion * share));
    }
    inputs[0] = b_.input(fmt::format("ids.{}", dtype_name(dtype)), {ids}, DType::kInt64);
    std::vector<Attribute> attributes = {
        {"bags", r_.batch},
        {"lookups", lookups},
        {"reuse", reuse},
        {"recorded_lookups", recorded},
        {"optimizer", std::string(choice_word(c_.tables.optimizer))},
        {"dtype", r_.dtype}};
    if (counted) attributes.push_back({"used_rows", used_rows});
    return b_.op("embedding_bags", std::move(inputs),
                 fmt::format("embeddings.{}", dtype_name(dtype)), std::move(attributes));
  }

  TensorId interact(TensorId bottom, TensorId sums) {
    if (c_.interaction == Interaction::kDot) return dot(bottom, sums);
    const TensorId x = b_.op("cat", {bottom, sums}, "interaction.cat", {{"dim", int64_t{1}}});
    return c_.interaction == Interaction::kDcn ? cross(x) : x;
  }

  /// The products of all pairs of different vectors, below the diagonal.
  TensorId dot(TensorId bottom, TensorId sums) {
    const int64_t dim = c_.bottom.back();
    const int64_t vectors = static_cast<int64_t>(c_.tables.tables.size()) + 1;
    const TensorId all = b_.op("cat", {bottom, sums}, "interaction.cat", {{"dim", int64_t{1}}});
    const TensorId x =
        b_.op("view", {all}, "interaction.view", {{"shape", Shape{r_.batch, vectors, dim}}});
    const TensorId turned =
        b_.op("transpose", {x}, "interaction.transpose", {{"order", Shape{0, 2, 1}}});
    const TensorId products = b_.op("matmul", {x, turned}, "interaction.dot");
    const TensorId flat = b_.op("view", {products}, "interaction.flat",
                                {{"shape", Shape{r_.batch, vectors * vectors}}});
    const TensorId pairs =
        b_.input("interaction.pairs", {1, vectors * (vectors - 1) / 2}, DType::kInt64);
    const TensorId below = b_.op("gather", {flat, pairs}, "interaction.pairs");
    return b_.op("cat", {bottom, below}, "interaction.out", {{"dim", int64_t{1}}});
  }

  /// x ← x0 * (W V x + b) + x
  TensorId cross(TensorId first) {
    const int64_t width = shape(first).back();
    TensorId x = first;
    for (int64_t i = 0; i < c_.cross_layers; ++i) {
      const std::string name = fmt::format("interaction.cross.{}", i);
      const TensorId low = linear(x, name + ".V", c_.cross_rank, false);
      const TensorId wide = linear(low, name + ".W", width);
      const TensorId product = b_.op("mul", {first, wide}, name + ".mul");
      x = b_.op("add", {product, x}, name + ".add");
    }
    return x;
  }

  GraphBuilder b_;
  const DlrmConfig& c_;
  const GraphRequest& r_;
};

bool is_dlrm(std::string_view, std::string_view content) {
  const std::string_view text = trim(content);
  return text.starts_with("{") && text.find("\"tables\"") != text.npos &&
         (text.find("\"dlrm\"") != text.npos || text.find("\"bottom_mlp\"") != text.npos);
}

Model import_dlrm(const ModelText& text) {
  const Json json = parse_json(text.content, text.where);
  const JsonObject config(json, text.where);
  // Shared, because the functions are copied with each request; read-only.
  const auto shared = std::make_shared<const DlrmConfig>(dlrm_config(config));
  const auto build = [shared](const GraphRequest& request, bool with_tables) {
    Graph graph;
    Dlrm(graph, *shared, request).build(with_tables);
    return graph;
  };
  Model model;
  model.family = "dlrm";
  model.note = config.optional_string({"tilecast_note"}).value_or("");
  model.default_seq = 1;
  model.fixed_seq = true;
  model.warnings = shared->tables.warnings;
  model.warnings.push_back(
      "FBGEMM's kernels of embedding tables were not measured: their times follow from a formula");
  model.build = [build](const GraphRequest& request) { return build(request, true); };
  model.recommendation = Recommendation{
      .tables = shared->tables,
      .build_dense = [build](const GraphRequest& request) { return build(request, false); }};
  return model;
}

}  // namespace

ImporterDef dlrm_importer() {
  return {.name = "dlrm",
          .doc = "config of a recommendation model with embedding tables",
          .sniff = is_dlrm,
          .import = import_dlrm};
}

}  // namespace tilecast
