#include "train/weights_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "base/file.h"
#include "base/text.h"
#include "software/software.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A kind of kernel is learned from at least so many rows.
constexpr size_t kFewestKindRows = 100;

/// A forest is learned from at least so many rows of its class and software.
constexpr size_t kFewestForestRows = 50;

/// A combination of software and precision counts as measured from so many rows on: some shapes, or
/// some layers at several sizes.
constexpr size_t kFewestCombinationRows = 50;
constexpr size_t kFewestLayerRows = 200;

void check_kinds(WeightsJob& job) {
  bool any = false;
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const size_t count = job.tables[n].count();
    if (count >= kFewestKindRows) {
      any = true;
      continue;
    }
    job.data.report.push_back(
        fmt::format("too little to learn '{}' from: {} usable rows, at least {} are needed; add "
                    "measurement folders with --data",
                    kernel_kind_name(static_cast<KernelKind>(n)), count, kFewestKindRows));
    job.weights.models[n] = KindModel{};
    job.tables[n] = KindTable{};
  }
  if (!any) throw Error(ErrorKind::kInput, join(job.data.report, "; "));
}

/// Rows that a kind is learned from, as forecasts ask for it.
TrainedOn trained_on(const WeightsJob& job, const KindTable& table) {
  std::set<std::string> operators, vendors;
  TrainedOn result;
  for (const size_t i : table.index) {
    const TrainingRow& row = job.data.rows[i];
    operators.insert(job.data.groups[row.group].op);
    vendors.insert(job.data.devices[row.device].vendor);
    result.forms.add(forms_of(row.kernel));
  }
  result.operators.assign(operators.begin(), operators.end());
  result.vendors.assign(vendors.begin(), vendors.end());
  return result;
}

/// The device as a class's residual knows it: the combinations that enough of its rows have, in the
/// order in which they come.
MeasuredDevice measured_device(const WeightsJob& job, KernelKind kind, size_t device) {
  const KindTable& table = job.tables[static_cast<size_t>(kind)];
  std::vector<std::pair<Combination, size_t>> counts;
  for (const size_t i : table.index) {
    const TrainingRow& row = job.data.rows[i];
    if (row.device != device) continue;
    const Combination combination = combination_of(row.kernel, row.conditions);
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& c) { return c.first == combination; });
    if (found == counts.end()) {
      counts.emplace_back(combination, 1);
    } else {
      found->second += 1;
    }
  }
  const Device& d = job.data.devices[device];
  MeasuredDevice measured{.source = d.id, .signature = signature_of(d)};
  const size_t fewest =
      kernel_kind_def(kind).learning.from_layers ? kFewestLayerRows : kFewestCombinationRows;
  for (const auto& [combination, count] : counts) {
    if (count >= fewest) measured.measured.push_back(combination);
  }
  return measured;
}

/// Rows of each device with each software.
using RowCounts = std::map<std::pair<size_t, Software>, size_t>;

RowCounts count_rows(const WeightsJob& job, const KindTable& table) {
  RowCounts counts;
  for (size_t r = 0; r < table.count(); ++r) {
    const TrainingRow& row = job.data.rows[table.index[r]];
    if (!table.held_out[r]) counts[{row.device, row.conditions.software}] += 1;
  }
  return counts;
}

/// Plans the forests of a class, and those that measure what they know of each device left out.
void list_forests(WeightsJob& job, KernelKind kind, const ClassResidual& residual,
                  const std::set<size_t>& devices, const RowCounts& counts) {
  std::map<Software, size_t> by_software;
  for (const auto& [key, count] : counts) {
    if (devices.contains(key.first)) by_software[key.second] += count;
  }
  for (const auto& [software, count] : by_software) {
    if (count < kFewestForestRows) continue;
    const std::string name =
        fmt::format("{}-{}-{}-{}", kernel_kind_name(kind), choice_word(residual.of.architecture),
                    residual.of.hbm ? "hbm" : "gddr", software_name(software));
    ForestJob full{.kind = kind, .of = residual.of, .software = software, .name = name};
    for (const size_t device : devices) {
      if (counts.contains({device, software})) full.devices.insert(device);
    }
    job.forests.push_back(full);
    if (!job.options.leave_one_out) continue;
    for (const size_t device : full.devices) {
      if (count - counts.at({device, software}) < kFewestForestRows) continue;
      ForestJob without = full;
      without.left_out = device;
      without.devices.erase(device);
      without.name = name + "-without-" + job.data.devices[device].id;
      job.forests.push_back(without);
    }
  }
}

