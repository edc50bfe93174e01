// Several embedding tables in one launch, as FBGEMM's table-batched embeddings read them, with a
// sparse optimizer in the backward pass: no gradient of a table is stored.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/checked.h"
#include "ops/embedding_work.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

constexpr int kMostTables = 4096;
/// Unit of the shares in the attribute `reuse`.
constexpr double kMillion = 1e6;

/// Where the tables stand among the inputs.
struct Operand {
  size_t first_table, ids;
};
constexpr Operand kForward = {1, 0}, kBackward = {2, 1};  // backward: dy comes first

bool is_table(const OpContext& context, size_t input) {
  return context.input(input).kind != TensorKind::kOptimizer;
}

size_t table_count(const OpContext& context, const Operand& o) {
  size_t count = 0;
  for (size_t i = o.first_table; i < context.input_count() && is_table(context, i); ++i) ++count;
  return count;
}

const Shape& lookups_of(const OpContext& context) { return context.attribute<Shape>("lookups"); }

/// Counts of table i; empty: none are stated. All 0 counts as stated: each lookup goes to another
/// row.
ReuseCounts counts_of(const Shape& used_rows, size_t i) {
  if (used_rows.empty()) return {};
  const auto first = used_rows.begin() + static_cast<int64_t>(i * kMostReuseCounts);
  if (*first == kNoReuseCounts) return {};
  return {first, first + kMostReuseCounts};
}

/// nullopt: as many as in this batch.
std::optional<int64_t> recorded_of(const Shape& recorded_lookups, size_t i) {
  if (recorded_lookups.empty() || recorded_lookups[i] <= 0) return std::nullopt;
  return recorded_lookups[i];
}

void check(const OpContext& context, const Operand& o) {
  const size_t tables = table_count(context, o);
  const Tensor& ids = context.input(o.ids);
  if (ids.dtype != DType::kInt64 && ids.dtype != DType::kInt32)
    context.fail(fmt::format("expected whole-number ids, found {}", dtype_name(ids.dtype)));
  for (size_t i = 0; i < tables; ++i) {
    const Tensor& table = context.input(o.first_table + i);
    if (table.shape.size() != 2 || table.dtype != context.input(o.first_table).dtype)
      context.fail(fmt::format("expected tables [rows, dim] of one dtype, found {} of {}",
                               format_shape(table.shape), dtype_name(table.dtype)));
  }
  int64_t lookups = 0;
  for (const int64_t count : lookups_of(context)) lookups = checked_add(lookups, count);
  if (lookups_of(context).size() != tables || lookups != element_count(ids.shape))
    context.fail(
        fmt::format("attribute 'lookups': expected {} numbers that sum up to the {} ids, "
                    "found {} that sum up to {}",
                    tables, element_count(ids.shape), lookups_of(context).size(), lookups));
  const Shape& reuse = context.attribute<Shape>("reuse");
  if (!reuse.empty() && reuse.size() != kReuseBins * tables)
    context.fail(
        fmt::format("attribute 'reuse': expected {} numbers for each of {} tables, or "
                    "none, found {}",
                    kReuseBins, tables, reuse.size()));
  const Shape& counts = context.attribute<Shape>("used_rows");
  if (!counts.empty() && counts.size() != kMostReuseCounts * tables)
    context.fail(
        fmt::format("attribute 'used_rows': expected {} numbers for each of {} tables, or "
                    "none, found {}",
                    kMostReuseCounts, tables, counts.size()));
  const Shape& recorded = context.attribute<Shape>("recorded_lookups");
  if (!recorded.empty() && recorded.size() != tables)
    context.fail(
        fmt::format("attribute 'recorded_lookups': expected a number for each of {} "
                    "tables, or none, found {}",
                    tables, recorded.size()));
  for (size_t i = 0; i < tables && !counts.empty(); ++i) {
    const std::string why =
        contradiction(counts_of(counts, i), context.input(o.first_table + i).shape[0],
                      recorded_of(recorded, i).value_or(lookups_of(context)[i]));
    if (!why.empty()) context.fail(fmt::format("attribute 'used_rows': table {}: {}", i, why));
  }
}

/// How the rows of table i are used. Shares of 0 alone: all rows alike.
TableAccess access_of(const OpContext& context, size_t i, double rows, double lookups) {
  const Shape& reuse = context.attribute<Shape>("reuse");
  const std::optional<int64_t> stated =
      recorded_of(context.attribute<Shape>("recorded_lookups"), i);
  const double recorded = stated ? static_cast<double>(*stated) : lookups;
  if (const ReuseCounts counts = counts_of(context.attribute<Shape>("used_rows"), i);
      !counts.empty())
    return counted_access(counts, rows, lookups, recorded);
  ReuseShares shares{};
  double sum = 0;
  for (size_t bin = 0; bin < kReuseBins && !reuse.empty(); ++bin) {
    shares[bin] = static_cast<double>(reuse[i * kReuseBins + bin]);
    sum += shares[bin];
  }
  if (sum <= 0) return uniform_access(rows, lookups);
  for (double& share : shares) share /= sum;
  return histogram_access(shares, rows, lookups, recorded);
}

