// Many forecasts: all combinations of the lists of a file,
//
// {"model": ["resnet-50"], "gpu": ["gemmini"], "batch": [1, 4],
//  "parameters": {"DIM": [8, 16, 32], "SCRATCHPAD": [131072, 262144]}}
//
// on all cores. Each result is a line of the output, which begins with the number of its
// combination: a run that was interrupted continues with those that are missing.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "accelerator/nest_times.h"
#include "api/accelerator/pass.h"
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
  /// A parameter that decides what fits, but not how long a layer takes under a mapping.
  bool keeps_times = false;
};

struct SweepPoint {
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

/// Equal for numbers that are written in two ways: 16, "16", "1.6e1".
std::string compared(const std::string& text, Axis::Kind kind) {
  if (kind == Axis::Kind::kModel || kind == Axis::Kind::kGpu) return text;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != 0 ? text : fmt::format("{}", value);
}

Axis read_axis(const JsonObject& file, const std::string& key, Axis::Kind kind) {
  Axis axis{.kind = kind, .name = key, .values = {}};
  const Json& list = file.json()[key];
  if (!list.is_array() || list.empty()) file.fail(key, "expected a list of at least one value");
  std::set<std::string> seen;
  for (const Json& value : list) {
    axis.values.push_back(as_text(value, file, key));
    if (!seen.insert(compared(axis.values.back(), kind)).second)
      file.fail(key, fmt::format("lists '{}' twice", shown_name(axis.values.back())));
  }
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
        file.fail(item.key(),
                  "expected model, gpu, parameters, or an option of a forecast; a "
                  "dataflow is stated with the device: \"systolic-array:dataflow=…\"");
      }
    }
    double all = 1;
    for (const Axis& axis : axes_) all *= static_cast<double>(axis.values.size());
    if (all > kMostCombinations)
      throw Error(ErrorKind::kInput, fmt::format("{}: {:.3g} combinations; at most {:.3g}",
                                                 file.where(), all, kMostCombinations));
    size_ = static_cast<size_t>(all);
    check_values();
  }

  size_t size() const { return size_; }
  /// The combination that runs at a place: those that share times follow each other.
  size_t index_at(size_t place) const {
    size_t index = 0;
    for (const bool keeps : {true, false}) {
      size_t stride = 1;
      for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
        const size_t values = axis->values.size();
        if (axis->keeps_times == keeps) {
          index += place % values * stride;
          place /= values;
        }
        stride *= values;
      }
    }
    return index;
  }
  /// The columns of options.
  std::vector<std::string> options() const {
    std::vector<std::string> names;
    for (const Axis& axis : axes_)
      if (axis.kind == Axis::Kind::kOption) names.push_back(axis.name);
    return names;
  }
  std::string header() const {
    std::string line = "index";
    for (const Axis& axis : axes_) line += "," + csv_cell(axis.name);
    return line + ",cycles,latency_s,macs,pe_count,on_chip_bytes,energy_j,converged,error\n";
  }
  SweepPoint at(size_t index) const {
    SweepPoint one;
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
          one.options.parameters.emplace_back(axis->name, number_of(value, axis->name));
      }
    }
    return one;
  }

 private:
  static double number_of(const std::string& text, const std::string& parameter) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0)
      throw Error(ErrorKind::kInput, fmt::format("parameters: '{}': expected a number, found '{}'",
                                                 shown_name(parameter), shown_name(text)));
    return value;
  }
  /// A parameter of a list that the device states as well would have no effect.
  static void check_stated_once(const SweepPoint& one) {
    const size_t colon = one.gpu.find(':');
    if (colon == std::string::npos) return;
    for (const std::string& part : split(one.gpu.substr(colon + 1), ','))
      for (const auto& [name, value] : one.options.parameters)
        if (trim(part.substr(0, part.find('='))) == name)
          throw Error(ErrorKind::kInput,
                      fmt::format("'{}' states {}, and so do the 'parameters': leave one of them "
                                  "out",
                                  shown_name(one.gpu), shown_name(name)));
  }
  /// Each value once, so that no combination fails by a value that none can use.
  void check_values() {
    size_t stride = size_;
    for (Axis& axis : axes_) {
      stride /= axis.values.size();
      std::set<std::string> timings;
      for (size_t i = 0; i < axis.values.size(); ++i) {
        const SweepPoint one = at(i * stride);
        if (axis.kind == Axis::Kind::kModel) load_model_ref(one.model);
        if (axis.kind == Axis::Kind::kOption && is_accelerator(one.gpu))
          check_runs_on_accelerators(one.request);
        if (axis.kind == Axis::Kind::kModel || axis.kind == Axis::Kind::kOption) continue;
        if (is_accelerator(one.gpu)) {
          check_stated_once(one);
          timings.insert(timing_key(open_design(one.gpu, one.options)));
        } else {
          load_gpu_ref(one.gpu);
          if (!one.options.parameters.empty())
            throw Error(
                ErrorKind::kInput,
                fmt::format("'parameters' are of accelerators, and '{}' is a GPU: sweep it in a "
                            "file of its own",
                            shown_name(one.gpu)));
        }
      }
      axis.keeps_times = axis.kind == Axis::Kind::kParameter && timings.size() == 1;
    }
  }

  std::vector<Axis> axes_;
  size_t size_ = 0;
};

