// forecast_many: tables of options from Python, tables of results to Python.

#include "bindings/table.h"

#include <fmt/format.h>

#include <cmath>

#include "bindings/bindings.h"
#include "bindings/records.h"
#include "tilecast/error.h"

namespace tilecast::python {

void ColumnBuilder::add(std::string_view text) {
  const auto [it, fresh] =
      codes_.emplace(std::string(text), static_cast<int32_t>(column_.words.size()));
  if (fresh) column_.words.emplace_back(text);
  column_.codes.push_back(it->second);
}

void ColumnBuilder::fill(size_t rows) {
  column_.codes.resize(rows,
                       column_.codes.empty() ? OptionColumn::kNotGiven : column_.codes.back());
}

namespace {

using Table = std::shared_ptr<const ForecastTable>;

OptionTable from_stream(const py::object& source) {
  const py::capsule capsule = source.attr("__arrow_c_stream__")();
  return import_stream(*static_cast<ArrowArrayStream*>(capsule.get_pointer()));
}

OptionTable from_batch(const py::object& source) {
  const py::tuple capsules = source.attr("__arrow_c_array__")();
  const auto schema = capsules[0].cast<py::capsule>();
  const auto array = capsules[1].cast<py::capsule>();
  return import_batch(*static_cast<ArrowSchema*>(schema.get_pointer()),
                      *static_cast<ArrowArray*>(array.get_pointer()));
}

/// None and NaN, which pandas and NumPy have for a missing value.
bool is_missing(py::handle value) {
  return value.is_none() || (PyFloat_Check(value.ptr()) && std::isnan(value.cast<double>()));
}

bool is_list(py::handle value) {
  return py::hasattr(value, "__len__") && !py::isinstance<py::str>(value) &&
         !py::isinstance<py::dict>(value);
}

/// A dict is the config of a model; its text is the value.
void add_value(ColumnBuilder& builder, py::handle value) {
  if (is_missing(value)) return builder.add_missing();
  if (py::isinstance<py::dict>(value))
    return builder.add(py::module_::import("json").attr("dumps")(value).cast<std::string>());
  builder.add(option_text(value));
}

/// Columns with one value for all rows of the table.
void add_constants(OptionTable& table, const std::vector<std::pair<std::string, py::object>>& all) {
  for (const auto& [name, value] : all) {
    ColumnBuilder builder(name);
    if (table.rows > 0) add_value(builder, value);
    builder.fill(table.rows);
    table.columns.push_back(builder.take());
  }
}

OptionTable from_mapping(const py::object& source) {
  OptionTable table;
  std::vector<std::pair<std::string, py::object>> constants;
  bool first = true;
  for (const py::handle key : source.attr("keys")()) {
    const std::string name = option_of_keyword(py::str(key).cast<std::string>());
    const py::object values = source[key];
    if (!is_list(values)) {
      constants.emplace_back(name, values);
      continue;
    }
    ColumnBuilder builder(name);
    for (const py::handle value : values) add_value(builder, value);
    if (!first && builder.rows() != table.rows)
      throw Error(ErrorKind::kInput, fmt::format("column '{}' has {} rows; expected {}", name,
                                                 builder.rows(), table.rows));
    table.rows = builder.rows();
    table.columns.push_back(builder.take());
    first = false;
  }
  if (first) table.rows = 1;  // single values only
  add_constants(table, constants);
  return table;
}

OptionTable read_table(const py::object& source) {
  if (py::hasattr(source, "__arrow_c_stream__")) {
    try {
      return from_stream(source);
    } catch (py::error_already_set& error) {
      // A DataFrame of pandas needs pyarrow for it.
      if (!error.matches(PyExc_ImportError)) throw;
    }
  }
  if (py::hasattr(source, "__arrow_c_array__")) return from_batch(source);
  if (py::hasattr(source, "keys")) return from_mapping(source);
  throw py::type_error(fmt::format(
      "expected a table: an object with __arrow_c_stream__ (of pyarrow, polars, pandas, DuckDB, …) "
      "or a dict of lists, found {}",
      py::str(py::type::of(source)).cast<std::string>()));
}

/// The values of a column; equal rows share one object.
py::list column_of(const ForecastTable& table, const FieldDef& column) {
  std::vector<py::object> distinct;
  for (const ForecastTotals& totals : table.distinct)
    distinct.push_back(value_object(column.get(&totals), column.type, nullptr));
  py::list values(table.rows.size());
  for (size_t i = 0; i < table.rows.size(); ++i) values[i] = distinct[table.rows[i]];
  return values;
}

py::list find_column(const ForecastTable& table, const std::string& name) {
  for (const FieldDef& column : totals_fields()) {
    if (column.name == name) return column_of(table, column);
  }
  throw py::key_error(name);
}

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  for (const FieldDef& column : totals_fields()) names.emplace_back(column.name);
  return names;
}

py::dict to_dict(const ForecastTable& table) {
  py::dict columns;
  for (const FieldDef& column : totals_fields())
    columns[py::str(column.name)] = column_of(table, column);
  return columns;
}

py::capsule to_stream(const Table& table) {
  auto exported = std::make_shared<ExportedTable>();
  exported->rows = table->rows.size();
  for (const FieldDef& field : totals_fields())
    exported->columns.push_back(
        {.name = field.name,
         .kind = field.type.kind,
         .unit = std::string(field.unit),
         .doc = std::string(field.doc),
         .get = [table, &field](size_t row) { return field.get(&table->of_row(row)); }});
  return export_table(std::move(exported));
}

}  // namespace

py::object forecast_table_of(const Forecaster& forecaster, const py::object& source, int threads,
                             const py::dict& keywords) {
  OptionTable table = read_table(source);
  std::vector<std::pair<std::string, py::object>> constants;
  for (const auto& [key, value] : keywords)
    constants.emplace_back(option_of_keyword(key.cast<std::string>()),
                           py::reinterpret_borrow<py::object>(value));
  add_constants(table, constants);
  // Keeps Ctrl-C working.
  const auto poll = [] {
    const py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
  auto result = std::make_shared<ForecastTable>();
  {
    const py::gil_scoped_release release;
    *result =
        forecast_many(forecaster, table.columns, table.rows, {.threads = threads, .poll = poll});
  }
  for (ForecastTotals& totals : result->distinct) {
    if (!totals.error) continue;
    std::string error = options_as_keywords(*totals.error);
    if (error.starts_with('`')) error = "column " + error;
    totals.error = std::move(error);
  }
  return py::cast(std::move(result));
}

void add_table(py::module_& module) {
  py::class_<ForecastTable, std::shared_ptr<ForecastTable>>(
      module, "ForecastTable", "Forecasts of the rows of a table; columns by name.")
      .def("__len__", [](const ForecastTable& t) { return t.rows.size(); })
      .def_property_readonly_static("column_names",
                                    [](const py::object&) { return column_names(); })
      .def("keys", [](const ForecastTable&) { return column_names(); })
      .def("__getitem__", find_column, py::arg("name"))
      .def("to_dict", to_dict, "A dict of lists.")
      .def(
          "__arrow_c_stream__",
          [](const std::shared_ptr<ForecastTable>& table, const py::object&) {
            return to_stream(table);
          },
          py::arg("requested_schema") = py::none(), "The Arrow PyCapsule interface.")
      .def("__repr__", [](const ForecastTable& t) {
        return fmt::format("ForecastTable({} rows, {} distinct)", t.rows.size(), t.distinct.size());
      });
}

}  // namespace tilecast::python
