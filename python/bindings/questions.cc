// The questions of src/command as functions: keywords are the options, answers are results.

#include "bindings/questions.h"

#include <fmt/format.h>

#include "base/text.h"
#include "bindings/bindings.h"
#include "bindings/records.h"
#include "bindings/table.h"
#include "command/views.h"

namespace tilecast::python {
namespace {

bool is_text(py::handle value) {
  return py::isinstance<py::str>(value) || py::hasattr(value, "__fspath__");
}

bool is_sequence(py::handle value) {
  return py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
}

/// The words of a value; a list gives its words one by one.
std::vector<std::string> texts_of(py::handle value, const CommandOption& option) {
  if (!is_sequence(value) || !(option.repeated || option.list)) return {option_text(value)};
  std::vector<std::string> texts;
  for (const py::handle part : value) texts.push_back(option_text(part));
  return texts;
}

/// Names are looked up when the question is asked; what else is a GPU is read here.
GivenValue gpus_of(py::handle value, const CommandOption& option) {
  GivenValue given;
  const py::list parts = is_sequence(value) ? py::list(py::reinterpret_borrow<py::object>(value))
                                            : py::list(py::make_tuple(value));
  bool all_texts = true;
  for (const py::handle part : parts) all_texts = all_texts && is_text(part);
  if (all_texts) {
    given.texts = texts_of(value, option);
    return given;
  }
  for (const py::handle part : parts) {
    given.gpus.push_back(gpu_of(py::reinterpret_borrow<py::object>(part)));
    given.texts.push_back(given.gpus.back().id());
  }
  return given;
}

struct Keywords {
  const Question& question;
  py::object inputs = py::none(), mode = py::none();  ///< of a torch.nn.Module

  GivenValue value_of(const CommandOption& option, py::handle value) const {
    if (option.kind == ValueKind::kModel && !(is_text(value) && inputs.is_none())) {
      GivenValue given;
      given.model = model_of(py::reinterpret_borrow<py::object>(value), inputs, mode);
      return given;
    }
    if (option.kind == ValueKind::kGpu) return gpus_of(value, option);
    return {.texts = texts_of(value, option), .model = {}, .gpus = {}};
  }

  void add(Given& given, const CommandOption& option, py::handle value) const {
    if (value.is_none()) return;
    if (option.type == ValueType::kSwitch && value.ptr() == Py_False) return;
    given[option.key()] = value_of(option, value);
  }

  [[noreturn]] void refuse(const std::string& keyword) const {
    std::vector<std::string> known;
    for (const CommandOption& option : question.index().options())
      known.push_back(option.keyword());
    throw py::type_error(fmt::format("{}() got an unexpected keyword argument '{}'{}",
                                     question.name, keyword, did_you_mean(keyword, known)));
  }

  Given read(const py::args& positional, const py::kwargs& keywords) {
    if (keywords.contains("inputs")) inputs = keywords["inputs"];
    if (keywords.contains("mode")) mode = keywords["mode"];
    const std::vector<const CommandOption*> order = question.positional();
    if (positional.size() > order.size())
      throw py::type_error(
          fmt::format("{}() takes {} positional arguments at most but {} were given", question.name,
                      order.size(), positional.size()));
    Given given;
    for (size_t i = 0; i < positional.size(); ++i) add(given, *order[i], positional[i]);
    for (const auto& [key, value] : keywords) {
      const auto keyword = key.cast<std::string>();
      if (keyword == "inputs" && !order.empty() && order.front()->kind == ValueKind::kModel)
        continue;
      const CommandOption* option = question.index().find_keyword(keyword);
      if (option == nullptr) refuse(keyword);
      for (size_t i = 0; i < positional.size(); ++i) {
        if (order[i] == option)
          throw py::type_error(
              fmt::format("{}() got multiple values for argument '{}'", question.name, keyword));
      }
      add(given, *option, value);
    }
    return given;
  }
};

template <typename T>
concept Record = requires { &T::template fields<int>; };

template <typename T>
py::object as_object(T& result) {
  return result_object(std::move(result));
}
template <typename T>
py::object as_object(std::vector<T>& results) {
  return result_list(std::move(results));
}
template <typename T>
constexpr bool kIsRecord = Record<T>;
template <typename T>
constexpr bool kIsRecord<std::vector<T>> = Record<T>;

struct ToObject {
  Reply& reply;

  py::object operator()(Forecast& forecast) const {
    return make_pass(std::move(*reply.asked), std::move(forecast));
  }
  py::object operator()(AcceleratorOccupancy&) const {
    return py::str(*view(reply.answer, "text"));
  }
  py::object operator()(TracedTimeline& timeline) const {
    return py::module_::import("json").attr("loads")(timeline.json);
  }
  py::object operator()(DataFile& file) const { return py::str(file.json); }
  py::object operator()(SuggestedKernels& kernels) const { return py::str(kernels.csv); }
  template <typename T>
  py::object operator()(T& result) const {
    if constexpr (kIsRecord<T>) return as_object(result);
    const auto json = view(reply.answer, "json");
    if (!json) return py::none();
    return py::module_::import("json").attr("loads")(*json);
  }
};

py::object answer(const Question& question, const Given& given, const Asking& asking) {
  Reply reply;
  {
    const py::gil_scoped_release release;
    reply = question.ask(given, asking);
  }
  return std::visit(ToObject{reply}, reply.answer);
}

}  // namespace

std::shared_ptr<const Forecaster> default_forecaster() {
  // Never freed: the interpreter may be gone before it.
  static const auto* const forecaster =
      new std::shared_ptr<const Forecaster>(std::make_shared<Forecaster>());
  return *forecaster;
}

py::object ask_default(const Question& question, const py::args& arguments,
                       const py::kwargs& keywords) {
  const Given given = Keywords{question}.read(arguments, keywords);
  Asking asking;
  if (!has(given, "weights") && !has(given, "calibration"))
    asking.forecaster = default_forecaster();
  return answer(question, given, asking);
}

py::object ask_with(const std::shared_ptr<const Forecaster>& forecaster, const Question& question,
                    const py::args& arguments, const py::kwargs& keywords) {
  Keywords read{question};
  for (const char* other : {"weights", "calibration"}) {
    if (keywords.contains(other)) read.refuse(other);
  }
  return answer(question, read.read(arguments, keywords), {.forecaster = forecaster});
}

void add_questions(py::module_& module) {
  for (const Question& question : questions()) {
    const std::string name(question.name);
    const std::string doc =
        fmt::format("{}. tilecast.options(\"{}\") lists the keywords.", question.help, name);
    module.attr(name.c_str()) = py::cpp_function(
        [&question](const py::args& arguments, const py::kwargs& keywords) {
          return ask_default(question, arguments, keywords);
        },
        py::name(name.c_str()), py::scope(module), py::doc(doc.c_str()));
  }
}

}  // namespace tilecast::python
