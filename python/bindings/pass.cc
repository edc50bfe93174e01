// The forecast of a pass or a training step as a Python object.

#include <fmt/format.h>

#include "api/remedies.h"
#include "base/text.h"
#include "bindings/bindings.h"
#include "tilecast/report.h"

namespace tilecast::python {
namespace {

struct PassResult {
  Asked asked;
  Forecast forecast;
  bool has_remedies = false;
  std::optional<int64_t> largest_batch;

  /// Computes what takes longer than the forecast, when it is first asked for. Needs the GIL.
  void add_remedies() {
    if (has_remedies) return;
    Forecast with = forecast;
    std::optional<int64_t> largest;
    {
      const py::gil_scoped_release release;
      largest =
          tilecast::add_remedies(with, *asked.forecaster, asked.model, asked.gpu, asked.request);
    }
    forecast.memory.remedies = std::move(with.memory.remedies);
    forecast.memory.reserved_bytes = with.memory.reserved_bytes;
    forecast.warnings = std::move(with.warnings);
    largest_batch = largest;
    has_remedies = true;
  }

  std::string json() {
    add_remedies();
    const py::gil_scoped_release release;
    return forecast_json(forecast, largest_batch);
  }

  std::string table(int width, size_t rows) {
    add_remedies();
    return forecast_table(forecast, {.width = width, .rows = rows, .largest_batch = largest_batch});
  }
};

using Result = std::shared_ptr<PassResult>;

/// The memory of a result.
struct Memory {
  Result result;
  const MemoryForecast& forecast() const { return result->forecast.memory; }
};

template <typename T>
void add_field(py::class_<Memory>& type, const char* name, T MemoryForecast::* field) {
  type.def_property_readonly(name, [field](const Memory& m) { return m.forecast().*field; });
}

void add_pass_memory(py::module_& module) {
  py::class_<MemoryParts> parts(module, "MemoryParts", "Bytes by what they are for.");
  for (const NamedPart& part : kMemoryParts)
    parts.def_property_readonly((std::string(part.name) + "_bytes").c_str(),
                                [bytes = part.bytes](const MemoryParts& p) { return p.*bytes; });
  py::class_<MemoryRemedy>(module, "MemoryRemedy", "A change of options, and memory with it.")
      .def_readonly("option", &MemoryRemedy::option)
      .def_readonly("value", &MemoryRemedy::value)
      .def_readonly("also", &MemoryRemedy::also)
      .def_readonly("peak_bytes", &MemoryRemedy::peak_bytes)
      .def_readonly("fits", &MemoryRemedy::fits)
      .def_readonly("largest_batch", &MemoryRemedy::largest_batch)
      .def("__repr__", [](const MemoryRemedy& r) {
        return fmt::format("MemoryRemedy({} {}: {})", r.option, r.value,
                           format_bytes(r.peak_bytes));
      });
  py::class_<Memory> memory(module, "Memory", "The memory of one GPU, in bytes.");
  add_field(memory, "peak_bytes", &MemoryForecast::peak_bytes);
  add_field(memory, "at_peak", &MemoryForecast::at_peak);
  add_field(memory, "peak_phase", &MemoryForecast::peak_phase);
  add_field(memory, "peak_node", &MemoryForecast::peak_node);
  add_field(memory, "weights_bytes", &MemoryForecast::weights_bytes);
  add_field(memory, "gradients_bytes", &MemoryForecast::gradients_bytes);
  add_field(memory, "gradient_buckets_bytes", &MemoryForecast::gradient_buckets_bytes);
  add_field(memory, "optimizer_bytes", &MemoryForecast::optimizer_bytes);
  add_field(memory, "activations_bytes", &MemoryForecast::activations_bytes);
  add_field(memory, "optimizer_temporaries_bytes", &MemoryForecast::optimizer_temporaries_bytes);
  add_field(memory, "workspace_bytes", &MemoryForecast::workspace_bytes);
  add_field(memory, "framework_bytes", &MemoryForecast::framework_bytes);
  add_field(memory, "stack", &MemoryForecast::stack);
  add_field(memory, "device_bytes", &MemoryForecast::device_bytes);
  memory.def_property_readonly(
      "usable_bytes", [](const Memory& m) { return m.forecast().usable_bytes(); },
      "What programs see of the device's memory.");
  add_field(memory, "margin_bytes", &MemoryForecast::margin_bytes);
  add_field(memory, "fits", &MemoryForecast::fits);
  memory.def_property_readonly(
      "largest_batch",
      [](const Memory& m) {
        m.result->add_remedies();
        return m.result->largest_batch;
      },
      "The largest batch that fits; computed when first read.");
  memory.def_property_readonly(
      "reserved_bytes",
      [](const Memory& m) {
        m.result->add_remedies();
        return m.forecast().reserved_bytes;
      },
      "What the caching allocator takes at most, if the peak hardly fits; computed when first "
      "read.");
  memory.def_property_readonly(
      "remedies",
      [](const Memory& m) {
        m.result->add_remedies();
        return m.forecast().remedies;
      },
      "What would help if the model does not fit; computed when first read.");
  memory.def("__repr__", [](const Memory& m) {
    return fmt::format("{} of {}", format_bytes(m.forecast().peak_bytes),
                       format_bytes(m.forecast().device_bytes));
  });
}

using PassClass = py::class_<PassResult, Result>;

template <typename T>
void add_field(PassClass& type, const char* name, T Forecast::* field) {
  type.def_property_readonly(name, [field](const PassResult& r) { return r.forecast.*field; });
}

}  // namespace

py::object make_pass(Asked asked, Forecast forecast) {
  return py::cast(std::make_shared<PassResult>(
      PassResult{.asked = std::move(asked), .forecast = std::move(forecast)}));
}

void add_pass(py::module_& module) {
  add_pass_memory(module);
  PassClass pass(module, "Forecast", "The forecast of one pass or training step.");
  add_field(pass, "model", &Forecast::model);
  add_field(pass, "gpu", &Forecast::gpu);
  add_field(pass, "gpu_name", &Forecast::gpu_name);
  add_field(pass, "mode", &Forecast::mode);
  add_field(pass, "batch", &Forecast::batch);
  add_field(pass, "seq", &Forecast::seq);
  add_field(pass, "dtype", &Forecast::dtype);
  add_field(pass, "dtype_source", &Forecast::dtype_source);
  pass.def_property_readonly("latency", [](const PassResult& r) {
    return Estimate{r.forecast.latency_s, r.forecast.latency_low_s, r.forecast.latency_high_s};
  });
  add_field(pass, "latency_s", &Forecast::latency_s);
  add_field(pass, "latency_low_s", &Forecast::latency_low_s);
  add_field(pass, "latency_high_s", &Forecast::latency_high_s);
  add_field(pass, "host_wait_s", &Forecast::host_wait_s);
  add_field(pass, "forward_s", &Forecast::forward_s);
  add_field(pass, "backward_s", &Forecast::backward_s);
  add_field(pass, "optimizer_s", &Forecast::optimizer_s);
  add_field(pass, "flops", &Forecast::flops);
  add_field(pass, "bytes", &Forecast::bytes);
  add_field(pass, "parameters", &Forecast::parameters);
  add_field(pass, "utilization_ratio", &Forecast::utilization_ratio);
  pass.def_property_readonly("memory", [](const Result& r) { return Memory{r}; });
  pass.def_property_readonly("kernel_rows", [](const PassResult& r) {
    return kernel_rows(r.forecast.kernels, r.forecast.names);
  });
  pass.def_property_readonly("warnings", [](PassResult& r) {
    if (!r.forecast.memory.fits) r.add_remedies();  // the warning names what fits
    return warning_texts(r.forecast.warnings);
  });
  pass.def_property_readonly(
      "warning_codes", [](const PassResult& r) { return warning_code_names(r.forecast.warnings); });
  pass.def("to_json", &PassResult::json, "What `tilecast forecast --format json` writes.");
  pass.def("table", &PassResult::table, py::arg("width") = TableStyle{}.width,
           py::arg("rows") = TableStyle{}.rows, "What `tilecast forecast` writes.");
  add_views(pass);
}

}  // namespace tilecast::python
