#include "train/kind_table.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>

#include "base/rng.h"

namespace tilecast {
namespace {

/// One in this many rows is held out.
constexpr uint64_t kHeldOutShare = 10;

/// Features are logarithms and shares; one that hardly varies in training is not blown up.
constexpr double kSmallestScale = 0.1;

/// Rows that are held out together. Whole layers are measured at many batches and lengths: single
/// rows would be found among their neighbours.
uint64_t held_out_key(const Kernel& kernel, size_t row) {
  if (!kernel_kind_def(kernel_kind(kernel)).learning.from_layers) return row;
  uint64_t key = 0;
  const auto mix = [&](std::initializer_list<int64_t> values) {
    for (const int64_t value : values) key = key * 1000003 + static_cast<uint64_t>(value);
  };
  if (const Attention* attention = kernel.as<Attention>()) {
    mix({attention->head_dim, attention->heads, attention->kv_heads});
  } else if (const Experts* e = kernel.as<Experts>()) {
    mix({e->hidden_dim, e->ffn_dim, e->num_experts, e->top_k, e->ranks});
  } else if (const Scan* scan = kernel.as<Scan>()) {
    mix({scan->heads, scan->head_dim, scan->state_dim});
  } else if (const std::optional<BlockRows> block_rows = block_rows_of(kernel)) {
    mix({static_cast<int64_t>(block_rows->kind), block_rows->columns});
  } else if (kernel.is<Stream>()) {
    return row;
  } else {
    const Gemm gemm = gemm_of(kernel);
    // As of a layer without experts on one rank: another key would draw other rows.
    mix({gemm.k, gemm.n, 0, 0, 1});
  }
  return key;
}

void fit_scales(KindModel& model, const std::vector<Features>& rows, size_t width) {
  for (size_t j = 0; j < width; ++j) {
    double sum = 0, squares = 0;
    float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();
    for (const Features& features : rows) {
      const float v = features[j];
      sum += v;
      squares += static_cast<double>(v) * v;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    const auto count = static_cast<double>(rows.size());
    const double mean = sum / count;
    model.mean.push_back(static_cast<float>(mean));
    model.scale.push_back(static_cast<float>(
        std::max(kSmallestScale, std::sqrt(std::max(0.0, squares / count - mean * mean)))));
    model.minimum.push_back(low);
    model.maximum.push_back(high);
  }
}

}  // namespace

std::array<KindTable, kKernelKindCount> make_tables(const TrainingData& data, Weights& weights,
                                                    uint64_t seed) {
  std::array<KindTable, kKernelKindCount> tables;
  std::array<std::vector<Features>, kKernelKindCount> features;
  for (size_t i = 0; i < data.rows.size(); ++i) {
    const TrainingRow& row = data.rows[i];
    const KernelKind kind = kernel_kind(row.kernel);
    const auto n = static_cast<size_t>(kind);
    KindTable& table = tables[n];
    const double law_s = data.law_s(row);
    table.index.push_back(i);
    table.law_s.push_back(law_s);
    table.log_ratio.push_back(static_cast<float>(std::log(row.seconds / law_s)));
    table.held_out.push_back(
        Rng(seed ^ (held_out_key(row.kernel, i) * 0x9e37ull)).below(kHeldOutShare) == 0);
    features[n].push_back(kernel_kind_def(kind).make(row.kernel, row.conditions));
  }
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    if (features[n].empty()) continue;
    KindTable& table = tables[n];
    table.width = feature_names(static_cast<KernelKind>(n)).size();
    fit_scales(weights.models[n], features[n], table.width);
    table.inputs.resize(table.count() * table.width);
    for (size_t r = 0; r < table.count(); ++r)
      standardize(weights.models[n], features[n][r], &table.inputs[r * table.width]);
  }
  return tables;
}

ForestTask forest_task(const KindTable& table, const TrainingData& data,
                       const std::function<bool(size_t row)>& use) {
  ForestTask task{.width = table.width};
  for (size_t r = 0; r < table.count(); ++r) {
    if (!use(r)) continue;
    const float* at = &table.inputs[r * table.width];
    task.inputs.insert(task.inputs.end(), at, at + table.width);
    task.targets.push_back(table.log_ratio[r]);
    task.weights.push_back(data.rows[table.index[r]].weight);
  }
  return task;
}

std::vector<double> log_errors(const KindTable& table, const std::vector<size_t>& rows,
                               const TrainingData& data, const KindModel& model, KernelKind kind,
                               const Device& device) {
  const Applied applied = applied_residual(model, kind, device);
  std::map<Software, std::vector<size_t>> batches;  // positions in `rows`
  for (size_t i = 0; i < rows.size(); ++i)
    batches[data.rows[table.index[rows[i]]].conditions.software].push_back(i);
  std::vector<double> errors(rows.size());
  for (const auto& [software, batch] : batches) {
    std::vector<float> inputs, log_factors(batch.size(), 0.0f);
    for (const size_t i : batch) {
      const float* at = &table.inputs[rows[i] * table.width];
      inputs.insert(inputs.end(), at, at + table.width);
    }
    add_residual(applied, software, {inputs.data(), table.width, batch.size()}, log_factors);
    for (size_t b = 0; b < batch.size(); ++b)
      errors[batch[b]] = static_cast<double>(log_factors[b] - table.log_ratio[rows[batch[b]]]);
  }
  return errors;
}

}  // namespace tilecast
