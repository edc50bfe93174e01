#include "train/fold.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <tuple>

#include "base/rng.h"
#include "predict/efficiency.h"
#include "predict/power.h"
#include "train/tile_growth.h"

namespace tilecast {
namespace {

/// One in this many rows is held out.
constexpr uint64_t kHeldOutShare = 10;

/// Features are logarithms and shares; one that hardly varies in training is not blown up, or the
/// slightest step outside would throw a network far off.
constexpr double kSmallestScale = 0.1;

/// On a device that can't reach its peak for want of power, compute-bound products of more than
/// so many latency floors say nothing about how well a kernel uses a device, only how hot it was:
/// the base model does not learn from them. (Not judged by the measured time: that would keep just
/// the slowest.)
constexpr float kPowerLimited = 10;

/// A base model needs no more rows of one operator, precision, software and device than this: its
/// features are few. Device residuals learn from all.
constexpr uint64_t kMostBaseRows = 6000;

/// One network's rows, described.
struct Table {
  std::vector<Described> rows;
  std::vector<size_t> index;  ///< into TrainingData::rows
};

/// Rows that are held out together. Whole layers are measured at many batches and lengths: single
/// rows would be found among their neighbours.
uint64_t held_out_key(const Kernel& kernel, size_t row) {
  if (!net_def(net_of(kernel)).learning.keeps_layers) return row;
  uint64_t key = 0;
  const auto mix = [&](std::initializer_list<int64_t> values) {
    for (const int64_t value : values) key = key * 1000003 + static_cast<uint64_t>(value);
  };
  if (const Attention* attention = kernel.as<Attention>()) {
    mix({attention->head_dim, attention->heads, attention->kv_heads});
  } else if (const Experts* e = kernel.as<Experts>()) {
    mix({e->hidden_dim, e->ffn_dim, e->num_experts, e->top_k, e->ranks});
  } else {
    // As of a layer without experts on one rank: another key would draw other rows.
    const Gemm gemm = gemm_of(kernel);
    mix({gemm.k, gemm.n, 0, 0, 1});
  }
  return key;
}

void fit_scales(Net& net, const Table& table, const std::vector<bool>& use, size_t width) {
  for (size_t j = 0; j < width; ++j) {
    double sum = 0, squares = 0, used = 0;
    float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (!use[table.index[r]]) continue;
      const float v = table.rows[r].features[j];
      sum += v;
      squares += static_cast<double>(v) * v;
      used += 1;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    const double mean = sum / used;
    net.mean.push_back(static_cast<float>(mean));
    net.scale.push_back(static_cast<float>(
        std::max(kSmallestScale, std::sqrt(std::max(0.0, squares / used - mean * mean)))));
    net.minimum.push_back(low);
    net.maximum.push_back(high);
  }
}

}  // namespace

FoldPart empty_part(NetKind kind) {
  return {
      .rows = {.width = feature_names(kind).size(), .lowest_logit = net_def(kind).lowest_logit}};
}

void append_kernel(FoldPart& part, const Weights& weights, NetKind kind, const Kernel& kernel,
                   const Described& described, const Device& device) {
  std::vector<float>& inputs = part.rows.inputs;
  inputs.resize(inputs.size() + part.rows.width);
  standardize(weights.net(kind), described.features, &inputs[inputs.size() - part.rows.width]);
  part.rows.bounds.push_back(static_cast<float>(law_of(kind, described.bound, device).size()));
  part.caps.push_back(power_cap_logit(kernel, device, described.bound, weights.vector_pj_per_flop));
}

NetRows selected_rows(const NetRows& rows, size_t width, const std::vector<bool>& use) {
  NetRows out{.width = width, .lowest_logit = rows.lowest_logit};
  for (size_t r = 0; r < rows.count(); ++r) {
    if (!use[r]) continue;
    const float* at = &rows.inputs[r * rows.width];
    out.inputs.insert(out.inputs.end(), at, at + width);
    out.bounds.push_back(rows.bounds[r]);
    if (rows.log_times.empty()) continue;
    out.log_times.push_back(rows.log_times[r]);
    out.weights.push_back(rows.weights[r]);
  }
  return out;
}

namespace {

/// Rows that the base model learns from: all but those at the limit of the board's power.
std::vector<bool> shows_utilization(const FoldPart& part) {
  constexpr float kNoCap = 19;  // power_cap_logit gives 20 where power does not bind
  std::vector<bool> use(part.device.size());
  for (size_t r = 0; r < use.size(); ++r) {
    use[r] = part.caps[r] >= kNoCap || part.rows.bounds[r] < kPowerLimited;
  }
  return use;
}

bool has_window(const Kernel& kernel) {
  const Attention* attention = kernel.as<Attention>();
  return attention != nullptr && attention->window > 0;
}

/// Draws at most kMostBaseRows of each operator, precision, software and device. Attention with a
/// window is left to the residuals: some software has a kernel of its own for it, up to 50 times
/// slower even where the window does not bind.
void thin(std::vector<bool>& use, const FoldPart& part, const TrainingData& data) {
  std::map<std::tuple<size_t, size_t, std::string, Software>, uint64_t> counts;
  const auto key_of = [&](size_t r) {
    const TrainingRow& row = data.rows[part.index[r]];
    return std::make_tuple(row.device, row.group, std::string(precision_name(row.kernel)),
                           row.conditions.software);
  };
  for (size_t r = 0; r < use.size(); ++r) counts[key_of(r)] += 1;
  for (size_t r = 0; r < use.size(); ++r) {
    if (Rng(r + 1).below(counts[key_of(r)]) >= kMostBaseRows ||
        has_window(data.rows[part.index[r]].kernel))
      use[r] = false;
  }
}

/// Every device counts alike in the base model, however many rows it has.
void balance_devices(NetRows& rows, const FoldPart& part, const std::vector<bool>& use,
                     size_t devices) {
  std::vector<double> total(devices, 0);
  double all = 0, present = 0;
  std::vector<size_t> device;
  for (size_t r = 0; r < use.size(); ++r) {
    if (!use[r]) continue;
    device.push_back(part.device[r]);
    total[device.back()] += part.rows.weights[r];
    all += part.rows.weights[r];
  }
  for (const double t : total) present += t > 0 ? 1 : 0;
  for (size_t r = 0; r < rows.count(); ++r)
    rows.weights[r] *= static_cast<float>(all / present / total[device[r]]);
}

}  // namespace

void fill_fold(Fold& fold, const TrainingData& data, uint64_t seed) {
  const size_t count = data.rows.size();
  std::vector<bool> use(count);
  for (size_t i = 0; i < count; ++i) use[i] = data.rows[i].device != fold.left_out;
  for (const char* vendor : {"nvidia", "amd"}) {
    TileTree tree = grow_tile_tree(data, use, vendor);
    if (!tree.nodes.empty()) fold.weights.tiles.push_back(std::move(tree));
  }
  fold.weights.vector_pj_per_flop = fit_vector_pj_per_flop(data, fold.left_out);
  // A fold with a left-out GPU is judged on that GPU's rows: it needs no other networks.
  std::array<bool, kNetCount> needed{};
  for (size_t i = 0; i < count; ++i) {
    if (!fold.left_out || !use[i]) needed[static_cast<size_t>(net_of(data.rows[i].kernel))] = true;
  }
  std::array<Table, kNetCount> tables;
  for (size_t i = 0; i < count; ++i) {
    const TrainingRow& row = data.rows[i];
    const NetKind kind = net_of(row.kernel);
    const auto n = static_cast<size_t>(kind);
    if (!needed[n]) continue;
    Table& table = tables[n];
    table.rows.push_back(
        describe(fold.weights, kind, row.kernel, data.running(row), row.conditions));
    table.index.push_back(i);
  }
  for (size_t n = 0; n < kNetCount; ++n) {
    const auto kind = static_cast<NetKind>(n);
    Net& net = fold.weights.nets[n];
    FoldNet& rows = fold.nets[n];
    const auto usable = [&](size_t i) { return use[i]; };
    if (std::none_of(tables[n].index.begin(), tables[n].index.end(), usable)) continue;
    fit_scales(net, tables[n], use, feature_names(kind).size());
    rows.train = rows.held_out = rows.left = empty_part(kind);
    for (size_t r = 0; r < tables[n].index.size(); ++r) {
      const size_t i = tables[n].index[r];
      const bool held =
          Rng(seed ^ (held_out_key(data.rows[i].kernel, i) * 0x9e37ull)).below(kHeldOutShare) == 0;
      FoldPart& part = !use[i] ? rows.left : held ? rows.held_out : rows.train;
      const TrainingRow& row = data.rows[i];
      append_kernel(part, fold.weights, kind, row.kernel, tables[n].rows[r], data.running(row));
      part.device.push_back(row.device);
      part.rows.log_times.push_back(
          static_cast<float>(std::log(row.seconds / latency_floor_s(kind, data.running(row)))));
      part.rows.weights.push_back(row.weight);
      part.index.push_back(i);
    }
    fill_all_pairs(fold, kind, data, seed);
    const size_t base = net_def(kind).base_features;
    std::vector<bool> learn = shows_utilization(rows.train);
    if (net_def(kind).learning.thins_base_rows) thin(learn, rows.train, data);
    rows.base_train = selected_rows(rows.train.rows, base, learn);
    balance_devices(rows.base_train, rows.train, learn, data.devices.size());
    rows.base_held_out = selected_rows(rows.held_out.rows, base, shows_utilization(rows.held_out));
  }
}

namespace {

InputRows inputs_of(const NetRows& rows) { return {rows.inputs.data(), rows.width, rows.count()}; }

}  // namespace

void apply_base_model(Fold& fold) {
  for (size_t n = 0; n < kNetCount; ++n) {
    FoldNet& rows = fold.nets[n];
    for (FoldPart* part : {&rows.train, &rows.held_out, &rows.left, &rows.smaller, &rows.larger}) {
      std::vector<float>& logits = part->rows.offsets;
      logits.resize(part->rows.count());
      base_logits(fold.weights.nets[n], inputs_of(part->rows), part->caps, logits);
    }
  }
}

NetRows rows_of_device(const FoldPart& part, size_t device) {
  std::vector<bool> use(part.device.size());
  for (size_t r = 0; r < use.size(); ++r) use[r] = part.device[r] == device;
  NetRows rows = selected_rows(part.rows, part.rows.width, use);
  for (size_t r = 0; r < use.size(); ++r) {
    if (use[r]) rows.offsets.push_back(part.rows.offsets[r]);
  }
  return rows;
}

void solve_kriging(Net& net) {
  // Measurements of one device repeat to about this share of how devices differ.
  constexpr double kNoise = 1e-3;
  const auto count = static_cast<Eigen::Index>(net.residuals.size());
  Eigen::MatrixXd alike(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j)
      alike(i, j) = similarity(net.residuals[static_cast<size_t>(i)].signature,
                               net.residuals[static_cast<size_t>(j)].signature) +
                    (i == j ? kNoise : 0);
  }
  const Eigen::MatrixXd inverse = alike.ldlt().solve(Eigen::MatrixXd::Identity(count, count));
  for (Eigen::Index i = 0; i < count; ++i) {
    DeviceResidual& residual = net.residuals[static_cast<size_t>(i)];
    residual.kriging.clear();
    for (Eigen::Index j = 0; j < count; ++j)
      residual.kriging.push_back(static_cast<float>(inverse(i, j)));
  }
}

