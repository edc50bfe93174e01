// The module tilecast._core.

#include <fmt/format.h>

#include "api/generation/slower_precision.h"
#include "base/text.h"
#include "bindings/accelerator.h"
#include "bindings/bindings.h"
#include "bindings/records.h"
#include "tilecast/evaluate.h"
#include "tilecast/report.h"

namespace tilecast::python {
namespace {

using SharedForecaster = std::shared_ptr<Forecaster>;

/// A name or path, a handle, or anything that python/tilecast/_models.py can make a model of.
ModelRef model_of(const py::object& source, const py::object& inputs, const py::dict& keywords) {
  if (py::isinstance<ModelRef>(source)) return source.cast<ModelRef>();
  if (py::isinstance<py::str>(source) && inputs.is_none()) {
    const auto name = source.cast<std::string>();
    const py::gil_scoped_release release;
    return load_model_ref(name);
  }
  return py::module_::import("tilecast._models")
      .attr("load_model")(source, inputs, keywords.attr("get")("mode"))
      .cast<ModelRef>();
}

GpuRef gpu_of(const py::object& source) {
  if (source.is_none()) throw OptionError("`gpu` is missing");
  if (py::isinstance<GpuRef>(source)) return source.cast<GpuRef>();
  if (py::isinstance<GpuEntry>(source)) return load_gpu_ref(source.cast<GpuEntry&>().id);
  if (py::isinstance<py::dict>(source))
    return gpu_from_text(py::module_::import("json").attr("dumps")(source).cast<std::string>(),
                         "the GPU's dict");
  return load_gpu_ref(option_text(source));
}

py::object forecast(const SharedForecaster& forecaster, const py::object& model,
                    const py::object& gpu, const py::object& inputs, const py::kwargs& keywords) {
  if (const auto accelerator = accelerator_of(gpu)) {
    py::dict words = py::reinterpret_borrow<py::dict>(keywords).attr("copy")();
    const AcceleratorOptions options = take_accelerator_options(words);
    const Request asked = make_request(given_options(words, "forecast"));
    const ModelRef read = model_of(model, inputs, words);
    AcceleratorForecast result;
    {
      const py::gil_scoped_release release;
      result = forecast_accelerator(read, *accelerator, asked, options);
    }
    return py::cast(std::make_shared<AcceleratorForecast>(std::move(result)));
  }
  Request request = make_request(given_options(keywords, "forecast"));
  const std::string& cluster = request.parallel.cluster;
  Asked asked{.forecaster = forecaster,
              .gpu = cluster.empty() ? gpu_of(gpu)
                     : gpu.is_none() ? load_gpu_or_cluster("", cluster)
                                     : load_gpu_or_cluster(gpu_of(gpu).id(), cluster)};
  asked.request = std::move(request);
  asked.model = model_of(model, inputs, keywords);
  if (asked.request.kind == RequestKind::kPass) {
    Forecast result;
    {
      const py::gil_scoped_release release;
      result = forecaster->forecast(asked.model, asked.gpu, asked.request);
    }
    return make_pass(std::move(asked), std::move(result));
  }
  LlmForecast result;
  {
    const py::gil_scoped_release release;
    result =
        warn_of_slower_precision(forecast_llm(*forecaster, asked.model, asked.gpu, asked.request),
                                 *forecaster, asked.model, asked.gpu, asked.request);
  }
  return make_llm(std::move(result));
}

py::list kernel(const Forecaster& forecaster, const std::string& op, const py::object& gpu,
                const std::string& dtype, const KernelOptions& options, const py::dict& sizes) {
  std::vector<GivenSize> given;
  for (const auto& [key, value] : sizes) {
    GivenSize size{.name = key.cast<std::string>(), .value = int64_t{0}};
    if (py::isinstance<py::str>(value))
      size.value = value.cast<std::string>();
    else
      size.value = value.cast<int64_t>();
    given.push_back(std::move(size));
  }
  return kernel_rows(forecaster.kernel(op, gpu_of(gpu), dtype, given, options), nullptr);
}

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
  module.def("load_gpu", gpu_of, py::arg("gpu"),
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

void add_forecaster(py::module_& module) {
  const KernelOptions defaults;
  py::class_<Forecaster, SharedForecaster>(module, "Forecaster",
                                           "Forecasts with one set of weights.")
      .def(py::init([](const py::object& weights, const py::object& calibration) {
             const std::string folder = option_text(weights), file = option_text(calibration);
             const py::gil_scoped_release release;
             return std::make_shared<Forecaster>(folder, file);
           }),
           py::arg("weights") = "", py::arg("calibration") = "")
      .def("forecast", forecast, py::arg("model"), py::arg("gpu") = py::none(), py::kw_only(),
           py::arg("inputs") = py::none())
      .def(
          "forecast_many",
          [](const Forecaster& forecaster, const py::object& table, int threads,
             const py::kwargs& keywords) {
            return forecast_table_of(forecaster, table, threads, keywords);
          },
          py::arg("table"), py::kw_only(), py::arg("threads") = 0)
      .def(
          "kernel",
          [](const Forecaster& forecaster, const std::string& op, const py::object& gpu,
             const std::string& dtype, const std::string& software, const std::string& predictor,
             bool warm, const std::string& clocks, const py::kwargs& sizes) {
            return kernel(
                forecaster, op, gpu, dtype,
                {.predictor = predictor, .software = software, .warm = warm, .clocks = clocks},
                sizes);
          },
          py::arg("op"), py::arg("gpu"), py::kw_only(), py::arg("dtype") = "fp32",
          py::arg("software") = defaults.software, py::arg("predictor") = defaults.predictor,
          py::arg("warm") = defaults.warm, py::arg("clocks") = defaults.clocks)
      .def("evaluate", evaluate, py::arg("path"), py::kw_only(),
           py::arg("predictor") = defaults.predictor, py::call_guard<py::gil_scoped_release>());
}

}  // namespace
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
}
