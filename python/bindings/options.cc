// Keywords and columns: the options of the façade's table, with underscores in place of hyphens.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "bindings/bindings.h"
#include "bindings/table.h"

namespace tilecast::python {

std::string option_of_keyword(std::string keyword) {
  std::replace(keyword.begin(), keyword.end(), '_', '-');
  return keyword;
}

std::string keyword_of_option(std::string option) {
  std::replace(option.begin(), option.end(), '-', '_');
  return option;
}

std::string option_text(py::handle value) {
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "on" : "off";
  if (PyFloat_Check(value.ptr())) return fmt::format("{}", value.cast<double>());  // 8.0 is "8"
  std::vector<std::string> parts;
  if (py::isinstance<py::dict>(value)) {
    for (const auto& [name, number] : py::reinterpret_borrow<py::dict>(value))
      parts.push_back(option_text(name) + "=" + option_text(number));
    return join(parts, ",");
  }
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    for (const py::handle part : value) parts.push_back(option_text(part));
    return join(parts, ",");
  }
  if (py::hasattr(value, "__fspath__")) return option_text(value.attr("__fspath__")());
  return py::str(value).cast<std::string>();
}

std::vector<GivenOption> given_options(const py::dict& keywords, const char* function) {
  std::vector<GivenOption> given;
  for (const auto& [key, value] : keywords) {
    if (value.is_none()) continue;
    const auto keyword = key.cast<std::string>();
    const std::string name = option_of_keyword(keyword);
    const auto& all = request_options();
    if (std::none_of(all.begin(), all.end(), [&](const OptionDef& o) { return o.name == name; })) {
      std::vector<std::string> names;
      for (const OptionDef& option : all) names.push_back(keyword_of_option(option.name));
      throw py::type_error(fmt::format("{}() got an unexpected keyword argument '{}'{}", function,
                                       keyword, did_you_mean(keyword, names)));
    }
    given.push_back({name, option_text(value)});
  }
  return given;
}

void add_options(py::module_& module) {
  py::class_<OptionDef>(module, "Option", "An option of a forecast.")
      .def_property_readonly("name", [](const OptionDef& o) { return keyword_of_option(o.name); })
      .def_property_readonly("kinds",
                             [](const OptionDef& o) {
                               std::vector<std::string> kinds;
                               if (o.applies_to(RequestKind::kPass)) kinds.emplace_back("pass");
                               if (o.applies_to(RequestKind::kGenerate))
                                 kinds.emplace_back("generate");
                               if (o.applies_to(RequestKind::kServe)) kinds.emplace_back("serve");
                               return kinds;
                             })
      .def_readonly("help", &OptionDef::help)
      .def_readonly("unit", &OptionDef::unit)
      .def_readonly("default", &OptionDef::default_value)
      .def_readonly("choices", &OptionDef::choices)
      .def("__repr__", [](const OptionDef& o) {
        return fmt::format("Option({}: {})", keyword_of_option(o.name), o.help);
      });
  module.def("options", [] { return request_options(); });
}

}  // namespace tilecast::python