std::vector<TableWork> works_of(const OpContext& context, const Operand& o, DType result) {
  std::vector<TableWork> works;
  const size_t tables = table_count(context, o);
  const auto bags = static_cast<double>(context.integer("bags"));
  for (size_t i = 0; i < tables; ++i) {
    const Tensor& table = context.input(o.first_table + i);
    const auto rows = static_cast<double>(table.shape[0]);
    const auto lookups = static_cast<double>(lookups_of(context)[i]);
    works.push_back({.rows = rows,
                     .dim = static_cast<double>(table.shape[1]),
                     .bags = bags,
                     .element_bytes = static_cast<double>(dtype_bits(table.dtype)) / 8,
                     .result_bytes = static_cast<double>(dtype_bits(result)) / 8,
                     .access = access_of(context, i, rows, lookups)});
  }
  return works;
}

// embedding_bags: ids [lookups], tables [rows, dim] … → [bags, sum of dims].
std::vector<TensorSpec> infer_bags(const OpContext& context) {
  check(context, kForward);
  int64_t dims = 0;
  for (size_t i = 0; i < table_count(context, kForward); ++i)
    dims = checked_add(dims, context.input(kForward.first_table + i).shape[1]);
  const AttributeValue* dtype = context.node.find_attribute("dtype");
  return {{.shape = {context.integer("bags"), dims},
           .dtype = dtype != nullptr ? std::get<DType>(*dtype)
                                     : context.input(kForward.first_table).dtype}};
}

void work_bags(const OpContext& context, std::vector<Kernel>& kernels) {
  const DType dtype = context.output(0).dtype;
  kernels.push_back(tables_kernel({.tables = works_of(context, kForward, dtype), .dtype = dtype}));
}

SparseOptimizer optimizer_of(const OpContext& context) {
  const std::string& name = context.attribute<std::string>("optimizer");
  const auto words = choice_words(SparseOptimizer{});
  const auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end())
    context.fail(fmt::format("attribute 'optimizer': expected {}, found '{}'",
                             fmt::join(words, " or "), name));
  return static_cast<SparseOptimizer>(found - words.begin());
}

void backward_bags(GradientBuilder& g, const Node& node) {
  // A copy: adding tensors may move them.
  const std::vector<TensorId> inputs = node.inputs;
  const std::vector<Attribute> attributes = node.attributes;
  int64_t rows = 0;
  for (size_t i = kForward.first_table; i < inputs.size(); ++i)
    rows = checked_add(rows, g.tensor(inputs[i]).shape[0]);
  std::vector<TensorId> operands = {g.dense(g.gradient(node.outputs[0])), inputs[0]};
  operands.insert(operands.end(), inputs.begin() + 1, inputs.end());
  const SparseOptimizer optimizer = optimizer_of({.graph = g.graph(), .node = node});
  if (state_bytes_per_row(optimizer) > 0)
    operands.push_back(g.builder().tensor({.name = node.name + ".state",
                                           .shape = {rows},
                                           .dtype = DType::kFp32,
                                           .kind = TensorKind::kOptimizer}));
  std::vector<Attribute> kept;
  for (const Attribute& attribute : attributes) {
    if (attribute.name != "dtype") kept.push_back(attribute);
  }
  const TensorId done = g.op("embedding_bags_backward", operands, kept);
  g.builder().graph().tensor(done).kind = TensorKind::kReference;  // the kernels work in place
}

std::vector<TensorSpec> infer_bags_backward(const OpContext& context) {
  check(context, kBackward);
  optimizer_of(context);
  return {{.shape = {1}, .dtype = DType::kFp32}};
}

void work_bags_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dy = context.input(0);
  const std::vector<TableWork> works = works_of(context, kBackward, dy.dtype);
  kernels.push_back(
      tables_kernel({.tables = works, .pass = EmbeddingBag::Pass::kSort, .dtype = DType::kInt64}));
  kernels.push_back(tables_kernel({.tables = works,
                                   .pass = EmbeddingBag::Pass::kUpdate,
                                   .optimizer = optimizer_of(context),
                                   .dtype = dy.dtype}));
}

std::vector<SizeDef> bags_size_defs() {
  return {{.name = "tables", .doc = "that one launch reads, all alike", .max = kMostTables},
          {.name = "bags", .doc = "sums that are taken of each table", .other_names = {"m"}},
          {.name = "pooling", .doc = "rows of a sum"},
          {.name = "dim", .doc = "elements of a row", .other_names = {"n"}},
          {.name = "table_rows", .doc = "rows of a table", .other_names = {"k"}},
          {.name = "skew_percent",
           .doc = "100 x the exponent of the power law of the rows' popularity; 0: all alike",
           .default_value = int64_t{0},
           .min = 0,
           .max = 400},
          reuse_size()};
}

