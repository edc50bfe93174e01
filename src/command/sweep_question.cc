// Many forecasts: all points of a spec.

#include "base/threads.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Sweep {
  std::string spec, output;
  int64_t threads = usable_cores();
  std::vector<std::string> pareto;
  bool columns = false;
};

std::vector<OptionGroup> sweep_groups() {
  constexpr int64_t kMostThreads = 256;
  CommandOption output = output_option(into<&Sweep::output>());
  output.help =
      "gets a row for each point, as CSV or, in .jsonl, a JSON object in each line; a run that was "
      "interrupted goes on from there";
  CommandOption pareto = list_option(
      "pareto", "cycles, multipliers and memory of accelerators",
      "fields of rows, each better than others in one of them: latency_s (or time), "
      "cost, peak_bytes (memory), energy_j (energy), tokens_per_s and others; min:NAME or "
      "max:NAME also for a column of the spec",
      into<&Sweep::pareto>(), ValueType::kText);
  pareto.value = "FIELD,...";
  return {
      {"Arguments",
       {{.names = "SPEC",
         .help = "JSON file with lists, ranges and draws of models, GPUs, options of a forecast "
                 "and numbers of devices (docs/guide/sweep_many.md)",
         .kind = ValueKind::kFile,
         .required = true,
         .set = into<&Sweep::spec>()}}},
      {"Options",
       {output, pareto,
        switch_option("columns", "the answer has points of the sweep, as pages (html) have",
                      into<&Sweep::columns>()),
        whole_option("--threads", "all cores", "forecasts that run at once",
                     into<&Sweep::threads>(), 1, kMostThreads)}}};
}

Reply answer_sweep(Sweep&& asked, const Given&, const Asking& asking) {
  if (asked.output.empty() || asked.output == "-" || asked.output == "/dev/stdout")
    throw OptionError(
        "-o FILE is missing: a sweep writes its results there, and resumes from them");
  SweepResult result;
  try {
    result = run_sweep(asked.spec,
                       {.output = asked.output,
                        .threads = static_cast<int>(asked.threads),
                        .pareto = asked.pareto,
                        .columns = asked.columns},
                       asking.show_progress);
  } catch (const OptionError& error) {  // the file shows it, not the options of this question
    throw Error(error.kind(), error.what());
  }
  std::string shortfall = result.shortfall;
  return {.answer = std::move(result), .shortfall = std::move(shortfall)};
}

}  // namespace

Question sweep_question() {
  return local(question_of<Sweep, sweep_groups, answer_sweep>(
      "sweep", "Many forecasts: lists, ranges and draws of options", {{"", "Sweep"}}));
}

}  // namespace tilecast
