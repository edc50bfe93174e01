#include "bindings/records.h"

#include <fmt/format.h>

#include <map>
#include <new>
#include <string>

#include "schema/json.h"

namespace tilecast::python {
namespace {

/// The object of a record: where it lies, and what keeps it alive.
struct RecordObject {
  PyObject_HEAD const RecordDef* def;
  const void* at;
  std::shared_ptr<const void> owner;
  Finish finish;

  void finish_before(const FieldDef* field) const {
    if (finish != nullptr) finish(owner.get(), field);
  }
};

RecordObject& record_at(PyObject* self) { return *reinterpret_cast<RecordObject*>(self); }

/// Calls a function whose exceptions become Python's.
template <typename Function>
PyObject* guarded(const Function& function) {
  try {
    return function().release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* record_field(PyObject* self, void* closure) {
  return guarded([&] {
    const RecordObject& record = record_at(self);
    const auto& field = *static_cast<const FieldDef*>(closure);
    record.finish_before(&field);
    return value_object(field.get(record.at), field.type, record.owner, record.finish);
  });
}

std::string json_of(PyObject* self) {
  const RecordObject& record = record_at(self);
  record.finish_before(nullptr);
  const py::gil_scoped_release release;
  return json_text({.data = RecordRef{record.def, record.at}, .owner = nullptr});
}

PyObject* record_to_json(PyObject* self, PyObject*) {
  return guarded([&] { return py::object(py::str(json_of(self))); });
}

PyObject* record_to_dict(PyObject* self, PyObject*) {
  return guarded([&] { return py::module_::import("json").attr("loads")(json_of(self)); });
}

/// Name(field=value, …) with the fields that are a number or a word.
PyObject* record_repr(PyObject* self) {
  return guarded([&] {
    const RecordObject& record = record_at(self);
    std::string text;
    for (const FieldDef& field : record.def->fields) {
      const FieldKind kind = field.type.kind;
      if (kind == FieldKind::kRecord || kind == FieldKind::kList || kind == FieldKind::kMap)
        continue;
      const py::object value = value_object(field.get(record.at), field.type, record.owner);
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", field.name,
                          py::repr(value).cast<std::string>());
    }
    return py::object(py::str(fmt::format("{}({})", record.def->name, text)));
  });
}

void free_record(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  record_at(self).owner.~shared_ptr();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// Data that classes point to as long as they live: forever.
struct ClassText {
  std::string name, doc;
  std::vector<std::string> field_docs;
  std::vector<PyGetSetDef> fields;
};

std::string doc_of(const FieldDef& field) {
  return field.unit.empty() ? std::string(field.doc)
                            : fmt::format("{} [{}]", field.doc, field.unit);
}

py::object make_class(const RecordDef& def) {
  auto* text = new ClassText{.name = fmt::format("tilecast._core.{}", def.name),
                             .doc = std::string(def.doc),
                             .field_docs = {},
                             .fields = {}};
  for (const FieldDef& field : def.fields) text->field_docs.push_back(doc_of(field));
  for (size_t i = 0; i < def.fields.size(); ++i)
    text->fields.push_back({.name = def.fields[i].name.c_str(),
                            .get = record_field,
                            .set = nullptr,
                            .doc = text->field_docs[i].c_str(),
                            .closure = const_cast<FieldDef*>(&def.fields[i])});
  text->fields.push_back({});
  static PyMethodDef methods[] = {
      {"to_json", record_to_json, METH_NOARGS, "The JSON that the command line writes."},
      {"to_dict", record_to_dict, METH_NOARGS, "The same as a dict."},
      {}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_record)},
                         {Py_tp_getset, text->fields.data()},
                         {Py_tp_methods, methods},
                         {Py_tp_repr, reinterpret_cast<void*>(record_repr)},
                         {Py_tp_doc, text->doc.data()},
                         {}};
  PyType_Spec spec{.name = text->name.c_str(),
                   .basicsize = sizeof(RecordObject),
                   .itemsize = 0,
                   .flags = Py_TPFLAGS_DEFAULT,
                   .slots = slots};
  PyObject* made = PyType_FromSpec(&spec);
  if (made == nullptr) throw py::error_already_set();
  reinterpret_cast<PyTypeObject*>(made)->tp_new = nullptr;  // only results make them
  return py::reinterpret_steal<py::object>(made);
}

struct ToPython {
  const FieldType& type;
  const std::shared_ptr<const void>& owner;
  Finish finish;

