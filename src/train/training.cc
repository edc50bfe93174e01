#include "train/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "predict/predictor.h"
#include "predict/weights.h"
#include "tilecast/error.h"
#include "train/dataset.h"
#include "train/fold.h"
#include "train/output_folder.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

/// Share of errors that an interval holds.
constexpr double kCoverage = 0.8;

/// A correction is learned from at least so many rows.
constexpr size_t kFewestRows = 50;

/// A forest is learned from at least so many.
constexpr size_t kFewestForestRows = 500;

/// A combination of software and precision counts as measured from so many rows on: some layers at
/// several sizes.
constexpr size_t kFewestCombinationRows = 200;

/// Below this similarity a device's correction does not reach another.
constexpr float kAlike = 0.02f;

struct Summary {
  std::vector<double> errors;  ///< |forecast / measured - 1|, percent
  double roofline = 0;         ///< sum of the baseline's
};

/// By GPU, operator, precision and software.
using ErrorMap = std::map<std::array<std::string, 4>, Summary>;

/// log(forecast / measured) of a row of unseen kernels or an unseen device.
struct Residual {
  double value, weight;
  size_t device;
  size_t bin;  ///< IntervalLaw's
};
using Spread = std::vector<Residual>;

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
      : options_(options), progress_(progress), folder_(options.output) {}

  TrainResult run() {
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
    for (const TrainingRow& row : data_.rows) counts[static_cast<size_t>(net_of(row.kernel))]++;
    constexpr size_t kFewest = 100;
    for (size_t n = 0; n < kNetCount; ++n) {
      enough_[n] = counts[n] >= kFewest;
      if (enough_[n]) continue;
      result_.report.push_back(
          fmt::format("too little to learn '{}' from: {} usable rows, at least {} are needed; add "
                      "measurement folders with --data",
                      net_name(static_cast<NetKind>(n)), counts[n], kFewest));
    }
    if (std::count(enough_.begin(), enough_.end(), true) == 0)
      throw Error(ErrorKind::kInput, result_.report.back());
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
    for (auto& fold : folds_) fill_fold(*fold, data_, options_.seed);
  }

  using Job = std::function<void()>;

  Job net_job(NetTask task, Mlp* result) {
    return [this, task = std::move(task), result] {
      *result = train_net(task, [&](const EpochReport& r) { report(r); });
    };
  }

  /// First the laws that all devices share, then what each device does differently.
  void train_all() {
    std::vector<Job> shared;
    for (auto& fold : folds_) {
      // Folds only measure errors: one network each is enough.
      const int members = fold->left_out ? 1 : options_.members;
      for (size_t n = 0; n < kNetCount; ++n) {
        Net& net = fold->weights.nets[n];
        if (!learns(*fold, n)) continue;
        net.members.resize(static_cast<size_t>(members));
        for (int m = 0; m < members; ++m)
          shared.push_back(net_job(shared_task(*fold, n, m), &net.members[static_cast<size_t>(m)]));
      }
    }
    plan_corrections();
    status_.total_epochs = static_cast<int>(shared.size() + correction_jobs_) * options_.epochs;
    run_jobs(shared);
    std::vector<Job> corrections;
    size_t next = 0;
    for (auto& fold : folds_) {
      apply_shared_law(*fold);
      add_correction_jobs(*fold, next, corrections);
    }
    run_jobs(corrections);
  }

  /// Which devices a fold learns a correction of: all, or those that the left-out one resembles.
  void plan_corrections() {
    for (auto& fold : folds_) {
      for (size_t n = 0; n < kNetCount; ++n) {
        Net& net = fold->weights.nets[n];
        if (!learns(*fold, n)) continue;
        for (size_t d = 0; d < data_.devices.size(); ++d) {
          if (d == fold->left_out || count_rows(fold->nets[n].train, d) < kFewestRows) continue;
          const Signature signature = signature_of(data_.devices[d]);
          if (fold->left_out &&
              similarity(signature, signature_of(data_.devices[*fold->left_out])) < kAlike)
            continue;
          Correction correction{.source = data_.devices[d].id, .signature = signature};
          if (net_def(static_cast<NetKind>(n)).by_layer) {
            plan_forests(correction, fold->nets[n].train, d);
            if (correction.forests.empty()) continue;
          } else {
            correction.members.resize(net.members.size());
            correction_jobs_ += net.members.size();
          }
          net.corrections.push_back(std::move(correction));
          correction_rows_.push_back({});
        }
        solve_kriging(net);
      }
    }
  }

  /// A forest for each software that the device has enough rows of.
  void plan_forests(Correction& correction, const FoldPart& part, size_t device) const {
    std::map<Software, size_t> counts;
    std::vector<std::pair<Combination, size_t>> combinations;
    for (size_t r = 0; r < part.device.size(); ++r) {
      if (part.device[r] != device) continue;
      const TrainingRow& row = data_.rows[part.index[r]];
      counts[row.conditions.software] += 1;
      const Combination combination = combination_of(row.kernel, row.conditions);
      const auto found = std::find_if(combinations.begin(), combinations.end(),
                                      [&](const auto& c) { return c.first == combination; });
      if (found == combinations.end()) {
        combinations.emplace_back(combination, 1);
      } else {
        found->second += 1;
      }
    }
    for (const auto& [software, count] : counts) {
      if (count >= kFewestForestRows) correction.forests.push_back({software, {}});
    }
    for (const auto& [combination, count] : combinations) {
      if (counts[combination.software] >= kFewestForestRows && count >= kFewestCombinationRows)
        correction.measured.push_back(combination);
    }
  }

  /// A fold learns what it is judged on: the networks that its left-out device has rows of.
  bool learns(const Fold& fold, size_t n) const {
    return enough_[n] && (!fold.left_out || fold.nets[n].left.rows.count() > 0);
  }

  size_t count_rows(const FoldPart& part, size_t device) const {
    return static_cast<size_t>(std::count(part.device.begin(), part.device.end(), device));
  }

  void add_correction_jobs(Fold& fold, size_t& next, std::vector<Job>& jobs) {
    for (size_t n = 0; n < kNetCount; ++n) {
      const auto kind = static_cast<NetKind>(n);
      for (Correction& correction : fold.weights.nets[n].corrections) {
        size_t device = 0;
        while (data_.devices[device].id != correction.source) ++device;
        CorrectionRows& rows = correction_rows_[next++];
        for (SoftwareForest& f : correction.forests) {
          jobs.push_back([this, &fold, &f, n, device] {
            ForestTask task = forest_task(fold.nets[n].train, data_, device, f.software);
            task.seed = options_.seed * 7919 + n;
            f.forest = train_forest(task);
          });
        }
        if (correction.members.empty()) continue;
        rows.train = rows_of_device(fold.nets[n].train, device);
        rows.held_out = rows_of_device(fold.nets[n].held_out, device);
        rows.pairs = {rows_of_device(fold.nets[n].smaller, device),
                      rows_of_device(fold.nets[n].larger, device)};
        const auto width = static_cast<int>(rows.train.width);
        for (size_t m = 0; m < correction.members.size(); ++m) {
          NetTask task =
              base_task(fmt::format("{}-{}-{}-{}", fold.name, net_name(kind), correction.source, m),
                        {width, options_.hidden, options_.hidden, 1}, 977 + n + m * 104729);
          task.train = &rows.train;
          task.held_out = &rows.held_out;
          task.pairs = &rows.pairs;
          jobs.push_back(net_job(task, &correction.members[m]));
        }
      }
    }
  }

  void run_jobs(const std::vector<Job>& jobs) {
    std::atomic<size_t> next{0};
    std::exception_ptr failure;
    const auto work = [&] {
      while (true) {
        const size_t j = next.fetch_add(1);
        if (j >= jobs.size()) return;
        try {
          jobs[j]();
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

  NetTask shared_task(const Fold& fold, size_t n, int member) const {
    const FoldNet& rows = fold.nets[n];
    // A law from whole layers of few devices is kept simple; forests hold what is each device's
    // own.
    const bool simple = net_def(static_cast<NetKind>(n)).by_layer;
    const int hidden = simple ? std::max(4, options_.hidden / 2) : options_.hidden;
    NetTask task =
        base_task(fmt::format("{}-{}-{}", fold.name, net_name(static_cast<NetKind>(n)), member),
                  {static_cast<int>(rows.shared_train.width), hidden, hidden, 1},
                  static_cast<uint64_t>(member) * 104729 + n);
    if (simple) task.epochs = std::max(1, options_.epochs / 5);
    task.train = &rows.shared_train;
    task.held_out = &rows.shared_held_out;
    task.pairs = &rows.shared_pairs;
    return task;
  }

  NetTask base_task(std::string name, std::vector<int> widths, uint64_t salt) const {
    NetTask task;
    task.name = std::move(name);
    task.widths = std::move(widths);
    task.epochs = options_.epochs;
    task.seed = options_.seed * 7919 + salt;
    task.data_hash = data_.hash;
    task.checkpoint = folder_.checkpoints() / (task.name + ".checkpoint");
    return task;
  }

  void report(const EpochReport& epoch) {
    const std::lock_guard lock(mutex_);
    history_[epoch.task].push_back(epoch);
    // Epochs of before an interruption are no progress of this run.
    if (epoch.resumed) return;
    status_.last = epoch;
    status_.finished_epochs = 0;
    for (const auto& [name, epochs] : history_) status_.finished_epochs += epochs.back().epoch;
    progress_(status_);
  }

  void summarize() {
    ErrorMap held_out, left_out;
    for (size_t n = 0; n < kNetCount; ++n) {
      Spread unseen;
      std::map<std::string, Spread> seen;
      for (const auto& fold : folds_) {
        const Net& net = fold->weights.nets[n];
        const FoldNet& rows = fold->nets[n];
        if (!learns(*fold, n)) continue;
        if (fold->left_out)
          collect(net, rows.left, left_out, [&](const std::string&) { return &unseen; });
        else
          collect(net, rows.held_out, held_out, [&](const std::string& gpu) { return &seen[gpu]; });
      }
      Net& net = folds_.front()->weights.nets[n];
      if (!enough_[n]) {
        net = Net{};
        continue;
      }
      // Without left-out GPUs nothing is known of others: what is seen of these is a lower limit.
      if (folds_.size() == 1) {
        for (const auto& [gpu, spread] : seen)
          unseen.insert(unseen.end(), spread.begin(), spread.end());
      }
      net.interval = interval_of(unseen, data_.devices.size());
      if (folds_.size() > 1) net.interval.common_share = common_share(unseen, data_.devices.size());
      for (Correction& c : net.corrections)
        c.interval = interval_of(seen[c.source], data_.devices.size());
      set_call_overheads(net, static_cast<NetKind>(n));
    }
    table(held_out, result_.held_out);
    table(left_out, result_.left_out);
  }

  /// Every device counts alike: the next one is a draw among devices, not among rows.
  static Spread balanced(Spread spread, size_t devices) {
    std::vector<double> total(devices, 0);
    for (const Residual& r : spread) total[r.device] += r.weight;
    for (Residual& r : spread) r.weight /= total[r.device];
    return spread;
  }

  /// residual = log(forecast / measured): the measured time is forecast · exp(-residual).
  static IntervalLaw interval_of(const Spread& spread, size_t devices) {
    IntervalLaw interval;
    for (size_t bin = 0; bin < IntervalLaw::kAnchors.size(); ++bin) {
      Spread part;
      for (const Residual& r : spread) {
        if (r.bin == bin) part.push_back(r);
      }
      // Too few of a size: those of all.
      std::vector<std::pair<double, double>> values;
      for (const Residual& r : balanced(part.size() < kFewestRows ? spread : part, devices))
        values.emplace_back(r.value, r.weight);
      interval.low_log[bin] = std::min(0.0, -weighted_quantile(values, (1 + kCoverage) / 2));
      interval.high_log[bin] = std::max(0.0, -weighted_quantile(values, (1 - kCoverage) / 2));
    }
    return interval;
  }

  /// Variance of the devices' mean residuals over the variance of all.
  static double common_share(const Spread& spread, size_t devices) {
    std::vector<double> mean(devices, 0);
    std::vector<bool> present(devices, false);
    double all = 0, square = 0, count = 0, between = 0;
    for (const Residual& r : balanced(spread, devices)) {
      mean[r.device] += r.weight * r.value;
      present[r.device] = true;
      all += r.weight * r.value;
      square += r.weight * r.value * r.value;
    }
    for (const bool p : present) count += p ? 1 : 0;
    const double variance = square / count - (all / count) * (all / count);
    for (size_t d = 0; d < devices; ++d) {
      if (present[d]) between += (mean[d] - all / count) * (mean[d] - all / count) / count;
    }
    return variance > 0 ? std::clamp(between / variance, 0.0, 1.0) : 1.0;
  }

  template <typename SpreadOf>
  void collect(const Net& net, const FoldPart& part, ErrorMap& errors, const SpreadOf& spread_of) {
    const std::vector<double> residuals = corrected_residuals(net, part, data_);
    for (size_t r = 0; r < residuals.size(); ++r) {
      const TrainingRow& row = data_.rows[part.index[r]];
      const RowGroup& group = data_.groups[row.group];
      const std::string& gpu = data_.devices[row.device].id;
      // Errors are those of the measured call, its overhead included, as published ones are.
      const double error =
          (std::exp(residuals[r]) - 1) * row.seconds / (row.seconds + group.call_overhead_s);
      Summary& summary = errors[{gpu, group.op, precision_name(row.kernel),
                                 std::string(software_name(row.conditions.software))}];
      summary.errors.push_back(100 * std::abs(error));
      const Bound bound = physical_bound(row.kernel, data_.devices[row.device]);
      const double roofline =
          std::max(bound.compute_s, static_cast<double>(row.kernel.bytes()) /
                                        data_.devices[row.device].memory_bytes_per_s);
      summary.roofline += 100 * std::abs(roofline / (row.seconds + group.call_overhead_s) - 1);
      spread_of(gpu)->push_back({residuals[r], part.rows.weights[r], row.device,
                                 IntervalLaw::bin_of(part.rows.bounds[r])});
    }
  }

  static void table(ErrorMap& errors, std::vector<TrainError>& out) {
    for (auto& [key, summary] : errors) {
      std::vector<double>& e = summary.errors;
      std::sort(e.begin(), e.end());
      double sum = 0;
      for (double x : e) sum += x;
      const auto count = static_cast<double>(e.size());
      out.push_back({key[0], key[1], key[2], key[3], e.size(), sum / count, e[e.size() / 2],
                     summary.roofline / count});
    }
  }

  void set_call_overheads(Net& net, NetKind kind) const {
    std::map<size_t, double> by_device;
    std::vector<bool> seen(data_.groups.size(), false);
    for (const TrainingRow& row : data_.rows) {
      if (net_of(row.kernel) != kind || seen[row.group]) continue;
      seen[row.group] = true;
      const RowGroup& group = data_.groups[row.group];
      if (group.call_overhead_s > 0)
        by_device[group.device] = std::max(by_device[group.device], group.call_overhead_s);
    }
    std::vector<double> values;
    for (const auto& [device, value] : by_device) {
      values.push_back(value);
      for (Correction& c : net.corrections) {
        if (c.source == data_.devices[device].id) c.call_overhead_s = value;
      }
    }
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    net.call_overhead = {values[values.size() / 2], values.front(), values.back()};
  }

  static Json error_rows(const std::vector<TrainError>& errors) {
    Json rows = Json::array();
    for (const TrainError& e : errors)
      rows.push_back({{"gpu", e.gpu},
                      {"op", e.op},
                      {"dtype", e.dtype},
                      {"software", e.software},
                      {"count", e.count},
                      {"mape_percent", std::round(e.mape_percent * 100) / 100},
                      {"median_percent", std::round(e.median_percent * 100) / 100},
                      {"roofline_mape_percent", std::round(e.roofline_mape_percent * 100) / 100}});
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
      for (const EpochReport& e : epochs) {
        // Every epoch of more than a hundred networks would be a megabyte.
        if (e.epoch % 10 == 0 || e.epoch == e.epochs)
          curve +=
              fmt::format("{},{},{:.6f},{:.6f}\n", name, e.epoch, e.train_error, e.held_out_error);
      }
    }
    write_file(options_.output / "held_out.csv", curve);
    const Json errors = {{"provenance", Json::parse(weights.provenance)},
                         {"held_out", error_rows(result_.held_out)},
                         {"left_out", error_rows(result_.left_out)},
                         {"left_out_rows", result_.report}};
    write_file(options_.output / "errors.json", errors.dump(1) + "\n");
    write_file(options_.output / kWeightsFile, serialize_weights(weights));
    folder_.remove_checkpoints();
  }

  const TrainOptions& options_;
  const std::function<void(const TrainProgress&)>& progress_;
  const OutputFolder folder_;
  TrainingData data_;
  std::array<bool, kNetCount> enough_{};  ///< rows to learn each network from
  std::vector<std::unique_ptr<Fold>> folds_;
  struct CorrectionRows {
    NetRows train, held_out;
    GrowingPairs pairs;
  };
  std::deque<CorrectionRows> correction_rows_;  ///< of each correction, in the folds' order
  size_t correction_jobs_ = 0;
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
