// Many forecasts: all combinations of the lists of a file,
//
// {"model": ["alexnet.tcg"], "gpu": ["gemmini"], "batch": [1, 4],
//  "parameters": {"DIM": [8, 16, 32], "SCRATCHPAD": [131072, 262144]}}
//
// on all cores. Each result is a line of the output, which begins with the number of its
// combination: a run that was interrupted continues with those that are missing.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "api/accelerator_pass.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "request/access.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kMostCombinations = 1e7;

/// One list of the file: a model, a device, an option or a parameter of a description.
struct Axis {
  enum class Kind { kModel, kGpu, kOption, kParameter };
  Kind kind;
  std::string name;
  std::vector<std::string> values;
};

struct Combination {
  std::string model, gpu;
  Request request;
  AcceleratorOptions options;
  std::string line;  ///< the values as cells
};

std::string as_text(const Json& value, const JsonObject& file, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  file.fail(key, "expected a list of texts or numbers");
}

Axis read_axis(const JsonObject& file, const std::string& key, Axis::Kind kind) {
  Axis axis{.kind = kind, .name = key, .values = {}};
  const Json& list = file.json()[key];
  if (!list.is_array() || list.empty()) file.fail(key, "expected a list of at least one value");
  for (const Json& value : list) axis.values.push_back(as_text(value, file, key));
  return axis;
}

class Sweep {
 public:
  explicit Sweep(const JsonObject& file) {
    for (const char* needed : {"model", "gpu"})
      if (!file.has(needed)) file.fail(needed, "is missing: a list of models, of devices");
    axes_.push_back(read_axis(file, "model", Axis::Kind::kModel));
    axes_.push_back(read_axis(file, "gpu", Axis::Kind::kGpu));
    for (const auto& item : file.json().items()) {
      if (item.key() == "model" || item.key() == "gpu") continue;
      if (item.key() == "parameters") {
        const JsonObject parameters = file.object("parameters");
        for (const auto& parameter : parameters.json().items())
          axes_.push_back(read_axis(parameters, parameter.key(), Axis::Kind::kParameter));
      } else if (find_option(item.key(), RequestKind::kPass) != nullptr) {
        axes_.push_back(read_axis(file, item.key(), Axis::Kind::kOption));
      } else {
        file.fail(item.key(), "expected model, gpu, parameters, or an option of a forecast");
      }
    }
    double all = 1;
    for (const Axis& axis : axes_) all *= static_cast<double>(axis.values.size());
    if (all > kMostCombinations)
      throw Error(ErrorKind::kInput, fmt::format("{}: {:.3g} combinations; at most {:.3g}",
                                                 file.where(), all, kMostCombinations));
    size_ = static_cast<size_t>(all);
  }

  size_t size() const { return size_; }
  std::string header() const {
    std::string line = "index";
    for (const Axis& axis : axes_) line += "," + csv_cell(axis.name);
    return line + ",cycles,latency_s,macs,pe_count,on_chip_bytes,energy_j,converged,error\n";
  }
  Combination at(size_t index) const {
    Combination one;
    for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
      const std::string& value = axis->values[index % axis->values.size()];
      index /= axis->values.size();
      one.line = csv_cell(value) + "," + one.line;
      switch (axis->kind) {
        case Axis::Kind::kModel:
          one.model = value;
          break;
        case Axis::Kind::kGpu:
          one.gpu = value;
          break;
        case Axis::Kind::kOption:
          set_option(one.request, *find_option(axis->name, RequestKind::kPass), value);
          break;
        case Axis::Kind::kParameter:
          one.options.parameters.emplace_back(axis->name, std::stod(value));
      }
    }
    return one;
  }

 private:
  std::vector<Axis> axes_;
  size_t size_ = 0;
};

/// What combinations share: models and their layers.
class Runner {
 public:
  std::string run(const Combination& one) {
    const ModelRef model = model_of(one.model);
    if (!is_accelerator(one.gpu)) {
      const Forecast forecast = forecaster_.forecast(model, load_gpu_ref(one.gpu), one.request);
      return fmt::format(",{},{},,,,1,", forecast.latency_s, forecast.flops / 2);
    }
    const accelerator::ParameterValues values(one.options.parameters.begin(),
                                              one.options.parameters.end());
    const accelerator::Design design = accelerator::open_accelerator(one.gpu, values);
    const AcceleratorForecast f = time_layers(layers_of(one, model), design, one.options);
    const bool converged = std::all_of(f.layers.begin(), f.layers.end(),
                                       [](const AcceleratorLayer& row) { return row.converged; });
    return fmt::format("{:.0f},{},{},{},{:.0f},{},{},", f.cycles,
                       f.cycles / design.machine.clock_hz, f.macs, design.machine.pe_count(),
                       design.on_chip_bytes(), f.energy_j, converged ? 1 : 0);
  }

