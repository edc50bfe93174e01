// Kernels and times of forecasts as Python objects.

#include <fmt/format.h>

#include "base/text.h"
#include "bindings/bindings.h"

namespace tilecast::python {
namespace {

py::dict shape_of(const KernelForecast& kernel) {
  py::dict shape;
  for (size_t i = 0; i < kernel.shape.names.size(); ++i)
    shape[py::str(std::string(kernel.shape.names[i]))] = kernel.shape.values[i];
  return shape;
}

/// A read-only property of a field of the kernel.
template <typename T>
void add_field(py::class_<KernelRow>& type, const char* name, T KernelForecast::* field) {
  type.def_property_readonly(name, [field](const KernelRow& row) { return row.kernel.*field; });
}

}  // namespace

py::list kernel_rows(const std::vector<KernelForecast>& kernels,
                     const std::shared_ptr<const void>& names) {
  py::list rows;
  for (const KernelForecast& kernel : kernels) rows.append(KernelRow{kernel, names});
  return rows;
}

void add_kernels(py::module_& module) {
  py::class_<Estimate>(module, "Estimate", "A time with its 80 % interval, in seconds.")
      .def_readonly("seconds", &Estimate::seconds)
      .def_readonly("low_s", &Estimate::low_s)
      .def_readonly("high_s", &Estimate::high_s)
      .def("__float__", [](const Estimate& e) { return e.seconds; })
      .def("__repr__", [](const Estimate& e) {
        return fmt::format("{} ({} to {})", format_seconds(e.seconds), format_seconds(e.low_s),
                           format_seconds(e.high_s));
      });
  py::class_<KernelRow> type(module, "Kernel",
                             "A group of identical kernels; times are for one of them.");
  add_field(type, "name", &KernelForecast::name);
  add_field(type, "op", &KernelForecast::op);
  add_field(type, "phase", &KernelForecast::phase);
  add_field(type, "dtype", &KernelForecast::dtype);
  type.def_property_readonly("shape", [](const KernelRow& row) { return shape_of(row.kernel); });
  add_field(type, "count", &KernelForecast::count);
  add_field(type, "latency_s", &KernelForecast::latency_s);
  add_field(type, "low_s", &KernelForecast::low_s);
  add_field(type, "high_s", &KernelForecast::high_s);
  add_field(type, "flops", &KernelForecast::flops);
  add_field(type, "bytes", &KernelForecast::bytes);
  add_field(type, "limit", &KernelForecast::limit);
  add_field(type, "tile", &KernelForecast::tile);
  add_field(type, "waves", &KernelForecast::waves);
  add_field(type, "utilization_ratio", &KernelForecast::utilization_ratio);
  add_field(type, "predictor", &KernelForecast::predictor);
  add_field(type, "extrapolated", &KernelForecast::extrapolated);
  add_field(type, "extrapolated_feature", &KernelForecast::extrapolated_feature);
  type.def("__repr__", [](const KernelRow& row) {
    const KernelForecast& k = row.kernel;
    return fmt::format("Kernel({}: {} x {} {}, {:.4g} s each)", k.name, k.count, k.op, k.dtype,
                       k.latency_s);
  });
}

}  // namespace tilecast::python
