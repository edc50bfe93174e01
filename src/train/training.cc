#include "train/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "predict/predictor.h"
#include "predict/weights.h"
#include "tilecast/error.h"
#include "train/dataset.h"
#include "train/tile_growth.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

/// One in this many rows is held out.
constexpr uint64_t kHeldOutShare = 10;

/// Features are logarithms and shares; one that hardly varies in training is not blown up, or the
/// slightest step outside would throw a network far off.
constexpr double kSmallestScale = 0.1;

/// Share of errors that an interval holds.
constexpr double kCoverage = 0.8;

/// What one fold trains: everything but one GPU's rows, or everything.
struct Fold {
  std::string name;                ///< "all" or the left-out GPU
  std::optional<size_t> left_out;  ///< device
  Weights weights;
  std::array<NetRows, kNetCount> train, held_out, left_rows;
  std::array<std::vector<size_t>, kNetCount> held_out_index, left_index;  ///< rows of the data
};

struct Summary {
  std::vector<double> errors;  ///< |forecast / measured - 1|, percent
};

double weighted_quantile(std::vector<std::pair<double, double>> values, double q) {
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const auto& [value, weight] : values) total += weight;
  double sum = 0;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= q * total) return value;
  }
  return values.empty() ? 0 : values.back().first;
}

class Training {
 public:
  Training(const TrainOptions& options, const std::function<void(const TrainProgress&)>& progress)
      : options_(options), progress_(progress) {}

  TrainResult run() {
    std::error_code code;
    fs::create_directories(options_.output / "checkpoints", code);
    if (code)
      throw Error(ErrorKind::kIo, fmt::format("{}: cannot make the folder: {}",
                                              options_.output.string(), code.message()));
    load();
    make_folds();
    train_all();
    summarize();
    write();
    return std::move(result_);
  }

 private:
  void load() {
    std::vector<MeasurementSet> sets;
    for (const fs::path& path : options_.data) sets.push_back(read_measurements(path));
    data_ = prepare_training_data(sets, options_.exclude_gpus);
    result_.report = data_.report;
    std::array<size_t, kNetCount> counts{};
    for (const TrainingRow& row : data_.rows)
      counts[static_cast<size_t>(net_of(row.kernel.family))]++;
    for (size_t n = 0; n < kNetCount; ++n) {
      if (counts[n] < 100)
        throw Error(ErrorKind::kInput,
                    fmt::format("too little to learn '{}' from: {} usable rows, at least 100 are "
                                "needed; add measurement folders with --data",
                                net_name(static_cast<NetKind>(n)), counts[n]));
    }
  }

  void make_folds() {
    folds_.push_back(std::make_unique<Fold>());
    folds_.back()->name = "all";
    if (options_.leave_one_out && data_.devices.size() > 2) {
      for (size_t d = 0; d < data_.devices.size(); ++d) {
        folds_.push_back(std::make_unique<Fold>());
        folds_.back()->name = data_.devices[d].id;
        folds_.back()->left_out = d;
      }
    }
    for (auto& fold : folds_) fill(*fold);
  }

  void fill(Fold& fold) {
    const size_t count = data_.rows.size();
    std::vector<bool> use(count);
    for (size_t i = 0; i < count; ++i) use[i] = data_.rows[i].device != fold.left_out;
    for (const char* vendor : {"nvidia", "amd"}) {
      TileTree tree = grow_tile_tree(data_, use, vendor);
      if (!tree.nodes.empty()) fold.weights.tiles.push_back(std::move(tree));
    }
    std::array<std::vector<Features>, kNetCount> features;
    std::array<std::vector<size_t>, kNetCount> index;
    for (size_t i = 0; i < count; ++i) {
      const TrainingRow& row = data_.rows[i];
      const Device& device = data_.devices[row.device];
      const auto n = static_cast<size_t>(net_of(row.kernel.family));
      const Tile tile = row.kernel.is_matmul() ? tile_of(fold.weights, row.kernel, device) : Tile{};
      features[n].push_back(
          make_features(row.kernel, device, physical_bound(row.kernel, device), tile));
      index[n].push_back(i);
    }
    for (size_t n = 0; n < kNetCount; ++n) standardize(fold, n, features[n], index[n], use);
  }

