#pragma once

// The table of questions. The command line and Python ask them; neither has rules of its own.

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "command/answer.h"
#include "command/option.h"
#include "command/sources.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// Context of a question, provided by the program that asks, beside options.
struct Asking {
  std::shared_ptr<const Forecaster> forecaster;  ///< null: by the options weights and calibration
  ShowProgress show_progress;                    ///< of what takes long
  Detail detail = Detail::kWarnings;             ///< of a forecast
};

/// Type of an answer in Python if a keyword is given.
struct AnswerType {
  std::string_view keyword;  ///< "": in all other cases
  std::string_view type;
};

/// One question: its options, and how it is answered.
struct Question {
  std::string_view name;  ///< the function's in Python
  std::string_view help;
  std::vector<OptionGroup> (*groups)();
  /// Reads the options, then answers. Throws OptionError for what the options alone show; another
  /// Error where a file or a look-up shows it.
  Reply (*ask)(const Given& given, const Asking& asking);
  /// The options by key and keyword; made when first used.
  const OptionIndex& (*index)();
  /// The options that Python takes by position: arguments, then the GPU.
  std::vector<const CommandOption*> positional() const;
  std::vector<AnswerType> answers;
  bool uses_forecaster = false;  ///< it has the options weights and calibration of forecasts
  bool is_local = false;         ///< it reads measurements or writes files: not for a service
  /// Keys of the options that are shown first; empty: all.
  std::vector<std::string> essential = {};
};

/// All questions, in the order of the documentation.
std::span<const Question> questions();

/// The question of that name; it must exist.
const Question& question(std::string_view name);

// One for each file beside this.
std::vector<Question> forecast_questions();
Question compare_question();
Question kernel_question();
Question collective_question();
Question plan_question();
Question shard_question();
Question evaluate_question();
Question train_question();
std::vector<Question> calibration_questions();
Question tune_question();
Question sweep_question();
Question share_question();
std::vector<Question> trace_questions();
Question allocate_question();
std::vector<Question> catalog_questions();
Question doctor_question();

namespace internal {

/// With the options of limits, which all questions have.
std::vector<OptionGroup> with_limits(std::vector<OptionGroup> groups);
/// The answer within the given limits, whose options `ask` does not get. Throws Error{kUnsupported}
/// if it takes more.
Reply ask_within_limits(Given given, const std::function<Reply(const Given&)>& ask);

template <typename Typed>
concept UsesForecaster = requires(Typed typed) { typed.forecaster; };

template <auto Groups>
const OptionIndex& index_of() {
  static const OptionIndex index{with_limits(Groups())};
  return index;
}

}  // namespace internal

/// A question whose options write to a `Typed`. `Typed::forecaster` is the forecaster's source, if
/// it has one; `Answer` is `Reply(Typed&&, const Given&, const Asking&)`. The last of `answers` has
/// no keyword.
template <typename Typed, auto Groups, auto Answer>
Question question_of(std::string_view name, std::string_view help,
                     std::vector<AnswerType>&& answers) {
  return {.name = name,
          .help = help,
          .groups = [] { return internal::with_limits(Groups()); },
          .ask =
              [](const Given& all, const Asking& asking) {
                return internal::ask_within_limits(all, [&](const Given& given) {
                  Typed typed;
                  if constexpr (internal::UsesForecaster<Typed>)
                    typed.forecaster.read = asking.forecaster;
                  internal::index_of<Groups>().read(given, &typed);
                  return Answer(std::move(typed), given, asking);
                });
              },
          .index = internal::index_of<Groups>,
          .answers = std::move(answers),
          .uses_forecaster = internal::UsesForecaster<Typed>};
}

/// The question, with the keys of the options that are shown first.
inline Question with_essential(Question question, std::vector<std::string> keys) {
  question.essential = std::move(keys);
  return question;
}

/// The question, as one that reads measurements or writes files.
inline Question local(Question question) {
  question.is_local = true;
  return question;
}

}  // namespace tilecast