  py::object operator()(std::monostate) const { return py::none(); }
  py::object operator()(bool v) const { return py::bool_(v); }
  py::object operator()(int64_t v) const { return py::int_(v); }
  py::object operator()(double v) const { return py::float_(v); }
  py::object operator()(std::string_view v) const { return py::str(v.data(), v.size()); }
  py::object operator()(const RecordRef& record) const {
    return record_object(*record.def, owner, record.at, finish);
  }
  py::object operator()(const ListRef& list) const {
    if (type.length > 0) {
      py::tuple items(list.size);
      for (size_t i = 0; i < list.size; ++i) items[i] = item(list.item(list.at, i));
      return items;
    }
    py::list items(list.size);
    for (size_t i = 0; i < list.size; ++i) items[i] = item(list.item(list.at, i));
    return items;
  }
  py::object operator()(const MapRef& map) const {
    py::dict items;
    for (size_t i = 0; i < map.size; ++i) {
      const std::string_view key = map.key(map.at, i);
      items[py::str(key.data(), key.size())] = item(map.item(map.at, i));
    }
    return items;
  }

  py::object item(const Value& value) const {
    return value_object(value, type.items.empty() ? type : type.items.front(), owner, finish);
  }
};

/// The records of a type's fields that have no class yet.
void add_classes(py::module_& module, const RecordDef& def);
void add_classes(py::module_& module, const FieldType& type) {
  if (type.record != nullptr) add_classes(module, *type.record);
  for (const FieldType& item : type.items) add_classes(module, item);
}
void add_classes(py::module_& module, const RecordDef& def) {
  const std::string name(def.name);
  if (py::hasattr(module, name.c_str())) return;
  module.attr(name.c_str()) = record_class(def);
  for (const FieldDef& field : def.fields) add_classes(module, field.type);
}

}  // namespace

py::object record_class(const RecordDef& def) {
  static auto* const classes = new std::map<const RecordDef*, py::object>;
  py::object& found = (*classes)[&def];
  if (!found) found = make_class(def);
  return found;
}

py::object record_object(const RecordDef& def, std::shared_ptr<const void> owner, const void* at,
                         Finish finish) {
  auto* type = reinterpret_cast<PyTypeObject*>(record_class(def).ptr());
  PyObject* made = PyType_GenericAlloc(type, 0);
  if (made == nullptr) throw py::error_already_set();
  RecordObject& record = record_at(made);
  record.def = &def;
  record.at = at;
  record.finish = finish;
  new (&record.owner) std::shared_ptr<const void>(std::move(owner));
  return py::reinterpret_steal<py::object>(made);
}

py::object value_object(const Value& value, const FieldType& type,
                        const std::shared_ptr<const void>& owner, Finish finish) {
  if (value.owner) finish = nullptr;  // it is complete
  return std::visit(ToPython{type, value.owner ? value.owner : owner, finish}, value.data);
}

const void* record_in(py::handle object, const RecordDef& def) {
  if (!py::isinstance(object, record_class(def)))
    throw py::type_error(fmt::format("expected a tilecast {}", def.name));
  return record_at(object.ptr()).at;
}

void finish_record(const py::object& record) { record_at(record.ptr()).finish_before(nullptr); }

void add_forecast_views(const py::object& type) {
  const auto view = [](const char* function) {
    return [function](const py::object& self) {
      return py::object(py::module_::import("tilecast._show").attr(function)(self));
    };
  };
  add_method(type, "to_pandas", view("to_pandas"), "A DataFrame of the kernels. Needs pandas.");
  add_method(type, "_repr_html_", view("repr_html"));
  add_method(type, "plot", view("plot"), "A figure of matplotlib: time by operator, and memory.");
  add_method(type, "__str__", [](const py::object& self) { return self.attr("table")(); });
}

void add_records(py::module_& module) {
  for (const ResultDef& result : results()) add_classes(module, *result.record);
}

}  // namespace tilecast::python
