// The forecast of a pass or a training step as a Python object.

#include "bindings/bindings.h"
#include "bindings/records.h"
#include "scenario/remedies.h"
#include "tilecast/view.h"

namespace tilecast::python {
namespace {

struct PassResult {
  Asked asked;
  Forecast forecast;
  bool has_remedies = false;
};

/// Whether the field holds what takes longer than the forecast.
bool is_late(const FieldDef& field, const Forecast& forecast) {
  if (field.name == "warnings") return !forecast.memory.fits;  // the warning names what fits
  return field.name == "largest_batch" || field.name == "reserved_bytes" ||
         field.name == "remedies";
}

/// Computes what takes longer than the forecast, when it is first asked for.
void finish_pass(const void* owner, const FieldDef* field) {
  auto& result = *const_cast<PassResult*>(static_cast<const PassResult*>(owner));
  if (result.has_remedies || (field != nullptr && !is_late(*field, result.forecast))) return;
  Forecast with = result.forecast;
  {
    const py::gil_scoped_release release;
    const Asked& asked = result.asked;
    add_remedies(with, *asked.forecaster, asked.model, asked.gpu, asked.request);
  }
  if (result.has_remedies) return;  // another thread was sooner, and objects may refer to it
  result.forecast.memory = std::move(with.memory);
  result.forecast.warnings = std::move(with.warnings);
  result.has_remedies = true;
}

}  // namespace

py::object make_pass(Asked asked, Forecast forecast) {
  auto result = std::make_shared<const PassResult>(
      PassResult{.asked = std::move(asked), .forecast = std::move(forecast)});
  const void* at = &result->forecast;
  return record_object(record_of<Forecast>(), std::move(result), at, finish_pass);
}

void add_pass() {
  const py::object type = record_class(record_of<Forecast>());
  add_property(type, "latency", [](const py::object& self) {
    const auto& f = record_in<Forecast>(self);
    return result_object(Interval(f.latency_s));
  });
  add_forecast_views(type);
  add_method(
      type, "table",
      [](const py::object& self, int width, size_t rows) {
        finish_record(self);
        return forecast_table(record_in<Forecast>(self), {.width = width, .rows = rows});
      },
      "What `tilecast forecast` writes.", py::arg("width") = TableStyle{}.width,
      py::arg("rows") = TableStyle{}.rows);
}

}  // namespace tilecast::python