  void standardize(Fold& fold, size_t n, const std::vector<Features>& features,
                   const std::vector<size_t>& index, const std::vector<bool>& use) {
    const size_t width = feature_names(static_cast<NetKind>(n)).size();
    Net& net = fold.weights.nets[n];
    for (size_t j = 0; j < width; ++j) {
      double sum = 0, squares = 0, used = 0;
      float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();
      for (size_t r = 0; r < features.size(); ++r) {
        if (!use[index[r]]) continue;
        const float v = features[r][j];
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
    for (NetRows* rows : {&fold.train[n], &fold.held_out[n], &fold.left_rows[n]}) {
      rows->width = width;
      rows->lowest_logit = lowest_logit(static_cast<NetKind>(n));
    }
    for (size_t r = 0; r < features.size(); ++r) {
      const size_t i = index[r];
      const bool left = !use[i];
      const bool held = !left && Rng(options_.seed ^ (i * 0x9e37ull)).below(kHeldOutShare) == 0;
      NetRows& rows = left ? fold.left_rows[n] : held ? fold.held_out[n] : fold.train[n];
      if (left) fold.left_index[n].push_back(i);
      if (held) fold.held_out_index[n].push_back(i);
      for (size_t j = 0; j < width; ++j) {
        const float v = std::clamp(features[r][j], net.minimum[j], net.maximum[j]);
        rows.inputs.push_back((v - net.mean[j]) / net.scale[j]);
      }
      const TrainingRow& row = data_.rows[i];
      const double bound = physical_bound(row.kernel, data_.devices[row.device]).seconds();
      rows.bounds.push_back(static_cast<float>(bound / kShortestKernel));
      rows.log_times.push_back(static_cast<float>(std::log(row.seconds / kShortestKernel)));
      rows.weights.push_back(row.weight);
    }
  }

  void train_all() {
    struct Job {
      Fold* fold;
      size_t net;
      int member;
    };
    std::vector<Job> jobs;
    for (auto& fold : folds_) {
      // Folds only measure errors: one network each is enough.
      const int members = fold->left_out ? 1 : options_.members;
      for (size_t n = 0; n < kNetCount; ++n) {
        fold->weights.nets[n].members.resize(static_cast<size_t>(members));
        for (int m = 0; m < members; ++m) jobs.push_back({fold.get(), n, m});
      }
    }
    status_.total_epochs = static_cast<int>(jobs.size()) * options_.epochs;
    std::atomic<size_t> next{0};
    std::exception_ptr failure;
    const auto work = [&] {
      while (true) {
        const size_t j = next.fetch_add(1);
        if (j >= jobs.size()) return;
        const Job& job = jobs[j];
        try {
          job.fold->weights.nets[job.net].members[static_cast<size_t>(job.member)] = train_net(
              task(*job.fold, job.net, job.member), [&](const EpochReport& r) { report(r); });
        } catch (...) {
          const std::lock_guard lock(mutex_);
          failure = std::current_exception();
          next = jobs.size();
        }
      }
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < options_.threads; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
  }

  NetTask task(const Fold& fold, size_t n, int member) const {
    NetTask task;
    task.name = fmt::format("{}-{}-{}", fold.name, net_name(static_cast<NetKind>(n)), member);
    task.widths = {static_cast<int>(fold.train[n].width), options_.hidden, options_.hidden, 1};
    task.epochs = options_.epochs;
    task.seed = options_.seed * 7919 + static_cast<uint64_t>(member) * 104729 + n;
    task.data_hash = data_.hash;
    task.train = &fold.train[n];
    task.held_out = &fold.held_out[n];
    task.checkpoint = options_.output / "checkpoints" / (task.name + ".checkpoint");
    return task;
  }

  void report(const EpochReport& epoch) {
    const std::lock_guard lock(mutex_);
    history_[epoch.task].push_back(epoch);
    status_.last = epoch;
    status_.finished_epochs = 0;
    for (const auto& [name, epochs] : history_) status_.finished_epochs += epochs.back().epoch;
    progress_(status_);
  }

  void summarize() {
    using Key = std::pair<std::string, std::string>;
    std::map<Key, Summary> held_out, left_out;
    std::array<std::vector<std::pair<double, double>>, kNetCount> spread;
    for (const auto& fold : folds_) {
      for (size_t n = 0; n < kNetCount; ++n) {
        const std::vector<Mlp>& members = fold->weights.nets[n].members;
        const bool all = !fold->left_out;
        const NetRows& rows = all ? fold->held_out[n] : fold->left_rows[n];
        const std::vector<size_t>& index = all ? fold->held_out_index[n] : fold->left_index[n];
        if (all && folds_.size() > 1) {
          collect(rows, index, members, held_out, nullptr);
        } else {
          collect(rows, index, members, all ? held_out : left_out, &spread[n]);
        }
      }
    }
    Weights& weights = folds_.front()->weights;
    for (size_t n = 0; n < kNetCount; ++n) {
      // residual = log(forecast / measured): the measured time is forecast · exp(-residual).
      weights.nets[n].low_ratio =
          std::min(1.0, std::exp(-weighted_quantile(spread[n], (1 + kCoverage) / 2)));
      weights.nets[n].high_ratio =
          std::max(1.0, std::exp(-weighted_quantile(spread[n], (1 - kCoverage) / 2)));
      weights.nets[n].call_overhead_s = typical_overhead(static_cast<NetKind>(n));
    }
    table(held_out, result_.held_out);
    table(left_out, result_.left_out);
  }

  void collect(const NetRows& rows, const std::vector<size_t>& index,
               const std::vector<Mlp>& members,
               std::map<std::pair<std::string, std::string>, Summary>& errors,
               std::vector<std::pair<double, double>>* spread) const {
    const std::vector<double> residuals = net_residuals(members, rows);
    for (size_t r = 0; r < residuals.size(); ++r) {
      const TrainingRow& row = data_.rows[index[r]];
      const RowGroup& group = data_.groups[row.group];
      // Errors are those of the measured call, its overhead included, as published ones are.
      const double error =
          (std::exp(residuals[r]) - 1) * row.seconds / (row.seconds + group.call_overhead_s);
      errors[{data_.devices[row.device].id, group.op}].errors.push_back(100 * std::abs(error));
      if (spread != nullptr) spread->emplace_back(residuals[r], rows.weights[r]);
    }
  }

  static void table(std::map<std::pair<std::string, std::string>, Summary>& errors,
                    std::vector<TrainError>& out) {
    for (auto& [key, summary] : errors) {
      std::vector<double>& e = summary.errors;
      std::sort(e.begin(), e.end());
      double sum = 0;
      for (double x : e) sum += x;
      out.push_back(
          {key.first, key.second, e.size(), sum / static_cast<double>(e.size()), e[e.size() / 2]});
    }
  }

  double typical_overhead(NetKind kind) const {
    std::map<size_t, double> by_device;
    std::vector<bool> seen(data_.groups.size(), false);
    for (const TrainingRow& row : data_.rows) {
      if (net_of(row.kernel.family) != kind || seen[row.group]) continue;
      seen[row.group] = true;
      const RowGroup& group = data_.groups[row.group];
      if (group.call_overhead_s > 0)
        by_device[group.device] = std::max(by_device[group.device], group.call_overhead_s);
    }
    std::vector<double> values;
    for (const auto& [device, value] : by_device) values.push_back(value);
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  static Json error_rows(const std::vector<TrainError>& errors) {
    Json rows = Json::array();
    for (const TrainError& e : errors)
      rows.push_back({{"gpu", e.gpu},
                      {"op", e.op},
                      {"count", e.count},
                      {"mape_percent", std::round(e.mape_percent * 100) / 100},
                      {"median_percent", std::round(e.median_percent * 100) / 100}});
    return rows;
  }

  void write() {
    Json gpus = Json::array();
    for (const Device& device : data_.devices) gpus.push_back(device.id);
    Weights& weights = folds_.front()->weights;
    weights.provenance =
        Json{{"command", options_.command}, {"data_hash", fmt::format("{:016x}", data_.hash)},
             {"rows", data_.rows.size()},   {"gpus", gpus},
             {"seed", options_.seed},       {"epochs", options_.epochs}}
            .dump();
    std::string curve = "task,epoch,train_error,held_out_error\n";
    for (const auto& [name, epochs] : history_) {
      for (const EpochReport& e : epochs)
        curve +=
            fmt::format("{},{},{:.6f},{:.6f}\n", name, e.epoch, e.train_error, e.held_out_error);
    }
    write_file(options_.output / "held_out.csv", curve);
    const Json errors = {{"provenance", Json::parse(weights.provenance)},
                         {"held_out", error_rows(result_.held_out)},
                         {"left_out", error_rows(result_.left_out)},
                         {"left_out_rows", result_.report}};
    write_file(options_.output / "errors.json", errors.dump(1) + "\n");
    write_file(options_.output / kWeightsFile, serialize_weights(weights));
    std::error_code code;
    fs::remove_all(options_.output / "checkpoints", code);
  }

  const TrainOptions& options_;
  const std::function<void(const TrainProgress&)>& progress_;
  TrainingData data_;
  std::vector<std::unique_ptr<Fold>> folds_;
  std::mutex mutex_;
  TrainProgress status_;
  std::map<std::string, std::vector<EpochReport>> history_;
  TrainResult result_;
};

}  // namespace

TrainResult train_weights(const TrainOptions& options,
                          const std::function<void(const TrainProgress&)>& progress) {
  return Training(options, progress).run();
}

}  // namespace tilecast
