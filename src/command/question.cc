#include "command/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/number.h"
#include "base/text.h"
#include "command/member.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// "512MiB", "4G" or a number of bytes.
void set_memory(void* limits, const CommandOption& option, const GivenValue& value) {
  const std::string& text = internal::last_text(option, value);
  const std::optional<int64_t> bytes = parse_whole(internal::without_unit_of_bytes(text));
  if (!bytes || *bytes < 1)
    throw OptionError(fmt::format("`{}`: expected a size like 512MiB or 4GB, found '{}'",
                                  option.key(), shown_name(text)));
  static_cast<Limits*>(limits)->memory_bytes = bytes;
}

void set_seconds(void* limits, const CommandOption& option, const GivenValue& value) {
  const std::string& text = internal::last_text(option, value);
  const std::optional<double> seconds = parse_number<double>(text);
  if (!seconds || !std::isfinite(*seconds) || *seconds <= 0)
    throw OptionError(
        fmt::format("`{}`: expected a number above 0, found '{}'", option.key(), shown_name(text)));
  static_cast<Limits*>(limits)->seconds = seconds;
}

}  // namespace

std::vector<OptionGroup> internal::with_limits(std::vector<OptionGroup> groups) {
  groups.push_back({"Limits",
                    {{.names = "--max-memory",
                      .value = "SIZE",
                      .help = "memory that the answer may take, 512MiB or 4GB; more ends in an "
                              "error; default: limits of each part that no known model reaches",
                      .set = set_memory},
                     {.names = "--max-seconds",
                      .value = "N",
                      .help = "time that the answer may take; more ends in an error",
                      .type = ValueType::kNumber,
                      .set = set_seconds}}});
  return groups;
}

Reply internal::ask_within_limits(Given given, const std::function<Reply(const Given&)>& ask) {
  static const OptionIndex index{with_limits({})};
  Given asked;
  for (const CommandOption& option : index.options()) {
    if (auto limit = given.extract(option.key())) asked.insert(std::move(limit));
  }
  Limits limits;
  index.read(asked, &limits);
  std::optional<LimitScope> scope;
  if (limits.memory_bytes || limits.seconds) scope.emplace(limits);  // else one around it counts
  try {
    return ask(given);
  } catch (const LimitReached& reached) {
    throw Error(ErrorKind::kUnsupported, reached.what());
  }
}

std::span<const Question> questions() {
  static const std::vector<Question> all = [] {
    std::vector<Question> table = forecast_questions();
    for (const Question& one :
         {compare_question(), kernel_question(), collective_question(), plan_question(),
          shard_question(), evaluate_question(), train_question(), tune_question(),
          sweep_question(), share_question(), allocate_question()})
      table.push_back(one);
    for (const Question& one : trace_questions()) table.push_back(one);
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
