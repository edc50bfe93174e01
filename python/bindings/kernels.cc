// Kernels and times of forecasts as Python objects.

#include <fmt/format.h>

#include "base/text.h"
#include "bindings/bindings.h"
#include "bindings/records.h"

namespace tilecast::python {

py::list kernel_rows(const std::vector<KernelForecast>& kernels,
                     const std::shared_ptr<const void>& names) {
  struct Rows {
    std::vector<KernelForecast> kernels;
    std::shared_ptr<const void> names;
  };
  const auto rows = std::make_shared<const Rows>(Rows{kernels, names});
  py::list list;
  for (const KernelForecast& kernel : rows->kernels)
    list.append(record_object(record_of<KernelForecast>(), rows, &kernel));
  return list;
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
}

}  // namespace tilecast::python