std::vector<double> part_log_errors(const Net& net, const FoldPart& part,
                                    const TrainingData& data) {
  // Rows of one device and software go through its residuals together, as in a forecast.
  std::map<std::pair<size_t, Software>, std::vector<size_t>> batches;
  for (size_t r = 0; r < part.device.size(); ++r)
    batches[{part.device[r], data.rows[part.index[r]].conditions.software}].push_back(r);
  std::vector<float> logits = part.rows.offsets;
  std::vector<float> log_factors(logits.size(), 0.0f);
  for (const auto& [key, rows] : batches) {
    const auto& [device, software] = key;
    std::vector<float> inputs, own_logits, own_factors(rows.size(), 0.0f);
    for (const size_t r : rows) {
      const float* at = &part.rows.inputs[r * part.rows.width];
      inputs.insert(inputs.end(), at, at + part.rows.width);
      own_logits.push_back(logits[r]);
    }
    add_residuals(near_residuals(net, data.devices[device]), software,
                  {inputs.data(), part.rows.width, rows.size()}, own_logits, own_factors);
    for (size_t i = 0; i < rows.size(); ++i) {
      logits[rows[i]] = own_logits[i];
      log_factors[rows[i]] = own_factors[i];
    }
  }
  std::vector<double> errors = log_errors(logits, part.rows);
  for (size_t r = 0; r < errors.size(); ++r) errors[r] += static_cast<double>(log_factors[r]);
  return errors;
}

ForestTask forest_task(const FoldPart& part, const TrainingData& data, size_t device,
                       Software software) {
  ForestTask task;
  task.width = part.rows.width;
  const std::vector<double> errors = log_errors(part.rows.offsets, part.rows);
  for (size_t r = 0; r < errors.size(); ++r) {
    if (part.device[r] != device || data.rows[part.index[r]].conditions.software != software)
      continue;
    const float* at = &part.rows.inputs[r * task.width];
    task.inputs.insert(task.inputs.end(), at, at + task.width);
    task.targets.push_back(static_cast<float>(-errors[r]));
    task.weights.push_back(part.rows.weights[r]);
  }
  return task;
}

}  // namespace tilecast
