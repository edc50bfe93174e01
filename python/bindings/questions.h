#pragma once

// The questions of src/command as functions of Python.

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "command/question.h"

namespace tilecast::python {

namespace py = pybind11;

/// A model as users may give it: a name or path, a handle, or what python/tilecast/_models.py can
/// make a model of. `inputs` and `mode` are for a torch.nn.Module.
ModelRef model_of(const py::object& source, const py::object& inputs, const py::object& mode);
/// An id, an alias, a path, the content of a device file, an entry of the catalogue or a handle.
GpuRef gpu_of(const py::object& source);

/// The forecaster with the embedded weights, which all calls share.
std::shared_ptr<const Forecaster> default_forecaster();

/// Asks with the embedded weights, or those that the keywords name.
py::object ask_default(const Question& question, const py::args& arguments,
                       const py::kwargs& keywords);
/// Asks with a forecaster.
py::object ask_with(const std::shared_ptr<const Forecaster>& forecaster, const Question& question,
                    const py::args& arguments, const py::kwargs& keywords);

/// A function of the module for each question.
void add_questions(py::module_& module);

}  // namespace tilecast::python
