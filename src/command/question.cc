#include "command/question.h"

#include <algorithm>

#include "base/check.h"

namespace tilecast {

std::span<const Question> questions() {
  static const std::vector<Question> all = [] {
    std::vector<Question> table = forecast_questions();
    for (const Question& one : {compare_question(), kernel_question(), collective_question(),
                                plan_question(), shard_question(), evaluate_question(),
                                train_question(), tune_question(), sweep_question()})
      table.push_back(one);
    for (const Question& one : calibration_questions()) table.push_back(one);
    for (const Question& one : catalog_questions()) table.push_back(one);
    table.push_back(doctor_question());
    return table;
  }();
  return all;
}

std::vector<const CommandOption*> Question::positional() const {
  std::vector<const CommandOption*> order;
  for (const CommandOption& option : index().options()) {
    if (option.is_argument()) order.push_back(&option);
  }
  for (const char* second : {"gpu", "gpus"}) {
    const CommandOption* option = index().find(second);
    if (option != nullptr && order.size() < 2) order.push_back(option);
  }
  return order;
}

const Question& question(std::string_view name) {
  const auto found = std::find_if(questions().begin(), questions().end(),
                                  [&](const Question& one) { return one.name == name; });
  TILECAST_CHECK(found != questions().end()) << "no question " << std::string(name);
  return *found;
}

}  // namespace tilecast
