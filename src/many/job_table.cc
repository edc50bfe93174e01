#include "many/job_table.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "base/threads.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A name, a path, or the text of a config.
ModelRef load_word(const std::string& word) {
  return word.starts_with("{") ? model_from_text(word, "config") : load_model_ref(word);
}

template <typename Work>
JobResult catching(const Work& work) {
  try {
    return {work(), ""};
  } catch (const LimitReached&) {
    throw;  // of all rows
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  } catch (const std::bad_alloc&) {
    return {std::nullopt, "out of memory"};
  } catch (const std::exception& error) {
    return {std::nullopt, fmt::format("this is a bug: {}", error.what())};
  }
}

}  // namespace

JobTable::JobTable(const Forecaster& forecaster, std::vector<JobColumn> columns)
    : forecaster_(forecaster), columns_(std::move(columns)) {
  for (const JobColumn& column : columns_) {
    if (column.kind == JobColumn::Kind::kModel) model_ = &column;
    if (column.kind == JobColumn::Kind::kGpu) gpu_ = &column;
  }
}

template <typename T>
JobTable::Loaded<T> JobTable::try_load(const std::string& word,
                                       const std::function<T(const std::string&)>& load) {
  try {
    return {load(word), ""};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

void JobTable::load(const ManyOptions& options) {
  if (model_ != nullptr) models_.resize(model_->words->size());
  if (gpu_ != nullptr) devices_.resize(gpu_->words->size());
  run_parallel(models_.size(), options.threads, options.poll,
               [&](size_t i) { models_[i] = try_load<ModelRef>((*model_->words)[i], load_word); });
  run_parallel(devices_.size(), options.threads, options.poll, [&](size_t i) {
    devices_[i] = try_load<DeviceRef>(
        (*gpu_->words)[i], [](const std::string& word) { return load_device_ref(word); });
  });
}

template <typename T>
const T& JobTable::value_of(const std::vector<Loaded<T>>& loaded, const JobColumn* column,
                            size_t row, const char* name) {
  const int32_t code = column == nullptr ? OptionColumn::kNotGiven : column->code(row);
  if (code == OptionColumn::kNotGiven) throw OptionError(fmt::format("`{}` is missing", name));
  const Loaded<T>& entry = loaded[static_cast<size_t>(code)];
  if (!entry.value) throw Error(ErrorKind::kInput, entry.error);
  return *entry.value;
}

/// The numbers of the row's device.
std::vector<std::pair<std::string, double>> JobTable::parameters_of(size_t row) const {
  std::vector<std::pair<std::string, double>> given;
  for (const JobColumn& column : columns_) {
    if (column.kind != JobColumn::Kind::kParameter) continue;
    if (const std::optional<std::string> text = column.text(row))
      given.emplace_back(column.name, parameter_value(*text, column.name));
  }
  return given;
}

/// The row's device, or the GPU of its cluster.
DeviceRef JobTable::device_of(size_t row, const Request& request) const {
  const std::vector<std::pair<std::string, double>> parameters = parameters_of(row);
  if (const std::string& cluster = request.parallel.cluster; !cluster.empty()) {
    if (!parameters.empty())
      throw OptionError(
          fmt::format("`cluster` {} states its GPUs: leave out the numbers of the device, or "
                      "`cluster`",
                      printable(cluster)));
    const std::optional<std::string> gpu = gpu_ == nullptr ? std::nullopt : gpu_->text(row);
    return load_gpu_or_cluster(gpu.value_or(""), cluster);
  }
  DeviceRef device = value_of(devices_, gpu_, row, "gpu");
  if (parameters.empty()) return device;
  if (auto* const accelerator = std::get_if<AcceleratorRef>(&device)) {
    auto& all = accelerator->options.parameters;
    all.insert(all.end(), parameters.begin(), parameters.end());
    return device;
  }
  return with_numbers(std::get<GpuRef>(device), parameters);
}

std::vector<GivenOption> JobTable::options_of(size_t row) const {
  std::vector<GivenOption> given;
  for (const JobColumn& column : columns_) {
    if (column.kind != JobColumn::Kind::kOption) continue;
    if (std::optional<std::string> text = column.text(row))
      given.push_back({column.name, *std::move(text)});
  }
  return given;
}

JobResult JobTable::run(size_t row, const JobShared& shared) const {
  return catching([&] {
    const ModelRef& model = value_of(models_, model_, row, "model");
    const Request request = make_request(options_of(row));
    const DeviceRef device = device_of(row, request);
    return answer({.forecaster = forecaster_,
                   .model = model,
                   .device = device,
                   .request = request,
                   .detail = Detail::kNumbers,
                   .passes = shared.passes,
                   .layers = shared.layers});
  });
}

JobResult run_job(const Inquiry& inquiry) {
  return catching([&] { return answer(inquiry); });
}

double parameter_value(const std::string& text, const std::string& parameter) {
  const std::optional<double> value = parse_number<double>(text);
  if (!value || !std::isfinite(*value))
    throw Error(ErrorKind::kInput, fmt::format("parameters: '{}': expected a number, found '{}'",
                                               shown_name(parameter), shown_name(text)));
  return *value;
}

}  // namespace tilecast
