// New weights from measurements.

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/text.h"
#include "command/question.h"
#include "command/shared_options.h"

namespace tilecast {
namespace {

struct Training {
  TrainOptions options;
  bool collectives = false;
  bool laws = false;
  std::string intervals = "leave-one-out";
};

std::vector<OptionGroup> train_groups() {
  const TrainOptions defaults;
  const auto number = [](const std::string& name, auto value, const std::string& help, SetValue set,
                         int64_t min, int64_t max) {
    return whole_option("--" + name, fmt::format("{}", value), help, set, min, max);
  };
  return {{"Options",
           {{.names = "--data",
             .value = "PATH",
             .help = "measurement files or folders",
             .kind = ValueKind::kFile,
             .required = true,
             .repeated = true,
             .set = into<&Training::options, &TrainOptions::data>()},
            {.names = "-o,--output-file",
             .value = "FOLDER",
             .help = "folder to write; an interrupted run goes on from the checkpoints "
                     "in it",
             .kind = ValueKind::kFolder,
             .required = true,
             .old_names = {"--output"},
             .set = into<&Training::options, &TrainOptions::output>()},
            switch_option("collectives", "fit the curves of collectives only: collectives.json",
                          into<&Training::collectives>()),
            switch_option("laws",
                          "fit constants of laws only, with all GPUs and without each: laws.json",
                          into<&Training::laws>()),
            {.names = "--law-folder",
             .value = "FOLDER",
             .help = "files of laws that take the place of the bundled ones of the same name",
             .kind = ValueKind::kFolder,
             .set = into<&Training::options, &TrainOptions::laws>()},
            {.names = "--exclude-gpu",
             .value = "GPU",
             .help = "leave out all rows of this GPU",
             .kind = ValueKind::kGpu,
             .repeated = true,
             .set = into<&Training::options, &TrainOptions::exclude_gpus>()},
            number("trees", defaults.trees, "trees of each forest, at most",
                   into<&Training::options, &TrainOptions::trees>(), 1, 10000),
            number("seed", defaults.seed, "random seed; the same seed gives the same bytes",
                   into<&Training::options, &TrainOptions::seed>(), 0,
                   std::numeric_limits<int64_t>::max()),
            number("threads", defaults.threads, "threads",
                   into<&Training::options, &TrainOptions::threads>(), 1, 256),
            {.names = "--intervals",
             .default_value = "leave-one-out",
             .help = "source of the 80 % intervals: GPUs left out in turn, or held-out rows",
             .choices = {"leave-one-out", "held-out"},
             .set = into<&Training::intervals>()}}}};
}

void check_law_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") return;
  }
  throw OptionError(fmt::format("`law-folder`: {}: expected a folder with files of laws (.json)",
                                printable(folder.string())));
}

/// Options that this training would not read are refused.
void check_training(const Training& asked, const Given& given) {
  check_law_folder(asked.options.laws);
  if (!asked.laws && !asked.collectives) return;
  if (asked.laws && asked.collectives)
    throw OptionError("`laws` and `collectives` are mutually exclusive");
  const char* const what = asked.laws ? "laws" : "collectives";
  for (const char* name : {"trees", "seed", "intervals"}) {
    const auto option = given.find(name);
    if (option != given.end() && !option->second.by_default)
      throw OptionError(fmt::format("`{}` has no effect with `{}`", name, what));
  }
}

Reply answer_train(Training&& asked, const Given& given, const Asking& asking) {
  check_training(asked, given);
  TrainOptions& options = asked.options;
  if (asked.collectives) {
    options.command = "tilecast train --collectives";
    CollectiveTrainResult result = train_collectives(options);
    std::vector<std::string> report = result.report;
    return {.answer = std::move(result), .warnings = std::move(report)};
  }
  if (asked.laws) {
    options.command = "tilecast train --laws";
    TrainResult result = train_laws(options, asking.show_progress);
    std::vector<std::string> report = result.report;
    return {.answer = std::move(result), .warnings = std::move(report)};
  }
  options.leave_one_out = asked.intervals == "leave-one-out";
  options.command =
      fmt::format("tilecast train --seed {} --trees {}{}{}{}", options.seed, options.trees,
                  options.leave_one_out ? "" : " --intervals held-out",
                  options.laws.empty() ? "" : " --law-folder " + options.laws.string(),
                  options.exclude_gpus.empty()
                      ? ""
                      : " --exclude-gpu " + join(options.exclude_gpus, " --exclude-gpu "));
  TrainResult result = train_weights(options, asking.show_progress);
  std::vector<std::string> report = result.report;
  return {.answer = std::move(result), .warnings = std::move(report)};
}

}  // namespace

Question train_question() {
  return local(question_of<Training, train_groups, answer_train>(
      "train", "New weights from measurements", {{"", "Training | CollectiveTraining"}}));
}

}  // namespace tilecast