 private:
  ModelRef model_of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto it = models_.find(name);
    if (it == models_.end()) it = models_.emplace(name, load_model_ref(name)).first;
    return it->second;
  }
  const std::vector<PassLayer>& layers_of(const Combination& one, const ModelRef& model) {
    const std::string key =
        fmt::format("{}\n{}\n{}", one.model, one.request.batch, one.request.seq.value_or(0));
    const std::lock_guard lock(mutex_);
    auto it = layers_.find(key);
    if (it == layers_.end()) it = layers_.emplace(key, pass_layers(model, one.request)).first;
    return it->second;
  }

  std::mutex mutex_;
  std::map<std::string, ModelRef> models_;
  std::map<std::string, std::vector<PassLayer>> layers_;
  Forecaster forecaster_;
};

/// The combinations that the output holds already. A line that was cut off is removed.
std::set<size_t> read_done(const std::string& output, const Sweep& sweep) {
  std::set<size_t> done;
  std::ifstream in(output);
  if (!in) return done;
  std::string line, kept;
  if (!std::getline(in, line) || line + "\n" != sweep.header())
    throw Error(ErrorKind::kInput, printable(output) +
                                       ": is not the output of this sweep; remove it or write to "
                                       "another file");
  kept = line + "\n";
  while (std::getline(in, line) && !in.eof()) {
    kept += line + "\n";
    done.insert(std::stoull(line));
  }
  in.close();
  write_file(output, kept);
  return done;
}

struct Point {
  double cycles, pe_count, bytes;
  std::string line;
  bool beats(const Point& other) const {
    return cycles <= other.cycles && pe_count <= other.pe_count && bytes <= other.bytes &&
           (cycles < other.cycles || pe_count < other.pe_count || bytes < other.bytes);
  }
};

/// The designs that no other one beats in cycles, MACs and bytes of memory, for each model.
std::string pareto_front(const std::string& output) {
  const CsvTable table = parse_csv(read_file(output), output);
  const size_t cycles = table.require_column("cycles"), pe = table.require_column("pe_count"),
               bytes = table.require_column("on_chip_bytes"), model = table.require_column("model");
  std::map<std::string, std::vector<Point>> models;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i][cycles].empty()) continue;
    models[table.rows[i][model]].push_back({table.number(i, cycles), table.number(i, pe),
                                            table.number(i, bytes), join(table.rows[i], ",")});
  }
  std::string text = join(table.header, ",") + "\n";
  for (auto& [name, points] : models) {
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) { return a.cycles < b.cycles; });
    for (const Point& point : points)
      if (std::none_of(points.begin(), points.end(),
                       [&](const Point& other) { return other.beats(point); }))
        text += point.line + "\n";
  }
  return text;
}

}  // namespace

std::string run_sweep(const std::string& spec_file, const std::string& output, int64_t threads) {
  const Json json = parse_json(read_file(spec_file), printable(spec_file));
  const Sweep sweep(JsonObject(json, printable(spec_file)));
  const std::set<size_t> done = read_done(output, sweep);
  std::ofstream out(output, std::ios::app);
  if (!out) throw Error(ErrorKind::kIo, "cannot write to " + printable(output));
  if (done.empty() && out.tellp() == 0) out << sweep.header() << std::flush;
  Runner runner;
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < sweep.size(); i = next++) {
      if (done.count(i) > 0) continue;
      std::string line;
      try {
        const Combination one = sweep.at(i);
        line = fmt::format("{},{}", i, one.line);
        line += runner.run(one);
      } catch (const std::exception& error) {
        line += ",,,,,,," + csv_cell(error.what());
      }
      const std::lock_guard lock(mutex);
      out << line << "\n" << std::flush;
    }
  };
  std::vector<std::thread> pool;
  for (int64_t i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  out.close();
  return pareto_front(output);
}

}  // namespace tilecast
