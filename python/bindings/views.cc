// What the classes of results have beside their fields: views, and shorter names.

#include <fmt/format.h>

#include "base/text.h"
#include "bindings/bindings.h"
#include "bindings/records.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast::python {
namespace {

/// `field` under another name.
void add_alias(const py::object& type, const char* name, const char* field) {
  type.attr(name) = type.attr(field);
}

void add_interval() {
  const py::object type = record_class(record_of<Interval>());
  add_method(type, "__float__",
             [](const py::object& self) { return record_in<Interval>(self).value; });
  add_method(type, "__repr__", [](const py::object& self) {
    const auto& e = record_in<Interval>(self);
    return fmt::format("{} ({} to {})", format_seconds(e.value), format_seconds(e.low),
                       format_seconds(e.high));
  });
}

void add_generation() {
  const py::object served = record_class(record_of<ServerMetrics>());
  add_alias(served, "ttft", "time_to_first_token");
  add_alias(served, "tpot", "time_per_output_token");
  add_alias(served, "e2e", "end_to_end");
  add_property(record_class(record_of<StepForecast>()), "latency", [](const py::object& self) {
    return result_object(Interval(record_in<StepForecast>(self).time));
  });
  const py::object type = record_class(record_of<GenerationForecast>());
  add_alias(type, "ttft", "time_to_first_token");
  add_alias(type, "tpot", "time_per_output_token");
  add_property(type, "latency", [](const py::object& self) {
    return result_object(Interval(record_in<GenerationForecast>(self).latency));
  });
  add_forecast_views(type);
  add_method(
      type, "table",
      [](const py::object& self, int width, size_t rows) {
        return llm_table(record_in<GenerationForecast>(self), {.width = width, .rows = rows});
      },
      "What `tilecast forecast` writes.", py::arg("width") = TableStyle{}.width,
      py::arg("rows") = 8);
}

void add_accelerator() {
  const py::object type = record_class(record_of<AcceleratorForecast>());
  add_method(
      type, "mappings",
      [](const py::object& self) {
        return accelerator_mappings(record_in<AcceleratorForecast>(self));
      },
      "The mappings of all layers, for `mapping`.");
  add_method(
      type, "table",
      [](const py::object& self, int width, size_t rows) {
        return accelerator_table(record_in<AcceleratorForecast>(self),
                                 {.width = width, .rows = rows});
      },
      "What `tilecast forecast` writes.", py::arg("width") = TableStyle{}.width,
      py::arg("rows") = TableStyle{}.rows);
  add_method(type, "__str__", [](const py::object& self) { return self.attr("table")(); });
}

}  // namespace

void add_result_views() {
  add_interval();
  add_generation();
  add_accelerator();
  add_method(record_class(record_of<Evaluation>()), "__str__",
             [](const py::object& self) { return evaluation_table(record_in<Evaluation>(self)); });
}

}  // namespace tilecast::python
