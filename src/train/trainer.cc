#include "train/trainer.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/file.h"
#include "base/rng.h"
#include "predict/efficiency.h"

namespace tilecast {
namespace {

constexpr float kPeakRate = 3e-3f;
constexpr float kDecay = 1e-3f;
constexpr float kSmooth = 0.02f;

/// Pairs in a batch, the weight of their mean shortfall against that of the rows' mean error, and
/// how much of the bound's growth (in logarithms) the forecast has to follow at least.
constexpr size_t kPairs = 128;
constexpr float kPairWeight = 0.5f;
constexpr float kLeastGrowth = 0.02f;

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<Matrix>;
using Vector = Eigen::VectorXf;

/// Numbers that Eigen works on in place. Where a sum starts with whole vectors depends on the
/// address: only aligned ones give the same bits in every run.
using Floats = std::vector<float, Eigen::aligned_allocator<float>>;

struct EpochErrors {
  double train = 0, held_out = 0;
};

/// Everything that changes while training: what a checkpoint holds.
struct State {
  Floats parameters, first, second;
  int64_t step = 0;
  int32_t epoch = 0;
  std::vector<EpochErrors> errors;  ///< of each epoch so far
};

State initial_state(const NetTask& task) {
  State state;
  const size_t count = mlp_parameter_count(task.widths);
  state.parameters.assign(count, 0.0f);
  state.first.assign(count, 0.0f);
  state.second.assign(count, 0.0f);
  Rng rng(task.seed);
  size_t at = 0;
  for (size_t l = 0; l + 1 < task.widths.size(); ++l) {
    // He initialization, uniform: variance 2 / inputs.
    const float limit = std::sqrt(6.0f / static_cast<float>(task.widths[l]));
    const size_t weights =
        static_cast<size_t>(task.widths[l]) * static_cast<size_t>(task.widths[l + 1]);
    for (size_t i = 0; i < weights; ++i)
      state.parameters[at + i] = limit * static_cast<float>(2 * rng.uniform() - 1);
    at += weights + static_cast<size_t>(task.widths[l + 1]);
  }
  return state;
}

class Learner {
 public:
  Learner(const NetTask& task, State& state) : task_(task), state_(state) {
    gradient_.assign(state.parameters.size(), 0.0f);
    activations_.resize(task.widths.size());
  }

  /// One pass over the rows in an order drawn from seed and epoch; returns the mean error.
  double epoch(int number) {
    const NetRows& rows = *task_.train;
    std::vector<size_t> order(rows.count());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    Rng rng(task_.seed * 1000003 + static_cast<uint64_t>(number));
    rng.shuffle(order);
    const auto batches = (order.size() + kBatchRows - 1) / kBatchRows;
    const double total = static_cast<double>(batches) * task_.epochs;
    double error = 0;
    double weight = 0;
    for (size_t start = 0; start < order.size(); start += kBatchRows) {
      const size_t n = std::min<size_t>(kBatchRows, order.size() - start);
      const auto [e, w] = batch(order.data() + start, n, rng);
      error += e;
      weight += w;
      const double progress = static_cast<double>(state_.step) / total;
      step(static_cast<float>(kPeakRate * 0.5 * (1 + std::cos(std::numbers::pi * progress))));
    }
    return weight > 0 ? error / weight : 0;
  }

 private:
  static void copy_inputs(const NetRows& data, size_t row, Matrix& x, size_t at) {
    std::memcpy(x.row(static_cast<Eigen::Index>(at)).data(), &data.inputs[row * data.width],
                data.width * sizeof(float));
  }

