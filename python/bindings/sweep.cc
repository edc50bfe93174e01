// The points of a sweep's spec, for engines that run them elsewhere.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "bindings/bindings.h"
#include "bindings/table.h"
#include "many/sweep_spec.h"

namespace tilecast::python {
namespace {

/// The text of a spec, and the name in messages.
struct SpecSource {
  std::string text, where;
};

SpecSource source_of(const py::object& source) {
  if (py::isinstance<py::dict>(source))
    return {py::module_::import("json").attr("dumps")(source).cast<std::string>(), "spec"};
  const std::string text = option_text(source);
  if (trim(text).starts_with("{")) return {text, "spec"};
  return {read_file(text), printable(text)};
}

/// A spec with its text, by which it is copied to other processes.
class SharedSpec {
 public:
  explicit SharedSpec(SpecSource source)
      : source_(std::move(source)),
        spec_(std::make_shared<const SweepSpec>(source_.text, source_.where)) {}

  const SpecSource& source() const { return source_; }
  const std::shared_ptr<const SweepSpec>& spec() const { return spec_; }

 private:
  SpecSource source_;
  std::shared_ptr<const SweepSpec> spec_;  ///< shared: with its rows
};

/// Points of a spec.
struct SpecRows {
  std::shared_ptr<const SweepSpec> spec;
  std::vector<size_t> points;
  size_t rejected = 0;
};

std::string_view type_word(SweepType type) {
  return type == SweepType::kWhole ? "integer" : type == SweepType::kNumber ? "number" : "text";
}

std::string table_name(const SweepColumn& column) {
  return column.kind == JobColumn::Kind::kParameter ? OptionColumn::kParameters + column.name
                                                    : keyword_of_option(column.job_name());
}

SpecRows rows_of(const SharedSpec& shared, size_t first, size_t count) {
  SpecRows rows{.spec = shared.spec(), .points = {}, .rejected = 0};
  const size_t size = rows.spec->size();
  const size_t end = first + std::min(count, size - std::min(first, size));
  for (size_t point = first; point < end; ++point) {
    if (rows.spec->accepts(point))
      rows.points.push_back(point);
    else
      ++rows.rejected;
  }
  return rows;
}

Value value_at(const SweepSpec& spec, const SweepColumn& column, size_t point) {
  if (column.values.type() == SweepType::kNumber)
    return {.data = spec.number_at(column, point), .owner = nullptr};
  if (!column.values.is_list())
    return {.data = static_cast<int64_t>(spec.number_at(column, point)), .owner = nullptr};
  const std::string& word = column.values.words()[spec.code_at(column, point)];
  if (column.values.type() == SweepType::kText)
    return {.data = std::string_view(word), .owner = nullptr};
  return {.data = parse_number<int64_t>(word).value_or(0), .owner = nullptr};
}

py::capsule stream_of(const std::shared_ptr<SpecRows>& rows) {
  const auto kind_of = [](SweepType type) {
    return type == SweepType::kWhole    ? FieldKind::kWhole
           : type == SweepType::kNumber ? FieldKind::kNumber
                                        : FieldKind::kText;
  };
  auto exported = std::make_shared<ExportedTable>();
  exported->rows = rows->points.size();
  for (const SweepColumn& column : rows->spec->columns())
    exported->columns.push_back({.name = table_name(column),
                                 .kind = kind_of(column.values.type()),
                                 .unit = column.unit,
                                 .doc = {},
                                 .get = [rows, &column](size_t row) {
                                   return value_at(*rows->spec, column, rows->points[row]);
                                 }});
  return export_table(std::move(exported));
}

struct SpecColumn {
  std::string name, type, unit;
};

std::vector<SpecColumn> columns_of(const SharedSpec& shared) {
  std::vector<SpecColumn> columns;
  for (const SweepColumn& column : shared.spec()->columns())
    columns.push_back(
        {table_name(column), std::string(type_word(column.values.type())), column.unit});
  return columns;
}

void add_spec(py::module_& module) {
  py::class_<SharedSpec>(module, "SweepSpec",
                         "The points of a sweep: of a file, its text, or a dict with its content.")
      .def(py::init([](const py::object& source) {
             SpecSource read = source_of(source);
             const py::gil_scoped_release release;
             return SharedSpec(std::move(read));
           }),
           py::arg("spec"))
      .def_property_readonly(
          "size", [](const SharedSpec& s) { return s.spec()->size(); },
          "How many points it has, with those that its conditions refuse.")
      .def("__len__", [](const SharedSpec& s) { return s.spec()->size(); })
      .def_property_readonly("columns", columns_of)
      .def_property_readonly(
          "text", [](const SharedSpec& s) { return s.source().text; }, "The text of the spec.")
      .def("rows", rows_of, py::arg("first") = 0, py::arg("count") = SIZE_MAX,
           py::call_guard<py::gil_scoped_release>(),
           "The points from `first` on that the conditions accept, as a table of options.")
      .def(py::pickle(
          [](const SharedSpec& s) { return py::make_tuple(s.source().text, s.source().where); },
          [](const py::tuple& state) {
            return SharedSpec({state[0].cast<std::string>(), state[1].cast<std::string>()});
          }))
      .def("__repr__", [](const SharedSpec& s) {
        return fmt::format("SweepSpec({} points)", s.spec()->size());
      });
}

}  // namespace

void add_sweep(py::module_& module) {
  py::class_<SpecColumn>(module, "SweepSpecColumn", "A column of a sweep's spec.")
      .def_readonly("name", &SpecColumn::name)
      .def_readonly("type", &SpecColumn::type)
      .def_readonly("unit", &SpecColumn::unit)
      .def("__repr__", [](const SpecColumn& c) {
        return fmt::format("SweepSpecColumn({}: {})", c.name, c.type);
      });
  py::class_<SpecRows, std::shared_ptr<SpecRows>>(
      module, "SweepRows", "Points of a sweep: a table of options, as forecast_many takes it.")
      .def("__len__", [](const SpecRows& r) { return r.points.size(); })
      .def_property_readonly(
          "indices", [](const SpecRows& r) { return r.points; }, "The numbers of the points.")
      .def_property_readonly(
          "rejected", [](const SpecRows& r) { return r.rejected; },
          "How many points the conditions refuse.")
      .def(
          "__arrow_c_stream__",
          [](const std::shared_ptr<SpecRows>& rows, const py::object&) { return stream_of(rows); },
          py::arg("requested_schema") = py::none(), "The Arrow PyCapsule interface.")
      .def("__repr__",
           [](const SpecRows& r) { return fmt::format("SweepRows({} points)", r.points.size()); });
  add_spec(module);
}

}  // namespace tilecast::python
