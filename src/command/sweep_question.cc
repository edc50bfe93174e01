// Many forecasts: all combinations of lists.

#include "base/threads.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Sweep {
  std::string spec, output;
  int64_t threads = usable_cores();
};

std::vector<OptionGroup> sweep_groups() {
  constexpr int64_t kMostThreads = 256;
  return {{"Arguments",
           {{.names = "SPEC",
             .help = "JSON file with lists: model, gpu, options of a forecast, and "
                     "'parameters' of accelerators",
             .kind = ValueKind::kFile,
             .required = true,
             .set = into<&Sweep::spec>()}}},
          {"Options",
           {output_option(into<&Sweep::output>()),
            whole_option("--threads", "all cores", "forecasts that run at once",
                         into<&Sweep::threads>(), 1, kMostThreads)}}};
}

Reply answer_sweep(Sweep&& asked, const Given&, const Asking& asking) {
  if (asked.output.empty() || asked.output == "-" || asked.output == "/dev/stdout")
    throw OptionError(
        "-o FILE is missing: a sweep writes its results there, and resumes from them");
  SweepResult result;
  try {
    result = run_sweep(asked.spec, asked.output, asked.threads, asking.show_progress);
  } catch (const OptionError& error) {  // the file shows it, not the options of this question
    throw Error(error.kind(), error.what());
  }
  std::string shortfall = result.shortfall;
  return {.answer = std::move(result), .shortfall = std::move(shortfall)};
}

}  // namespace

Question sweep_question() {
  return local(question_of<Sweep, sweep_groups, answer_sweep>(
      "sweep", "Many forecasts: all combinations of lists", {{"", "Sweep"}}));
}

}  // namespace tilecast
