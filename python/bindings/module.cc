// The module tilecast._core.

#include <fmt/format.h>

#include "base/text.h"
#include "bindings/accelerator.h"
#include "bindings/bindings.h"
#include "bindings/questions.h"
#include "bindings/records.h"
#include "tilecast/evaluate.h"
#include "tilecast/report.h"

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

void add_evaluation(py::module_& module) {
  py::class_<EvaluationRow>(module, "EvaluationRow", "Errors of one GPU, operator and dtype.")
      .def_readonly("gpu", &EvaluationRow::gpu)
      .def_readonly("op", &EvaluationRow::op)
      .def_readonly("dtype", &EvaluationRow::dtype)
      .def_readonly("software", &EvaluationRow::software)
      .def_readonly("count", &EvaluationRow::count)
      .def_readonly("mape_percent", &EvaluationRow::mape_percent)
      .def_readonly("median_percent", &EvaluationRow::median_percent)
      .def_readonly("p90_percent", &EvaluationRow::p90_percent)
      .def_readonly("bias_ratio", &EvaluationRow::bias_ratio)
      .def_readonly("coverage_percent", &EvaluationRow::coverage_percent);
  using Model = EvaluationModel;
  py::class_<Model>(module, "EvaluationModel", "The error of one measured model.")
      .def_readonly("gpu", &Model::gpu)
      .def_readonly("model", &Model::model)
      .def_readonly("mode", &Model::mode)
      .def_readonly("seq", &Model::seq)
      .def_readonly("batch", &Model::batch)
      .def_readonly("dtype", &Model::dtype)
      .def_readonly("option", &Model::option)
      .def_readonly("measured_s", &Model::measured_s)
      .def_readonly("forecast_s", &Model::forecast_s)
      .def_readonly("low_s", &Model::low_s)
      .def_readonly("high_s", &Model::high_s)
      .def_readonly("error_percent", &Model::error_percent);
  py::class_<Evaluation>(module, "Evaluation", "Forecasts compared with measurements.")
      .def_readonly("rows", &Evaluation::rows)
      .def_readonly("models", &Evaluation::models)
      .def_readonly("unmatched", &Evaluation::unmatched)
      .def_property_readonly("warnings", evaluation_warnings)
      .def("to_json", evaluation_json, "What `tilecast evaluate --format json` writes.")
      .def("__str__", [](const Evaluation& e) { return evaluation_table(e); });
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

}  // namespace

ModelRef model_of(const py::object& source, const py::object& inputs, const py::object& mode) {
  if (py::isinstance<ModelRef>(source)) return source.cast<ModelRef>();
  return py::module_::import("tilecast._models")
      .attr("load_model")(source, inputs, mode)
      .cast<ModelRef>();
}

GpuRef gpu_of(const py::object& source) {
  if (py::isinstance<GpuRef>(source)) return source.cast<GpuRef>();
  if (py::isinstance<GpuEntry>(source)) return load_gpu_ref(source.cast<GpuEntry&>().id);
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
  add_errors();
  add_options(module);
  add_catalog(module);
  add_kernels(module);
  add_records(module);
  add_pass();
  add_llm(module);
  add_accelerator(module);
  add_table(module);
  add_handles(module);
  add_evaluation(module);
  add_forecaster(module);
  add_questions(module);
}
