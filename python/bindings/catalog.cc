// Catalogues: GPUs, models and operators that Tilecast knows.

#include <pybind11/stl.h>

#include <map>

#include "bindings/bindings.h"

namespace tilecast::python {
namespace {

using Rates = std::vector<std::pair<std::string, double>>;

std::map<std::string, double> by_dtype(const Rates& rates) { return {rates.begin(), rates.end()}; }

}  // namespace

void add_catalog(py::module_& module) {
  py::class_<GpuEntry>(module, "GpuEntry", "A bundled device, with the numbers of its data sheet.")
      .def_readonly("id", &GpuEntry::id)
      .def_readonly("name", &GpuEntry::name)
      .def_readonly("vendor", &GpuEntry::vendor)
      .def_readonly("aliases", &GpuEntry::aliases)
      .def_readonly("memory_bytes", &GpuEntry::memory_bytes)
      .def_readonly("memory_bytes_per_s", &GpuEntry::memory_bytes_per_s)
      .def_readonly("sm_count", &GpuEntry::sm_count)
      .def_readonly("boost_clock_hz", &GpuEntry::boost_clock_hz)
      .def_readonly("l2_bytes", &GpuEntry::l2_bytes)
      .def_readonly("power_w", &GpuEntry::power_w)
      .def_readonly("architecture", &GpuEntry::architecture)
      .def_readonly("memory_type", &GpuEntry::memory_type)
      .def_property_readonly("vector_flops_per_s",
                             [](const GpuEntry& g) { return by_dtype(g.vector_flops_per_s); })
      .def_property_readonly("matrix_flops_per_s",
                             [](const GpuEntry& g) { return by_dtype(g.matrix_flops_per_s); })
      .def("__repr__", [](const GpuEntry& g) { return "GpuEntry(" + g.id + ")"; });
  py::class_<ModelEntry>(module, "ModelEntry", "A bundled model.")
      .def_readonly("name", &ModelEntry::name)
      .def_readonly("family", &ModelEntry::family)
      .def_readonly("parameters", &ModelEntry::parameters)
      .def_readonly("positions", &ModelEntry::positions)
      .def_readonly("note", &ModelEntry::note)
      .def("__repr__", [](const ModelEntry& m) { return "ModelEntry(" + m.name + ")"; });
  py::class_<SizeEntry>(module, "SizeEntry", "A size or setting of an operator's kernel.")
      .def_readonly("name", &SizeEntry::name)
      .def_readonly("description", &SizeEntry::description)
      .def_readonly("other_names", &SizeEntry::other_names)
      .def_readonly("default", &SizeEntry::default_value)
      .def_readonly("choices", &SizeEntry::choices)
      .def_readonly("min", &SizeEntry::min)
      .def_readonly("max", &SizeEntry::max)
      .def_readonly("is_switch", &SizeEntry::is_switch)
      .def_readonly("is_list", &SizeEntry::is_list)
      .def("__repr__", [](const SizeEntry& s) { return "SizeEntry(" + s.name + ")"; });
  py::class_<OpEntry>(module, "OpEntry", "An operator.")
      .def_readonly("name", &OpEntry::name)
      .def_readonly("pytorch", &OpEntry::pytorch)
      .def_readonly("onnx", &OpEntry::onnx)
      .def_readonly("description", &OpEntry::description)
      .def_readonly("sizes", &OpEntry::sizes)
      .def("__repr__", [](const OpEntry& o) { return "OpEntry(" + o.name + ")"; });
}

}  // namespace tilecast::python
