#pragma once

// The module tilecast._core: thin bindings of the façade, without logic or defaults of their own.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "command/answer.h"
#include "tilecast/forecast.h"
#include "tilecast/request.h"
#include "tilecast/result.h"

namespace tilecast::python {

namespace py = pybind11;

/// Inputs of a forecast, which reports need.
using Asked = AskedPass;

/// The result of a pass or a training step as a Python object.
py::object make_pass(Asked asked, Forecast forecast);

/// Text as the command line has it of a keyword's value: 8 is "8", True is "on", ["a", "b"] is
/// "a,b", {"seq": 128} is "seq=128".
std::string option_text(py::handle value);

// Each adds its classes and functions to the module.
void add_errors();
/// A message of the library as Python words it: in options in backquotes, `optimizer-impl`, the
/// hyphens become underscores.
std::string options_as_keywords(const std::string& message);
void add_options(py::module_& module);
void add_pass();
/// Views of the classes of the other results.
void add_result_views();
void add_table(py::module_& module);
/// The program, for the command line that the package installs.
void add_program(py::module_& module);
/// The points of sweeps.
void add_sweep(py::module_& module);

/// Reads a table from an object with __arrow_c_stream__ or __arrow_c_array__, or a mapping of names
/// to lists; `keywords` are columns with one value. Returns a tilecast.ForecastTable.
py::object forecast_table_of(const Forecaster& forecaster, const py::object& table, int threads,
                             const py::dict& keywords);

}  // namespace tilecast::python