  std::pair<double, double> batch(const size_t* rows, size_t n, Rng& rng) {
    const NetRows& data = *task_.train;
    const size_t all_pairs = task_.pairs == nullptr ? 0 : task_.pairs->count();
    std::vector<size_t> pairs(all_pairs == 0 ? 0 : kPairs);
    for (size_t& p : pairs) p = rng.below(all_pairs);
    Matrix& x = activations_[0];
    x.resize(static_cast<Eigen::Index>(n + 2 * pairs.size()),
             static_cast<Eigen::Index>(data.width));
    for (size_t r = 0; r < n; ++r) copy_inputs(data, rows[r], x, r);
    for (size_t p = 0; p < pairs.size(); ++p) {
      copy_inputs(task_.pairs->smaller, pairs[p], x, n + 2 * p);
      copy_inputs(task_.pairs->larger, pairs[p], x, n + 2 * p + 1);
    }
    forward();
    Matrix delta = Matrix::Zero(x.rows(), 1);
    double error = 0;
    double weight = 0;
    for (size_t r = 0; r < n; ++r) {
      const auto i = static_cast<Eigen::Index>(r);
      const LogTime forecast = forecast_of(data, rows[r], i);
      const float residual = forecast.value - data.log_times[rows[r]];
      const float w = data.weights[rows[r]];
      error += static_cast<double>(w * std::abs(residual));
      weight += static_cast<double>(w);
      delta(i, 0) = w * residual / std::sqrt(residual * residual + kSmooth * kSmooth) *
                    forecast.slope / static_cast<float>(n);
    }
    for (size_t p = 0; p < pairs.size(); ++p) {
      const auto i = static_cast<Eigen::Index>(n + 2 * p);
      const GrowingPairs& g = *task_.pairs;
      const LogTime smaller = forecast_of(g.smaller, pairs[p], i);
      const LogTime larger = forecast_of(g.larger, pairs[p], i + 1);
      const float growth =
          std::log((1 + g.larger.bounds[pairs[p]]) / (1 + g.smaller.bounds[pairs[p]]));
      if (larger.value - smaller.value >= kLeastGrowth * growth) continue;
      const float w = kPairWeight / static_cast<float>(pairs.size());
      delta(i, 0) = w * smaller.slope;
      delta(i + 1, 0) = -w * larger.slope;
    }
    backward(delta);
    return {error, weight};
  }

  LogTime forecast_of(const NetRows& data, size_t row, Eigen::Index at) const {
    return log_time(data.bounds[row], activations_.back()(at, 0) + data.offset(row),
                    data.lowest_logit);
  }

  void forward() {
    size_t at = 0;
    for (size_t l = 0; l + 1 < task_.widths.size(); ++l) {
      const int in = task_.widths[l];
      const int out = task_.widths[l + 1];
      const Map weights(state_.parameters.data() + at, out, in);
      at += static_cast<size_t>(in) * static_cast<size_t>(out);
      const Eigen::Map<Vector> bias(state_.parameters.data() + at, out);
      at += static_cast<size_t>(out);
      Matrix& y = activations_[l + 1];
      y.noalias() = activations_[l] * weights.transpose();
      y.rowwise() += bias.transpose();
      if (l + 2 < task_.widths.size()) y = y.cwiseMax(0.0f);
    }
  }

  void backward(Matrix delta) {
    size_t at = state_.parameters.size();
    for (size_t l = task_.widths.size() - 1; l-- > 0;) {
      const int in = task_.widths[l];
      const int out = task_.widths[l + 1];
      at -= static_cast<size_t>(out);
      Eigen::Map<Vector>(gradient_.data() + at, out) = delta.colwise().sum().transpose();
      at -= static_cast<size_t>(in) * static_cast<size_t>(out);
      Map(gradient_.data() + at, out, in).noalias() = delta.transpose() * activations_[l];
      if (l == 0) break;
      const Map weights(state_.parameters.data() + at, out, in);
      Matrix previous = delta * weights;
      delta = previous.cwiseProduct((activations_[l].array() > 0).cast<float>().matrix());
    }
  }

  void step(float rate) {
    constexpr float kBeta1 = 0.9f;
    constexpr float kBeta2 = 0.999f;
    state_.step += 1;
    const auto t = static_cast<float>(state_.step);
    const float c1 = 1 - std::pow(kBeta1, t);
    const float c2 = 1 - std::pow(kBeta2, t);
    for (size_t i = 0; i < gradient_.size(); ++i) {
      const float g = gradient_[i];
      state_.first[i] = kBeta1 * state_.first[i] + (1 - kBeta1) * g;
      state_.second[i] = kBeta2 * state_.second[i] + (1 - kBeta2) * g * g;
      const float update = state_.first[i] / c1 / (std::sqrt(state_.second[i] / c2) + 1e-8f);
      state_.parameters[i] -= rate * (update + kDecay * state_.parameters[i]);
    }
  }

