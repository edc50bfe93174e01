// Errors of the library as Python's exceptions (python/tilecast/_errors.py).

#include <array>
#include <set>

#include "bindings/bindings.h"
#include "bindings/questions.h"
#include "bindings/table.h"
#include "tilecast/error.h"

namespace tilecast::python {
namespace {

/// The classes, in the order of ErrorKind. Never freed: exceptions are translated until the end.
std::array<PyObject*, 5> error_classes{};

/// The names of all options that keywords have.
const std::set<std::string>& option_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const OptionDef& option : request_options()) all.insert(option.name);
    for (const Question& question : questions()) {
      for (const CommandOption& option : question.index().options()) all.insert(option.key());
    }
    return all;
  }();
  return names;
}

}  // namespace

std::string options_as_keywords(const std::string& message) {
  std::string result = message;
  for (size_t open = result.find('`'); open != std::string::npos;
       open = result.find('`', open + 1)) {
    const size_t end = result.find('`', open + 1);
    if (end == std::string::npos) break;
    const std::string name = result.substr(open + 1, end - open - 1);
    if (!option_names().contains(name)) continue;
    result.replace(open + 1, name.size(), keyword_of_option(name));
    open = end;
  }
  return result;
}

void add_errors() {
  const py::module_ errors = py::module_::import("tilecast._errors");
  const std::array names = {"InputError", "NotFoundError", "UnsupportedError", "IoError",
                            "InternalError"};
  for (size_t i = 0; i < names.size(); ++i)
    error_classes[i] = py::object(errors.attr(names[i])).release().ptr();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      PyErr_SetString(error_classes[static_cast<size_t>(error.kind())],
                      options_as_keywords(error.what()).c_str());
    }
  });
}

}  // namespace tilecast::python