void list_kind(WeightsJob& job, KernelKind kind) {
  const KindTable& table = job.tables[static_cast<size_t>(kind)];
  KindModel& model = job.weights.models[static_cast<size_t>(kind)];
  model.trained_on = trained_on(job, table);
  std::map<KernelClass, std::set<size_t>> classes;
  for (const size_t i : table.index) {
    const size_t device = job.data.rows[i].device;
    classes[class_of(job.data.devices[device])].insert(device);
  }
  const RowCounts counts = count_rows(job, table);
  for (const auto& [of, devices] : classes) {
    ClassResidual residual{
        .of = of,
        .matrix_instruction = job.data.devices[*devices.begin()].gpu().matrix_instruction};
    for (const size_t device : devices)
      residual.devices.push_back(measured_device(job, kind, device));
    list_forests(job, kind, residual, devices, counts);
    model.classes.push_back(std::move(residual));
  }
}

/// Kinds with fewer features are smooth: large leaves keep the noise of single rows out.
constexpr size_t kFewFeatures = 6;

/// Trees of a forest. Few features, or few rows, need few (research/experiments.md).
int trees_of(const TrainOptions& options, size_t features, size_t rows) {
  constexpr size_t kFeaturesOfAll = 12, kFeaturesOfAllWhereFew = 18, kRowsOfAll = 8000;
  const size_t all = features < kFewFeatures ? kFeaturesOfAllWhereFew : kFeaturesOfAll;
  const double share =
      std::min({1.0, static_cast<double>(features) / static_cast<double>(all),
                0.2 + static_cast<double>(rows) / static_cast<double>(kRowsOfAll)});
  return std::max(1, static_cast<int>(std::lround(options.trees * share)));
}

/// Whether a forest learns from a row, held out or not.
bool is_of(const WeightsJob& job, const ForestJob& planned, const TrainingRow& row) {
  return row.conditions.software == planned.software && row.device != planned.left_out &&
         class_of(job.data.devices[row.device]) == planned.of;
}

uint64_t hash_of(std::string_view bytes, uint64_t hash = 14695981039346656037ull) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

template <typename T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// Names the task that a forest was learned from and how: a checkpoint of another is not taken up.
std::string checkpoint_header(const ForestTask& task) {
  uint64_t hash = hash_of(forest_settings());
  for (const std::vector<float>* values : {&task.inputs, &task.targets, &task.weights})
    hash = hash_of(bytes_of(std::span<const float>(*values)), hash);
  return fmt::format("tilecast-forest {:016x} {} {} {} {}\n", hash, task.seed, task.trees,
                     task.depth, task.leaf_weight);
}

/// Header, trees, and the hash of both.
bool read_checkpoint(const std::filesystem::path& path, const ForestTask& task, Forest& forest) {
  if (!std::filesystem::exists(path)) return false;
  const std::string content = read_file(path);
  const std::string header = checkpoint_header(task);
  std::vector<Forest::Tree> trees(static_cast<size_t>(task.trees));
  const size_t end = header.size() + trees.size() * sizeof(Forest::Tree);
  uint64_t hash = 0;
  if (!content.starts_with(header) || content.size() != end + sizeof hash) return false;
  std::memcpy(&hash, content.data() + end, sizeof hash);
  if (hash != hash_of(std::string_view(content).substr(0, end))) return false;
  std::memcpy(trees.data(), content.data() + header.size(), end - header.size());
  forest = Forest(std::move(trees));
  return true;
}

void write_checkpoint(const std::filesystem::path& path, const ForestTask& task,
                      const Forest& forest) {
  std::string content = checkpoint_header(task);
  content.append(bytes_of(forest.trees()));
  const uint64_t hash = hash_of(content);
  content.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  write_file(path, content);
}

