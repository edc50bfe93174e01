// The error of forecasts against measurements: of kernels and models, of tuning, of accelerators,
// of jobs that share a GPU, of servers under load.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "command/job_source.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Evaluated {
  std::string path, gpu, jobs, how, series, servers;
  bool pairs = false;
  std::string predictor = "learned";
  int64_t points = 0;
  ForecasterSource forecaster;
};

constexpr int64_t kMostPoints = 1000000;

std::vector<OptionGroup> evaluate_groups() {
  std::vector<CommandOption> options = {
      {.names = "--gpu",
       .value = "GPU",
       .default_value = "that whose id begins the file's name",
       .help = "the accelerator that cycles were measured on; of jobs that share GPUs, what GPUs "
               "the table's names are: v100=nvidia-v100-sxm2-16gb,...",
       .set = into<&Evaluated::gpu>()},
      {.names = "--jobs",
       .value = "FILE",
       .help = "of a table of jobs that share GPUs: what its jobs are (as in share --jobs), named "
               "as model and batch there",
       .kind = ValueKind::kFile,
       .set = into<&Evaluated::jobs>()},
      {.names = "--how",
       .value = "HOW",
       .help = "how these jobs share GPUs: time-slice, mps or streams; with exceptions: "
               "mps,k80=time-slice",
       .set = into<&Evaluated::how>()},
      {.names = "--series",
       .value = "NAME",
       .help = "the rows to compare, where the table has several series",
       .set = into<&Evaluated::series>()},
      switch_option("pairs",
                    "of these jobs also the errors of pairs that are left out while others are "
                    "fitted, as calibrate --pairs fits them",
                    into<&Evaluated::pairs>()),
      {.names = "--servers",
       .value = "FILE",
       .help = "of a table of servers under load: what its rows do not say (models, options of the "
               "software): see research/servers",
       .kind = ValueKind::kFile,
       .set = into<&Evaluated::servers>()},
      whole_option("--points", "0",
                   "measured kernels to list beside the errors, the worst first; 1500 in HTML",
                   into<&Evaluated::points>(), 0, kMostPoints),
      request_option("predictor", RequestKind::kPass, into<&Evaluated::predictor>())};
  for (const CommandOption& option : forecaster_options<Evaluated>()) options.push_back(option);
  return {
      {"Arguments",
       {{.names = "PATH",
         .help = "file or folder: Tilecast's CSV, the NeuSight repository, "
                 "aiconfigurator's, Vidur's, rocBLAS's, AITER's, PipeWeave's or "
                 "LLMServingSim's CSVs, find_ARCH.csv of MIOpen's solvers, Gavel's or MISO's jobs "
                 "that share GPUs, servers under load",
         .kind = ValueKind::kFile,
         .required = true,
         .set = into<&Evaluated::path>()}}},
      {"Options", std::move(options)}};
}

/// "mps,k80=time-slice": the value without a name is that of all other names, "".
std::map<std::string, std::string> by_name(const std::string& option, const std::string& text) {
  std::map<std::string, std::string> values;
  for (const std::string& item : split(text, ',')) {
    const size_t equals = item.find('=');
    const std::string name = equals == std::string::npos ? "" : item.substr(0, equals);
    const std::string value = equals == std::string::npos ? item : item.substr(equals + 1);
    if (value.empty() || !values.emplace(name, value).second)
      throw OptionError(
          fmt::format("`{}`: expected values as in mps,k80=time-slice, each name "
                      "once; found '{}'",
                      option, shown_name(text)));
  }
  return values;
}

ShareHow how_of_word(const std::string& word) {
  constexpr auto kWords = choice_words(ShareHow{});
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  if (found == kWords.end())
    throw OptionError(
        fmt::format("`how`: expected time-slice, mps or streams, found '{}'", shown_name(word)));
  return static_cast<ShareHow>(found - kWords.begin());
}

