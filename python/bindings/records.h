#pragma once

// Results as Python objects, by their tables of fields: a class for each record, with a read-only
// property for each field.

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "schema/convert.h"
#include "schema/results.h"

namespace tilecast::python {

namespace py = pybind11;

/// The class of a record, made when it is first asked for. It may be given more attributes.
py::object record_class(const RecordDef& def);

/// Computes what takes longer than the rest of a result, before `field` is read (nullptr: all
/// fields). Called with the GIL.
using Finish = void (*)(const void* owner, const FieldDef* field);

/// A record that lies in what `owner` holds.
py::object record_object(const RecordDef& def, std::shared_ptr<const void> owner, const void* at,
                         Finish finish = nullptr);

/// The value of a field; records in it lie in what `owner` holds.
py::object value_object(const Value& value, const FieldType& type,
                        const std::shared_ptr<const void>& owner, Finish finish = nullptr);

/// Computes all of a result that takes longer.
void finish_record(const py::object& record);

/// Adds a property or a method to a class: functions of the object.
template <typename Function>
void add_property(const py::object& type, const char* name, Function&& get) {
  const py::object property = py::module_::import("builtins").attr("property");
  type.attr(name) = property(py::cpp_function(std::forward<Function>(get), py::is_method(type)));
}
template <typename Function, typename... Arguments>
void add_method(const py::object& type, const char* name, Function&& function,
                const Arguments&... arguments) {
  type.attr(name) = py::cpp_function(std::forward<Function>(function), py::name(name),
                                     py::is_method(type), arguments...);
}

/// Adds the views of forecasts, with the code of python/tilecast/_show.py: a DataFrame of the
/// kernels, HTML and plots.
void add_forecast_views(const py::object& type);

/// The record in a Python object; throws TypeError where it is another type.
const void* record_in(py::handle object, const RecordDef& def);
template <typename T>
const T& record_in(py::handle object) {
  return *static_cast<const T*>(record_in(object, record_of<T>()));
}

/// A result as a Python object.
template <typename T>
py::object result_object(T result) {
  auto owner = std::make_shared<const T>(std::move(result));
  const void* at = owner.get();
  return record_object(record_of<T>(), std::move(owner), at);
}

/// A list of records as Python objects.
template <typename T>
py::list result_list(std::vector<T> results) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(results));
  py::list list;
  for (const T& result : *owner) list.append(record_object(record_of<T>(), owner, &result));
  return list;
}

/// Adds the classes of all results to the module.
void add_records(py::module_& module);

}  // namespace tilecast::python