  const NetTask& task_;
  State& state_;
  Floats gradient_;
  std::vector<Matrix> activations_;
};

std::string checkpoint_key(const NetTask& task) {
  return fmt::format("tilecast-checkpoint 2 {} {} {} {} {}\n", task.name, task.seed, task.epochs,
                     fmt::join(task.widths, "x"), task.data_hash);
}

void save(const NetTask& task, const State& state) {
  if (task.checkpoint.empty()) return;
  std::string content = checkpoint_key(task);
  const auto put = [&](const void* bytes, size_t size) {
    content.append(static_cast<const char*>(bytes), size);
  };
  put(&state.step, sizeof state.step);
  put(&state.epoch, sizeof state.epoch);
  put(state.errors.data(), state.errors.size() * sizeof(EpochErrors));
  for (const Floats* part : {&state.parameters, &state.first, &state.second})
    put(part->data(), part->size() * sizeof(float));
  write_file(task.checkpoint, content);
}

/// Takes up a checkpoint of the same task and data; says whether there was one.
bool resume(const NetTask& task, State& state) {
  std::error_code code;
  if (task.checkpoint.empty() || !std::filesystem::exists(task.checkpoint, code)) return false;
  const std::string content = read_file(task.checkpoint);
  const std::string key = checkpoint_key(task);
  const size_t floats = 3 * state.parameters.size() * sizeof(float);
  const size_t numbers = sizeof state.step + sizeof state.epoch;
  if (!content.starts_with(key) || content.size() < key.size() + numbers) return false;
  const char* at = content.data() + key.size();
  const auto take = [&](void* bytes, size_t size) {
    std::memcpy(bytes, at, size);
    at += size;
  };
  auto step = state.step;
  auto epoch = state.epoch;
  take(&step, sizeof step);
  take(&epoch, sizeof epoch);
  if (epoch < 0 || epoch > task.epochs ||
      content.size() !=
          key.size() + numbers + floats + static_cast<size_t>(epoch) * sizeof(EpochErrors))
    return false;
  state.step = step;
  state.epoch = epoch;
  state.errors.resize(static_cast<size_t>(epoch));
  take(state.errors.data(), state.errors.size() * sizeof(EpochErrors));
  for (Floats* part : {&state.parameters, &state.first, &state.second})
    take(part->data(), part->size() * sizeof(float));
  return true;
}

double weighted_error(const std::vector<Mlp>& members, const NetRows& rows) {
  const std::vector<double> errors = log_errors(net_logits(members, rows), rows);
  double error = 0;
  double weight = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    error += rows.weights[i] * std::abs(errors[i]);
    weight += rows.weights[i];
  }
  return weight > 0 ? error / weight : 0;
}

}  // namespace

Mlp train_net(const NetTask& task, const std::function<void(const EpochReport&)>& report) {
  State state = initial_state(task);
  resume(task, state);
  for (size_t e = 0; e < state.errors.size(); ++e)
    report({task.name, static_cast<int>(e) + 1, task.epochs, state.errors[e].train,
            state.errors[e].held_out, true});
  Learner learner(task, state);
  Mlp mlp{task.widths, {}};
  while (state.epoch < task.epochs) {
    EpochErrors errors;
    errors.train = learner.epoch(state.epoch);
    state.epoch += 1;
    mlp.parameters.assign(state.parameters.begin(), state.parameters.end());
    errors.held_out =
        task.held_out->count() > 0 ? weighted_error({mlp}, *task.held_out) : errors.train;
    state.errors.push_back(errors);
    save(task, state);
    report({task.name, state.epoch, task.epochs, errors.train, errors.held_out});
  }
  mlp.parameters.assign(state.parameters.begin(), state.parameters.end());
  return mlp;
}

std::vector<float> net_logits(const std::vector<Mlp>& members, const NetRows& rows) {
  std::vector<float> logits(rows.count());
  ensemble_forward(members, rows.inputs.data(), rows.width, rows.count(), logits.data());
  for (size_t i = 0; i < logits.size(); ++i) logits[i] += rows.offset(i);
  return logits;
}

std::vector<double> log_errors(const std::vector<float>& logits, const NetRows& rows) {
  std::vector<double> errors(rows.count());
  for (size_t i = 0; i < errors.size(); ++i)
    errors[i] = log_time(rows.bounds[i], logits[i], rows.lowest_logit).value - rows.log_times[i];
  return errors;
}

}  // namespace tilecast