MeasuredJob measured_job(AskedJob asked) {
  MeasuredJob job{.job = std::move(asked.job)};
  if (job.job.bounds.steps_per_s)
    throw Error(ErrorKind::kInput,
                asked.where + ": steps_per_s is in the table of measurements: leave it out");
  if (const auto found = asked.further.find("measured-steps"); found != asked.further.end()) {
    if (!found->second.is_number() || !(found->second.get<double>() > 0))
      throw Error(ErrorKind::kInput, asked.where + ": measured_steps: expected a number above 0");
    job.steps = found->second.get<double>();
  }
  if (const auto found = asked.further.find("memory-model"); found != asked.further.end()) {
    if (!found->second.is_string())
      throw Error(ErrorKind::kInput, asked.where + ": memory_model: expected a model's name");
    job.memory_model = load_model_ref(found->second.get<std::string>());
  }
  return job;
}

SharingTable sharing_table_of(const Evaluated& asked) {
  if (asked.jobs.empty())
    throw OptionError(
        "jobs that share GPUs: say what they are with `jobs` FILE and how they share with `how`");
  SharingTable table{
      .series = asked.series, .gpus = by_name("gpu", asked.gpu), .pairs = asked.pairs};
  for (const auto& [gpu, word] : by_name("how", asked.how)) table.how[gpu] = how_of_word(word);
  JobReader reader({"measured-steps", "memory-model"});
  reader.add_file(asked.jobs);
  for (AskedJob& job : reader.take()) table.jobs.push_back(measured_job(std::move(job)));
  return table;
}

/// Servers and jobs are forecast as users ask for them.
void refuse_predictor(const Evaluated& asked) {
  if (asked.predictor != "learned")
    throw OptionError(
        "`predictor` applies to tables of measured kernels and models, which this is not");
}

/// Options that only tables of servers have.
void refuse_server_options(const Evaluated& asked) {
  if (!asked.servers.empty())
    throw OptionError("`servers` applies to tables of servers under load, which this is not");
}

/// Options that only tables of jobs have.
void refuse_sharing_options(const Evaluated& asked) {
  const char* given = !asked.jobs.empty()     ? "jobs"
                      : !asked.how.empty()    ? "how"
                      : !asked.series.empty() ? "series"
                      : asked.pairs           ? "pairs"
                                              : nullptr;
  if (given != nullptr)
    throw OptionError(
        fmt::format("`{}` applies to tables of jobs that share GPUs, which this is not", given));
}

/// An option of tables of measured kernels.
void refuse_points(const Given& given) {
  const auto points = given.find("points");
  if (points != given.end() && !points->second.by_default)
    throw OptionError("`points` applies to tables of measured kernels, which this is not");
}

Reply answer_evaluate(Evaluated&& asked, const Given& given, const Asking&) {
  if (is_server_table(asked.path)) {
    refuse_predictor(asked);
    refuse_sharing_options(asked);
    refuse_points(given);
    if (!asked.gpu.empty()) throw OptionError("`gpu`: each row of servers names its GPU");
    return {.answer = evaluate_servers(*asked.forecaster.load(), asked.path, asked.servers)};
  }
  refuse_server_options(asked);
  if (is_sharing_table(asked.path)) {
    refuse_points(given);
    return {.answer =
                evaluate_sharing(*asked.forecaster.load(), asked.path, sharing_table_of(asked))};
  }
  refuse_sharing_options(asked);
  if (auto accelerators = evaluate_accelerators(asked.path, asked.gpu)) {
    refuse_points(given);
    return {.answer = AcceleratorEvaluations{std::move(*accelerators)}};
  }
  if (!asked.gpu.empty())
    throw OptionError("`gpu` applies to cycles of accelerators; other tables name their GPUs");
  if (auto tuning = evaluate_tuning(asked.path)) {
    refuse_points(given);
    return {.answer = TuneEvaluations{std::move(*tuning)}};
  }
  Evaluation evaluation = evaluate(*asked.forecaster.load(), asked.path, asked.predictor,
                                   static_cast<size_t>(asked.points));
  std::vector<std::string> warnings = evaluation_warnings(evaluation);
  return {.answer = std::move(evaluation), .warnings = std::move(warnings)};
}

}  // namespace

Question evaluate_question() {
  return local(question_of<Evaluated, evaluate_groups, answer_evaluate>(
      "evaluate", "Error of forecasts against measurements",
      {{"",
        "Evaluation | AcceleratorEvaluations | TuneEvaluations | SharingEvaluation | "
        "ServerEvaluation"}}));
}

}  // namespace tilecast
