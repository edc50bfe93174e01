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

/// The row's device, or the GPU of its cluster.
DeviceRef JobTable::device_of(size_t row, const Request& request) const {
  if (const std::string& cluster = request.parallel.cluster; !cluster.empty()) {
    const std::string* const gpu = gpu_ == nullptr ? nullptr : gpu_->word(row);
    return load_gpu_or_cluster(gpu == nullptr ? "" : *gpu, cluster);
  }
  DeviceRef device = value_of(devices_, gpu_, row, "gpu");
  auto* const accelerator = std::get_if<AcceleratorRef>(&device);
  if (accelerator == nullptr) return device;
  for (const JobColumn& column : columns_) {
    if (column.kind != JobColumn::Kind::kParameter) continue;
    if (const std::string* const word = column.word(row))
      accelerator->options.parameters.emplace_back(column.name,
                                                   parameter_value(*word, column.name));
  }
  return device;
}

std::vector<GivenOption> JobTable::options_of(size_t row) const {
  std::vector<GivenOption> given;
  for (const JobColumn& column : columns_) {
    if (column.kind != JobColumn::Kind::kOption) continue;
    if (const std::string* const word = column.word(row)) given.push_back({column.name, *word});
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
