// Keywords and columns: the options of the façade's table, with underscores in place of hyphens.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "bindings/bindings.h"
#include "bindings/questions.h"
#include "bindings/table.h"
#include "tilecast/error.h"

namespace tilecast::python {

std::string option_of_keyword(std::string keyword) {
  if (keyword.starts_with(OptionColumn::kParameters)) return keyword;  // names of their own
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

namespace {

/// An option as `tilecast.options` lists it.
struct ListedOption {
  std::string name, help, unit, default_value;
  std::vector<std::string> kinds, choices;
};

std::vector<ListedOption> options_of_requests() {
  std::vector<ListedOption> all;
  for (const OptionDef& o : request_options()) {
    ListedOption& listed = all.emplace_back(ListedOption{.name = keyword_of_option(o.name),
                                                         .help = o.help,
                                                         .unit = o.unit,
                                                         .default_value = o.default_value,
                                                         .kinds = {},
                                                         .choices = o.choices});
    if (o.applies_to(RequestKind::kPass)) listed.kinds.emplace_back("pass");
    if (o.applies_to(RequestKind::kGenerate)) listed.kinds.emplace_back("generate");
    if (o.applies_to(RequestKind::kServe)) listed.kinds.emplace_back("serve");
  }
  return all;
}

std::vector<ListedOption> options_of(const std::string& name) {
  std::vector<ListedOption> all;
  std::vector<std::string> names;
  for (const Question& question : questions()) {
    names.emplace_back(question.name);
    if (question.name != name) continue;
    if (name == "forecast") all = options_of_requests();
    for (const CommandOption& o : question.index().options()) {
      const auto same = [&](const ListedOption& other) { return other.name == o.keyword(); };
      if (std::any_of(all.begin(), all.end(), same)) continue;
      all.push_back({.name = o.keyword(),
                     .help = o.help,
                     .unit = "",
                     .default_value = o.default_value,
                     .kinds = {},
                     .choices = o.choices});
    }
    return all;
  }
  throw Error(ErrorKind::kNotFound,
              fmt::format("no function '{}' has options{}; known: {}", shown_name(name),
                          did_you_mean(name, names), join(names, ", ")));
}

}  // namespace

void add_options(py::module_& module) {
  py::class_<ListedOption>(module, "Option", "An option, a keyword of a function.")
      .def_readonly("name", &ListedOption::name)
      .def_readonly("kinds", &ListedOption::kinds)
      .def_readonly("help", &ListedOption::help)
      .def_readonly("unit", &ListedOption::unit)
      .def_readonly("default", &ListedOption::default_value)
      .def_readonly("choices", &ListedOption::choices)
      .def("__repr__",
           [](const ListedOption& o) { return fmt::format("Option({}: {})", o.name, o.help); });
  module.def("options", options_of, py::arg("function") = "forecast", "The options of a function.");
}

}  // namespace tilecast::python