void set_range(const ForestTask& task, SoftwareForest& learned) {
  learned.minimum.assign(task.width, std::numeric_limits<float>::max());
  learned.maximum.assign(task.width, std::numeric_limits<float>::lowest());
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const size_t j = i % task.width;
    learned.minimum[j] = std::min(learned.minimum[j], task.inputs[i]);
    learned.maximum[j] = std::max(learned.maximum[j], task.inputs[i]);
  }
}

double mean_error(const Forest& forest, const ForestTask& task) {
  std::vector<float> outputs(task.targets.size(), 0.0f);
  forest_add(forest, task.inputs.data(), task.width, outputs.size(), 1.0f, outputs.data());
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i)
    sum += std::abs(static_cast<double>(outputs[i] - task.targets[i]));
  return outputs.empty() ? 0 : sum / static_cast<double>(outputs.size());
}

}  // namespace

size_t WeightsJob::device_index(const std::string& id) const {
  const auto found = std::find_if(data.devices.begin(), data.devices.end(),
                                  [&](const Device& device) { return device.id == id; });
  return static_cast<size_t>(found - data.devices.begin());
}

WeightsJob weights_job(const TrainOptions& options, const std::filesystem::path& checkpoints) {
  WeightsJob job{.options = options, .checkpoints = checkpoints};
  std::vector<MeasurementSet> sets;
  for (const std::filesystem::path& path : options.data) sets.push_back(read_measurements(path));
  job.data = prepare_training_data(sets, options.exclude_gpus, nullptr, load_laws(options.laws));
  job.tables = make_tables(job.data, job.weights, options.seed);
  check_kinds(job);
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    if (job.tables[n].count() > 0) list_kind(job, static_cast<KernelKind>(n));
  }
  return job;
}

void learn_forest(const WeightsJob& job, ForestJob& planned) {
  const KindTable& table = job.tables[static_cast<size_t>(planned.kind)];
  const auto rows = [&](bool held_out) {
    return forest_task(table, job.data, [&](size_t r) {
      return table.held_out[r] == held_out && is_of(job, planned, job.data.rows[table.index[r]]);
    });
  };
  ForestTask task = rows(false);
  const std::vector<float> measured = task.targets;
  const auto share = static_cast<float>(traits_of(planned.software).learned_share);
  for (float& target : task.targets) target *= share;
  if (task.width < kFewFeatures) {
    task.depth = 5;
    task.leaf_weight = 10;
  }
  task.trees = trees_of(job.options, task.width, task.targets.size());
  task.seed = job.options.seed;
  const std::filesystem::path checkpoint = job.checkpoints / (planned.name + ".forest");
  if (!read_checkpoint(checkpoint, task, planned.learned.forest)) {
    planned.learned.forest = train_forest(task);
    write_checkpoint(checkpoint, task, planned.learned.forest);
  }
  planned.learned.software = planned.software;
  set_range(task, planned.learned);
  planned.rows = task.targets.size();
  task.targets = measured;
  planned.train_error = mean_error(planned.learned.forest, task);
  planned.held_out_error = mean_error(planned.learned.forest, rows(true));
}

KindModel assembled(const WeightsJob& job, KernelKind kind, const LeftOut& left_out) {
  KindModel model = job.weights.model(kind);
  const std::string* gone = left_out.device ? &job.data.devices[*left_out.device].id : nullptr;
  const auto is_gone = [&](const MeasuredDevice& d) {
    return gone != nullptr && d.source == *gone;
  };
  for (ClassResidual& residual : model.classes) {
    const bool shrinks = std::erase_if(residual.devices, is_gone) > 0;
    residual.forests.clear();
    for (const ForestJob& f : job.forests) {
      if (f.kind != kind || f.of != residual.of) continue;
      // A forest that learned nothing from the left-out device stays as it is.
      const bool changes = shrinks && (f.left_out || f.devices.contains(*left_out.device));
      if (f.left_out == (changes ? left_out.device : std::nullopt))
        residual.forests.push_back(f.learned);
    }
  }
  std::erase_if(model.classes, [&](const ClassResidual& residual) {
    return residual.devices.empty() || residual.of.architecture == left_out.architecture;
  });
  return model;
}

}  // namespace tilecast
