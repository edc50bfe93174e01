#pragma once

// Forecasts on accelerators that are described by their objects, in Python.

#include <pybind11/pybind11.h>

namespace tilecast::python {

namespace py = pybind11;

void add_accelerator(py::module_& module);

}  // namespace tilecast::python
