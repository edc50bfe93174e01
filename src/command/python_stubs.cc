#include "command/python_stubs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "command/question.h"

namespace tilecast {
namespace {

/// Types of texts that have a form of their own, by the placeholder in help.
std::string text_type(const CommandOption& option) {
  if (option.value.starts_with("N|") || option.value == "SIZE") return "int | str";
  if (option.value == "NAME=N") return "str | Mapping[str, float]";
  if (option.value == "PRICE|TABLE") return "float | str | Mapping[str, float]";
  if (option.value == "CLOCK" || option.value == "W|best") return "float | str";
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
  std::string one = one_type(option);
  if (!option.repeated || one.find("Mapping") != std::string::npos) return one;
  return fmt::format("{0} | Sequence[{0}]", one);
}

std::string parameter(const CommandOption& option, bool required) {
  const std::string type = python_type_of(option);
  return required ? fmt::format("{}: {}", option.keyword(), type)
                  : fmt::format("{}: {} | None = None", option.keyword(), type);
}

/// How a question's options are given in Python.
class Signature {
 public:
  explicit Signature(const Question& question)
      : question_(question), positional_(question.positional()) {}

  /// "PlanKeywords": the class of the options that all its functions share.
  std::string keywords() const {
    std::string name;
    bool upper = true;
    for (const char c : question_.name) {
      if (c != '_') name += upper ? static_cast<char>(c - 'a' + 'A') : c;
      upper = c == '_';
    }
    return name + "Keywords";
  }

  /// The class of the shared options; "" if there are none.
  std::string keyword_class() const {
    std::string text;
    for (const CommandOption& option : question_.index().options()) {
      if (is_shared(option))
        text += fmt::format("    {}: {} | None\n", option.keyword(), python_type_of(option));
    }
    return text.empty() ? ""
                        : fmt::format("\nclass {}(TypedDict, total=False):\n{}", keywords(), text);
  }

  /// The parameters of the function with that answer.
  std::string parameters(const AnswerType& answer, bool method) const {
    std::vector<std::string> all;
    if (method) all.emplace_back("self");
    bool required = true;  // a parameter without a default cannot follow one with a default
    for (const CommandOption* option : positional_) {
      required = required && is_required(*option, answer);
      all.push_back(parameter(*option, required));
    }
    std::vector<std::string> named;
    if (!positional_.empty() && positional_.front()->kind == ValueKind::kModel)
      named.emplace_back("inputs: Any = None");
    bool shares = false;
    for (const CommandOption& option : question_.index().options()) {
      shares = shares || is_shared(option);
      if (is_shared(option) || is_positional(option) || (method && is_of_weights(option))) continue;
      const std::string_view type = type_of(option);
      if (!type.empty() && type != answer.type) continue;  // it chooses another answer
      named.push_back(parameter(option, is_required(option, answer)));
    }
    if (!named.empty()) all.emplace_back("*");
    all.insert(all.end(), named.begin(), named.end());
    if (shares) all.push_back(fmt::format("**options: Unpack[{}]", keywords()));
    return join(all, ", ");
  }

 private:
  static bool is_of_weights(const CommandOption& option) {
    return option.key() == "weights" || option.key() == "calibration";
  }
  bool is_positional(const CommandOption& option) const {
    return std::find(positional_.begin(), positional_.end(), &option) != positional_.end();
  }
  bool is_shared(const CommandOption& option) const {
    return !is_positional(option) && !option.required && type_of(option).empty() &&
           !(question_.uses_forecaster && is_of_weights(option));
  }
  bool is_required(const CommandOption& option, const AnswerType& answer) const {
    return option.required || option.keyword() == answer.keyword;
  }
  /// The answer that the option chooses; "": none.
  std::string_view type_of(const CommandOption& option) const {
    for (const AnswerType& answer : question_.answers)
      if (answer.keyword == option.keyword()) return answer.type;
    return "";
  }

  const Question& question_;
  std::vector<const CommandOption*> positional_;
};

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
    text += fmt::format("{}def {}({}) -> {}: ...\n", indent, question.name,
                        Signature(question).parameters(answer, method),
                        answer_type(answer.type, before));
  }
  return text;
}

}  // namespace

std::string question_stubs(std::string_view before) {
  std::string text;
  for (const Question& question : questions()) text += Signature(question).keyword_class();
  text +=
      "\nclass Forecaster:\n    \"\"\"Forecasts with one set of weights.\"\"\"\n"
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
