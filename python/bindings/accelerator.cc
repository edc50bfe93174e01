#include "bindings/accelerator.h"

#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "bindings/bindings.h"

namespace tilecast::python {
namespace {

py::dict use_of(const AcceleratorLayer& layer) {
  py::dict use;
  for (const ObjectUse& object : layer.use) use[py::str(object.object)] = object.ratio;
  return use;
}

void add_layer(py::module_& module) {
  using Layer = AcceleratorLayer;
  py::class_<Layer>(module, "AcceleratorLayer", "A layer on an accelerator, `count` times.")
      .def_readonly("name", &Layer::name)
      .def_readonly("op", &Layer::op)
      .def_readonly("where", &Layer::where)
      .def_readonly("kind", &Layer::kind)
      .def_readonly("sizes", &Layer::sizes)
      .def_readonly("fused", &Layer::fused)
      .def_readonly("mapping", &Layer::mapping)
      .def_readonly("count", &Layer::count)
      .def_readonly("cycles", &Layer::cycles)
      .def_readonly("low_cycles", &Layer::low_cycles)
      .def_readonly("high_cycles", &Layer::high_cycles)
      .def_readonly("converged", &Layer::converged)
      .def_readonly("instructions", &Layer::instructions)
      .def_readonly("evaluated_instructions", &Layer::evaluated)
      .def_readonly("macs", &Layer::macs)
      .def_readonly("bytes", &Layer::bytes)
      .def_readonly("bound", &Layer::bound)
      .def_property_readonly("utilization_ratio", use_of)
      .def("__repr__", [](const Layer& l) {
        return fmt::format("AcceleratorLayer({} x {}: {} cycles)", l.count, l.name, l.cycles);
      });
}

}  // namespace

void add_accelerator(py::module_& module) {
  add_layer(module);
  using F = AcceleratorForecast;
  py::class_<F, std::shared_ptr<F>>(module, "AcceleratorForecast",
                                    "The forecast of a forward pass on an accelerator.")
      .def_readonly("model", &F::model)
      .def_readonly("gpu", &F::accelerator)
      .def_readonly("gpu_name", &F::accelerator_name)
      .def_property_readonly("parameters",
                             [](const F& f) {
                               py::dict values;
                               for (const auto& [name, value] : f.parameters)
                                 values[py::str(name)] = value;
                               return values;
                             })
      .def_readonly("dataflow", &F::dataflow)
      .def_readonly("dtype", &F::operand_dtype)
      .def_readonly("accumulator_dtype", &F::accumulator_dtype)
      .def_readonly("batch", &F::batch)
      .def_readonly("seq", &F::seq)
      .def_readonly("clock_hz", &F::clock_hz)
      .def_readonly("cycles", &F::cycles)
      .def_readonly("low_cycles", &F::low_cycles)
      .def_readonly("high_cycles", &F::high_cycles)
      .def_readonly("host_cycles", &F::host_cycles)
      .def_property_readonly("latency_s", &F::latency_s)
      .def_readonly("macs", &F::macs)
      .def_readonly("host_macs", &F::host_macs)
      .def_readonly("pe_count", &F::pe_count)
      .def_readonly("on_chip_bytes", &F::on_chip_bytes)
      .def_property_readonly(
          "energy_j",
          [](const F& f) { return f.has_energy ? std::optional(f.energy_j) : std::nullopt; })
      .def_property_readonly("utilization_ratio", &F::utilization_ratio)
      .def_readonly("instructions", &F::instructions)
      .def_readonly("evaluated_instructions", &F::evaluated)
      .def_readonly("layers", &F::layers)
      .def_readonly("warnings", &F::warnings)
      .def("to_json", &accelerator_json, "What `tilecast forecast --format json` writes.")
      .def(
          "to_dict",
          [](const F& f) { return py::module_::import("json").attr("loads")(accelerator_json(f)); })
      .def("mappings", &accelerator_mappings, "What `--write-mappings` writes.")
      .def(
          "table",
          [](const F& f, int width, size_t rows) {
            return accelerator_table(f, {.width = width, .rows = rows});
          },
          py::arg("width") = TableStyle{}.width, py::arg("rows") = 20,
          "What `tilecast forecast` writes.")
      .def("__str__", [](const F& f) { return accelerator_table(f, {}); })
      .def("__repr__", [](const F& f) {
        return fmt::format("AcceleratorForecast({} on {}: {:.0f} cycles)", f.model, f.accelerator,
                           f.cycles);
      });
}

}  // namespace tilecast::python
