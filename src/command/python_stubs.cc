#include "command/python_stubs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "command/question.h"

namespace tilecast {
namespace {

/// Types of texts that have a form of their own, by the placeholder in help.
std::string text_type(const CommandOption& option) {
  if (option.value.starts_with("N|")) return "int | str";
  if (option.value == "NAME=N") return "str | Mapping[str, float]";
  if (option.value == "PRICE") return "float | str | Mapping[str, float]";
  if (option.value == "CLOCK") return "float | str";
  if (option.list) return "int | str";
  if (option.value == "NAMES") return "str | Sequence[str]";
  return "str";
}

std::string one_type(const CommandOption& option) {
  if (option.kind == ValueKind::kModel) return "ModelLike";
  if (option.kind == ValueKind::kGpu) return "GpuLike";
  if (option.kind == ValueKind::kFile || option.kind == ValueKind::kFolder) return "Path";
  if (!option.choices.empty()) {
    std::vector<std::string> words = option.choices;
    std::sort(words.begin(), words.end());
    if (words == std::vector<std::string>{"off", "on"}) return "bool | Literal[\"on\", \"off\"]";
    std::string list;
    for (const std::string& word : option.choices) {
      list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", word);
      if (word.find_first_not_of("0123456789") == std::string::npos) list += ", " + word;
    }
    return "Literal[" + list + "]";
  }
  switch (option.type) {
    case ValueType::kWhole:
      return "int";
    case ValueType::kNumber:
      return "float";
    case ValueType::kSwitch:
      return "bool";
    case ValueType::kText:
      break;
  }
  return text_type(option);
}

std::string python_type_of(const CommandOption& option) {
  const std::string one = one_type(option);
  if (!option.repeated || one.find("Mapping") != std::string::npos) return one;
  return fmt::format("{0} | Sequence[{0}]", one);
}

/// A keyword; `given` is the one by which the answer is chosen.
std::string parameter(const CommandOption& option, bool given) {
  const std::string type = python_type_of(option);
  return given ? fmt::format("{}: {}", option.keyword(), type)
               : fmt::format("{}: {} | None = None", option.keyword(), type);
}

/// The parameters of a function, in lines.
std::string parameters(const Question& question, std::string_view given, bool method,
                       const std::string& indent) {
  const std::vector<const CommandOption*> positional = question.positional();
  std::vector<std::string> all;
  if (method) all.emplace_back("self");
  bool required = true;  // a parameter without a default cannot follow one with a default
  for (const CommandOption* option : positional) {
    required = required && (option->keyword() == given || option->required);
    all.push_back(parameter(*option, required));
  }
  std::vector<std::string> named;
  if (!positional.empty() && positional.front()->kind == ValueKind::kModel)
    named.emplace_back("inputs: Any = None");
  const auto is_answer_key = [&](const CommandOption& option) {
    return std::any_of(question.answers.begin(), question.answers.end(),
                       [&](const AnswerType& a) { return a.keyword == option.keyword(); });
  };
  // Of keywords that choose the answer, a function has that which chose its own, and those of the
  // same answer.
  const auto type_of = [&](std::string_view keyword) {
    for (const AnswerType& answer : question.answers)
      if (answer.keyword == keyword) return answer.type;
    return std::string_view();
  };
  for (const CommandOption& option : question.index().options()) {
    if (std::find(positional.begin(), positional.end(), &option) != positional.end()) continue;
    if (method && (option.key() == "weights" || option.key() == "calibration")) continue;
    if (is_answer_key(option) && type_of(option.keyword()) != type_of(given)) continue;
    named.push_back(parameter(option, option.keyword() == given || option.required));
  }
  if (!named.empty()) all.emplace_back("*");
  for (std::string& text : named) all.push_back(std::move(text));
  constexpr size_t kWidth = 120;
  std::string text, line = indent;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string part = all[i] + (i + 1 < all.size() ? ", " : "");
    if (line.size() + part.size() > kWidth && line != indent) {
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = indent;
    }
    line += part;
  }
  return all.empty() ? "" : "\n" + text + line + ",";
}

/// The type of an answer, if the file has it.
std::string answer_type(std::string_view type, std::string_view before) {
  std::string checked(type);
  for (const char c : {'|', '[', ']', ','}) std::replace(checked.begin(), checked.end(), c, ' ');
  for (const std::string& name : split(checked, ' ')) {
    if (name.empty() || name == "list" || name == "dict" || name == "str" || name == "Any" ||
        name == "None")
      continue;
    if (before.find(fmt::format("\nclass {}", name)) == std::string_view::npos) return "Any";
  }
  return std::string(type);
}

std::string function(const Question& question, bool method, std::string_view before) {
  const std::string indent = method ? "    " : "";
  std::string text;
  for (const AnswerType& answer : question.answers) {
    if (question.answers.size() > 1) text += indent + "@overload\n";
    text += fmt::format(
        "{}def {}({}{}) -> {}: ...\n", indent, question.name,
        parameters(question, answer.keyword, method, indent + "        "),
        question.positional().empty() && question.index().options().empty() ? "" : "\n" + indent,
        answer_type(answer.type, before));
  }
  return text;
}

}  // namespace

std::string question_stubs(std::string_view before) {
  std::string text =
      "\n\nclass Forecaster:\n    \"\"\"Forecasts with one set of weights.\"\"\"\n"
      "    def __init__(self, weights: Path = \"\", calibration: Path = \"\") -> None: ...\n"
      "    def forecast_many(self, table: Any, *, threads: int = 0, **options: Any) -> "
      "ForecastTable: ...\n";
  for (const Question& question : questions())
    if (question.uses_forecaster) text += function(question, true, before);
  text += "\n";
  for (const Question& question : questions()) text += function(question, false, before);
  return text;
}

}  // namespace tilecast
