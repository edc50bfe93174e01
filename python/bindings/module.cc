// The module tilecast._core.

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "base/expression.h"
#include "base/text.h"
#include "bindings/bindings.h"
#include "bindings/questions.h"
#include "bindings/records.h"
#include "cli/version.h"
#include "devices/device_numbers.h"

namespace tilecast::python {
namespace {

using SharedForecaster = std::shared_ptr<Forecaster>;

void add_handles(py::module_& module) {
  py::class_<ModelRef>(module, "Model", "A model that has been read and checked.")
      .def_property_readonly("name", &ModelRef::name)
      .def("__repr__", [](const ModelRef& m) { return "Model(" + m.name() + ")"; });
  py::class_<GpuRef>(module, "Gpu", "A device that has been read and checked.")
      .def_property_readonly("id", &GpuRef::id)
      .def_property_readonly("warnings", &GpuRef::warnings)
      .def("__repr__", [](const GpuRef& g) { return "Gpu(" + g.id() + ")"; });
  module.def("load_model", load_model_ref, py::arg("name_or_path"),
             py::call_guard<py::gil_scoped_release>());
  module.def("model_from_text", model_from_text, py::arg("text"), py::arg("name"),
             py::call_guard<py::gil_scoped_release>());
  module.def(
      "load_gpu", [](const py::object& gpu) { return gpu_of(gpu); }, py::arg("gpu"),
      "A GPU's id or alias, the path of a device file, or the content of one.");
}

/// A method for each question that weights answer.
void add_forecaster(py::module_& module) {
  py::class_<Forecaster, SharedForecaster> type(module, "Forecaster",
                                                "Forecasts with one set of weights.");
  type.def(py::init([](const py::object& weights, const py::object& calibration) {
             const std::string folder = option_text(weights), file = option_text(calibration);
             const py::gil_scoped_release release;
             return std::make_shared<Forecaster>(folder, file);
           }),
           py::arg("weights") = "", py::arg("calibration") = "")
      .def(
          "forecast_many",
          [](const Forecaster& forecaster, const py::object& table, int threads,
             const py::kwargs& keywords) {
            return forecast_table_of(forecaster, table, threads, keywords);
          },
          py::arg("table"), py::kw_only(), py::arg("threads") = 0);
  for (const Question& question : questions()) {
    if (!question.uses_forecaster) continue;
    type.def(
        std::string(question.name).c_str(),
        [&question](const SharedForecaster& forecaster, const py::args& arguments,
                    const py::kwargs& keywords) {
          return ask_with(forecaster, question, arguments, keywords);
        },
        std::string(question.help).c_str());
  }
  module.def("default_forecaster",
             [] { return std::const_pointer_cast<Forecaster>(default_forecaster()); });
}

/// The arithmetic of data files, for specs that Python reads.
void add_expressions(py::module_& module) {
  module.def(
      "_evaluate",
      [](const std::string& text, const std::map<std::string, double>& values,
         const std::string& where) {
        const auto look_up = [&](std::string_view name) -> std::optional<double> {
          const auto found = values.find(std::string(name));
          return found == values.end() ? std::nullopt : std::optional(found->second);
        };
        return Expression::parse(text, where).evaluate(look_up, where);
      },
      py::arg("text"), py::arg("values"), py::arg("where"));
  module.def(
      "_names_in",
      [](const std::string& text, const std::string& where) {
        return Expression::parse(text, where).names();
      },
      py::arg("text"), py::arg("where"));
  module.def(
      "_is_whole_number_of_gpu",
      [](const std::string& name) {
        const DeviceNumber* const number = find_device_number(name);
        return number == nullptr ? std::nullopt : std::optional(number->is_whole);
      },
      py::arg("name"));
}

}  // namespace

ModelRef model_of(const py::object& source, const py::object& inputs, const py::object& mode) {
  if (py::isinstance<ModelRef>(source)) return source.cast<ModelRef>();
  return py::module_::import("tilecast._models")
      .attr("load_model")(source, inputs, mode)
      .cast<ModelRef>();
}

GpuRef gpu_of(const py::object& source) {
  if (py::isinstance<GpuRef>(source)) return source.cast<GpuRef>();
  if (py::isinstance(source, record_class(record_of<GpuEntry>())))
    return load_gpu_ref(record_in<GpuEntry>(source).id);
  if (py::isinstance<py::dict>(source))
    return gpu_from_text(py::module_::import("json").attr("dumps")(source).cast<std::string>(),
                         "the GPU's dict");
  return load_gpu_ref(option_text(source));
}

}  // namespace tilecast::python

PYBIND11_MODULE(_core, module) {
  using namespace tilecast::python;
  module.doc() = "Tilecast's library. Use the functions of the package tilecast.";
  module.attr("__version__") = TILECAST_VERSION;
  module.attr("__commit__") = std::string(tilecast::built_commit());
  module.def("_hash_of_embedded_data", tilecast::hash_of_embedded_data);
  add_errors();
  add_options(module);
  add_records(module);
  add_pass();
  add_result_views();
  add_table(module);
  add_sweep(module);
  add_handles(module);
  add_forecaster(module);
  add_questions(module);
  add_expressions(module);
  add_program(module);
}