/// State that combinations share: models and their layers.
class Runner {
 public:
  std::string run(const SweepPoint& one) {
    const ModelRef model = model_of(one.model);
    if (!is_accelerator(one.gpu)) {
      const Forecast forecast = forecaster_.forecast(model, load_gpu_ref(one.gpu), one.request);
      return fmt::format(",{},{},,,,1,", forecast.latency_s, forecast.flops / 2);
    }
    check_runs_on_accelerators(one.request);
    const accelerator::Design design = open_design(one.gpu, one.options);
    const AcceleratorForecast f =
        time_layers(layers_of(one, model), design, one.options, times_.of(design).get());
    const bool converged = std::all_of(f.layers.begin(), f.layers.end(),
                                       [](const AcceleratorLayer& row) { return row.converged; });
    return fmt::format("{:.0f},{},{},{},{:.0f},{},{},", f.cycles,
                       f.cycles / design.machine.clock_hz, f.macs, design.machine.pe_count(),
                       design.on_chip_bytes(), f.has_energy ? fmt::format("{}", f.energy_j) : "",
                       converged ? 1 : 0);
  }

 private:
  ModelRef model_of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto it = models_.find(name);
    if (it == models_.end()) it = models_.emplace(name, load_model_ref(name)).first;
    return it->second;
  }
  const std::vector<PassLayer>& layers_of(const SweepPoint& one, const ModelRef& model) {
    const std::string key =
        fmt::format("{}\n{}\n{}", one.model, one.request.batch, one.request.seq.value_or(0));
    const std::lock_guard lock(mutex_);
    auto it = layers_.find(key);
    if (it == layers_.end())
      it = layers_.emplace(key, merge_equal(pass_launches(model, one.request))).first;
    return it->second;
  }

  std::mutex mutex_;
  std::map<std::string, ModelRef> models_;
  std::map<std::string, std::vector<PassLayer>> layers_;
  accelerator::NestTimesByDesign times_;
  Forecaster forecaster_;
};

/// The combinations that the output holds already. Lines that were cut off or that hold an error
/// are removed: they run again.
std::set<size_t> read_done(const std::string& output, const Sweep& sweep) {
  std::set<size_t> done;
  std::ifstream in(output);
  std::string line;
  if (!in || !std::getline(in, line)) return done;
  const auto other = [&](const std::string& why) {
    return Error(ErrorKind::kInput,
                 fmt::format("{}: {}; remove it or write to another file", printable(output), why));
  };
  if (line + "\n" != sweep.header()) throw other("is not the output of this sweep");
  std::string kept = line + "\n";
  for (size_t number = 2; std::getline(in, line) && !in.eof(); ++number) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    const bool known = error == std::errc() && end != line.data() && index < sweep.size();
    if (!known || !line.starts_with(fmt::format("{},{}", index, sweep.at(index).line)))
      throw other(fmt::format("line {}: is of other lists than this sweep's", number));
    if (!line.ends_with(",")) continue;  // the last cell is an error
    kept += line + "\n";
    done.insert(index);
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

/// The designs that no other one beats in cycles, MACs and bytes of memory, for each model and each
/// combination of options.
std::string pareto_front(const CsvTable& table, const Sweep& sweep) {
  const size_t cycles = table.require_column("cycles"), pe = table.require_column("pe_count"),
               bytes = table.require_column("on_chip_bytes");
  std::vector<size_t> groups = {table.require_column("model")};
  for (const std::string& option : sweep.options()) groups.push_back(table.require_column(option));
  std::map<std::vector<std::string>, std::vector<Point>> alike;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i][cycles].empty()) continue;
    std::vector<std::string> group, cells;
    for (const size_t column : groups) group.push_back(table.rows[i][column]);
    for (const std::string& cell : table.rows[i]) cells.push_back(csv_cell(cell));
    alike[group].push_back(
        {table.number(i, cycles), table.number(i, pe), table.number(i, bytes), join(cells, ",")});
  }
  std::string text = join(table.header, ",") + "\n";
  for (auto& [group, points] : alike) {
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) { return a.cycles < b.cycles; });
    for (const Point& point : points)
      if (std::none_of(points.begin(), points.end(),
                       [&](const Point& other) { return other.beats(point); }))
        text += point.line + "\n";
  }
  return text;
}

std::vector<std::string> warnings_of(const CsvTable& table, const std::string& output) {
  const size_t error = table.require_column("error");
  size_t failed = 0;
  std::string first;
  for (const std::vector<std::string>& row : table.rows)
    if (!row[error].empty() && failed++ == 0)
      first = fmt::format("combination {}: {}", row.front(), printable(row[error]));
  if (failed == 0) return {};
  return {
      fmt::format("{} of {} combinations failed, see 'error' in {}; the next run tries them "
                  "again. The first: {}",
                  failed, table.rows.size(), printable(output), first)};
}

}  // namespace

SweepResult run_sweep(const std::string& spec_file, const std::string& output, int64_t threads) {
  const Json json = parse_json(read_file(spec_file), printable(spec_file));
  const Sweep sweep(JsonObject(json, printable(spec_file)));
  const std::set<size_t> done = read_done(output, sweep);
  std::ofstream out(output, std::ios::app);
  if (!out) throw Error(ErrorKind::kIo, "cannot write to " + printable(output));
  if (std::filesystem::file_size(output) == 0) out << sweep.header() << std::flush;
  Runner runner;
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t place = next++; place < sweep.size(); place = next++) {
      const size_t i = sweep.index_at(place);
      if (done.count(i) > 0) continue;
      std::string line;
      try {
        const SweepPoint one = sweep.at(i);
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
  const CsvTable table = parse_csv(read_file(output), output);
  return {.pareto_front = pareto_front(table, sweep), .warnings = warnings_of(table, output)};
}

}  // namespace tilecast