Operands bags_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t lookups = checked_multiply(s["bags"], s["pooling"]);
  Operands operands{{b.input("ids", {checked_multiply(lookups, s["tables"])}, DType::kInt64)}, {}};
  const TensorId table = b.input("table", {s["table_rows"], s["dim"]}, s.dtype());
  operands.inputs.insert(operands.inputs.end(), static_cast<size_t>(s["tables"]), table);
  operands.attributes = {{"bags", s["bags"]},
                         {"lookups", Shape(static_cast<size_t>(s["tables"]), lookups)}};
  if (const ReuseCounts counts = reuse_of(s); !counts.empty()) {
    if (s["skew_percent"] != 0)
      s.fail("reuse and skew_percent both say how often rows are used; give one of them");
    Shape used_rows;
    for (int64_t t = 0; t < s["tables"]; ++t) append_counts(used_rows, counts);
    operands.attributes.push_back({"used_rows", std::move(used_rows)});
    return operands;
  }
  if (s["skew_percent"] == 0) return operands;
  const ReuseShares shares =
      zipf_shares(static_cast<double>(s["skew_percent"]) / 100,
                  static_cast<double>(s["table_rows"]), static_cast<double>(lookups));
  Shape reuse;
  for (int64_t t = 0; t < s["tables"]; ++t) {
    for (const double share : shares) reuse.push_back(std::llround(kMillion * share));
  }
  operands.attributes.push_back({"reuse", reuse});
  return operands;
}

Operands bags_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = bags_operands(b, s);
  operands.inputs.insert(
      operands.inputs.begin(),
      b.input("dy", {s["bags"], checked_multiply(s["tables"], s["dim"])}, s.dtype()));
  return operands;
}

std::vector<AttributeDef> bags_attributes() {
  return {
      count_attribute("bags", "sums that are taken of each table"),
      {.name = "lookups",
       .doc = "ids of each table",
       .type = AttributeType::kIntegers,
       .required = true},
      {.name = "reuse",
       .doc = "for each table, of a million lookups those that go to rows which the batch uses "
              "once, twice, 3-4, 5-8, ..., 16385-32768 times, more often; 0s: all rows alike",
       .type = AttributeType::kIntegers,
       .default_value = Shape{}},
      {.name = "used_rows",
       .doc = "in place of `reuse`: for each table, rows that the batch uses once, twice, 4, 8, "
              "..., 65536 times; all other lookups go to rows that are used once; -1s: `reuse` "
              "counts",
       .type = AttributeType::kIntegers,
       .default_value = Shape{},
       .min = kNoReuseCounts},
      {.name = "recorded_lookups",
       .doc = "of each table, in the batch recorded for `reuse` or `used_rows`; "
              "default: `lookups`",
       .type = AttributeType::kIntegers,
       .default_value = Shape{}},
      {.name = "optimizer",
       .doc = "of the tables in training: sgd or rowwise_adagrad",
       .type = AttributeType::kText,
       .default_value = std::string("sgd")}};
}

}  // namespace

std::vector<OpDef> embedding_table_ops() {
  std::vector<AttributeDef> forward = bags_attributes();
  forward.push_back({.name = "dtype",
                     .doc = "of the sums; default: as the tables",
                     .type = AttributeType::kDType});
  return {{.name = "embedding_bags",
           .doc = "sums of rows of several tables, in one launch (table-batched embeddings)",
           .aten = "fbgemm::split_embedding_codegen_lookup",
           .onnx = "",
           .min_inputs = 2,
           .max_inputs = kMostTables + 1,
           .attributes = forward,
           .infer = infer_bags,
           .work = work_bags,
           .backward = backward_bags,
           .updates_in_backward = true,
           .sizes = bags_size_defs(),
           .operands = bags_operands,
           .example = "i: int64[192] w: fp32[1000, 64] v: fp32[50, 32] {bags=64, lookups=[128, "
                      "64]}"},
          {.name = "embedding_bags_backward",
           .doc = "sorts the ids, then updates each row that was used: a sparse optimizer",
           .aten = "fbgemm::split_embedding_backward_codegen",
           .onnx = "",
           .min_inputs = 3,
           .max_inputs = kMostTables + 3,
           .attributes = bags_attributes(),
           .infer = infer_bags_backward,
           .work = work_bags_backward,
           .sizes = bags_size_defs(),
           .operands = bags_backward_operands,
           .example = "dy: fp32[64, 96] i: int64[192] w: fp32[1000, 64] v: fp32[50, 32] {bags=64, "
                      "lookups=[128, 64]}"}};
}

}  // namespace tilecast
