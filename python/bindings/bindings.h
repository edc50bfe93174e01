#pragma once

// The module tilecast._core: thin bindings of the façade, without logic or defaults of their own.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "command/answer.h"
#include "tilecast/forecast.h"
#include "tilecast/llm.h"
#include "tilecast/request.h"

namespace tilecast::python {

namespace py = pybind11;

/// Inputs of a forecast, which reports need.
using Asked = AskedPass;

/// The rows as Python objects; `names` owns the strings that they point to.
py::list kernel_rows(const std::vector<KernelForecast>& kernels,
                     const std::shared_ptr<const void>& names);

/// The result of a pass or a training step as a Python object.
py::object make_pass(Asked asked, Forecast forecast);
/// The result of text generation.
py::object make_llm(LlmForecast forecast);

/// Text as the command line has it of a keyword's value: 8 is "8", True is "on", ["a", "b"] is
/// "a,b", {"seq": 128} is "seq=128".
std::string option_text(py::handle value);

/// Views that both kinds of results have; their code is in python/tilecast/_show.py, which is
/// loaded when one is asked for.
template <typename Class>
void add_views(Class& type) {
  const auto view = [](const char* function) {
    return [function](const py::object& self) {
      return py::object(py::module_::import("tilecast._show").attr(function)(self));
    };
  };
  type.def("to_dict", view("to_dict"), "What `tilecast forecast --format json` writes, as a dict.")
      .def("to_pandas", view("to_pandas"), "A DataFrame of the kernels. Needs pandas.")
      .def("_repr_html_", view("repr_html"))
      .def("plot", view("plot"), "A figure of matplotlib: time by operator, and memory.")
      .def("__str__", [](const py::object& self) { return self.attr("table")(); });
}

// Each adds its classes and functions to the module.
void add_errors();
/// A message of the library as Python words it: in options in backquotes, `optimizer-impl`, the
/// hyphens become underscores.
std::string options_as_keywords(const std::string& message);
void add_options(py::module_& module);
void add_catalog(py::module_& module);
void add_kernels(py::module_& module);
void add_pass();
void add_llm(py::module_& module);
void add_table(py::module_& module);

/// Reads a table from an object with __arrow_c_stream__ or __arrow_c_array__, or a mapping of names
/// to lists; `keywords` are columns with one value. Returns a tilecast.ForecastTable.
py::object forecast_table_of(const Forecaster& forecaster, const py::object& table, int threads,
                             const py::dict& keywords);

}  // namespace tilecast::python
