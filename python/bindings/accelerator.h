#pragma once

// Forecasts on accelerators that are described by their objects, in Python.

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "tilecast/accelerator.h"

namespace tilecast::python {

namespace py = pybind11;

/// The accelerator that a `gpu` argument names, or nullopt: a device of another kind.
std::optional<std::string> accelerator_of(const py::object& gpu);

/// Takes the keywords that only accelerators have: exact, mapping, parameters.
AcceleratorOptions take_accelerator_options(py::dict& keywords);

void add_accelerator(py::module_& module);

}  // namespace tilecast::python
