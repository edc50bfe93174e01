#include "cli/command.h"

#include "cli/show.h"
#include "cli/terminal.h"

namespace tilecast {
namespace {

/// Asks the question that has the name of the command.
void run_question(const Command& command, const Given& given) {
  check_file_view(command, given);
  show(ask(command, command.name, given), given, output_style(text_of(given, "output-file")));
}

void run_shard(const Command& command, const Given& given) {
  constexpr int64_t kRows = 30;
  check_file_view(command, given);
  const TableStyle style = style_of(given, kRows, "tables");
  show(ask(command, command.name, given), given, style);
}

/// A command for the question of its name.
Command simple_command(const std::string& name, std::vector<CommandOption> shown,
                       std::vector<std::string> usage, std::vector<std::string> examples) {
  shown.push_back(file_option());
  return {.name = name,
          .help = std::string(question(name).help),
          .usage = std::move(usage),
          .groups = [name, shown] { return with_options(question(name).groups(), shown); },
          .examples = std::move(examples),
          .run = run_question};
}

/// The list; for the name of one thing that has a file, that file.
void run_list(const Command& command, const Given& given) {
  const std::string name = text_of(given, "NAME");
  if (!name.empty() && command.name != "ops" && find_data_file(command.name, name)) {
    Given file = given;
    file["KIND"].texts = {command.name};
    return show(ask(command, "data_file", file), given,
                output_style(text_of(given, "output-file")));
  }
  run_question(command, given);
}

Command list_command(const std::string& name, const std::string& one) {
  Command list = simple_command(
      name, {format_option({"table", "json", "html"})}, {"[NAME] [options]"},
      {"tilecast " + name, "tilecast " + name + " " + one, "tilecast " + name + " --format json"});
  list.run = run_list;
  return list;
}

Command kernel_command() {
  return simple_command("kernel", {format_option({"table", "json", "html"})},
                        {"OP --gpu GPU [options]"},
                        {"tilecast kernel linear --gpu A100 -m 4096 -n 5120 -k 1280",
                         "tilecast kernel cached_attention --gpu H100 --dtype bf16 --software vllm "
                         "--batch 64 --queries 1 --keys 4096 --head-dim 128"});
}

Command collective_command() {
  return simple_command(
      "collective", {format_option({"table", "json", "html"})},
      {"KIND --cluster CLUSTER --ranks N --bytes N [options]"},
      {"tilecast collective all_reduce --cluster dgx-h100 --ranks 8 --bytes 67108864",
       "tilecast collective all_gather --cluster dgx-a100 --ranks 64 --bytes 268435456 "
       "--ranks-per-node 1 --concurrent 8"});
}

Command compare_command() {
  Command compare =
      simple_command("compare", {}, {"A B [--model MODEL] [--gpu GPU] [options]"},
                     {"tilecast compare H100 H200 --model llama-3-8b --prompt 1024 --output 256",
                      "tilecast compare gpt2_large bert_large --gpu A100 --mode training --batch 4",
                      "tilecast compare old.json H100 --model gpt2_large"});
  compare.groups = [] {
    CommandOption file = file_option();
    file.old_names.clear();  // here, --output is a number of tokens
    return with_options(question("compare").groups(),
                        {format_option({"table", "json", "html", "csv"}),
                         rows_option("12", "kernels to show"), file});
  };
  compare.run = [](const Command& command, const Given& given) {
    constexpr int64_t kRows = 12;
    check_file_view(command, given);
    const TableStyle style = style_of(given, kRows, "kernels");
    show(ask(command, command.name, given), given, style);
  };
  return compare;
}

Command shard_command() {
  Command shard = simple_command(
      "shard",
      {rows_option("30", "tables to show"), format_option({"table", "json", "html", "csv"})},
      {"TABLES --cluster CLUSTER [options]"},
      {"tilecast shard dlrm_mlperf --cluster dgx-a100",
       "tilecast shard tables.json --cluster dgx-h100 --nodes 16 --format csv"});
  shard.run = run_shard;
  return shard;
}

Command share_command() {
  return simple_command(
      "share", {format_option({"table", "json", "html", "csv"})},
      {"--gpu GPU --job JOB... [options]"},
      {"tilecast share --gpu V100 --job 'resnet-50 mode=training batch=64' --job 'gpt2 prompt=512 "
       "output=128 rate=2'",
       "tilecast share --gpu A100-40GB --how mig --jobs jobs.json"});
}

Command allocate_command() {
  constexpr int64_t kRows = 30;
  Command allocate = simple_command(
      "allocate",
      {rows_option("30", "jobs to show"), format_option({"table", "json", "html", "csv", "svg"})},
      {"JOBS --pool 8xH100,16xA100-80GB [options]",
       "JOBS --pool 8xH100,16xA100-80GB --arrivals FILE [options]  # over time"},
      {"tilecast allocate jobs.json --pool 8xH100,16xA100-80GB,32xL4 --objective makespan",
       "tilecast allocate jobs.json --pool 8xH100,32xL4 --objective cost --price-per-gpu-hour "
       "H100=2.5,L4=0.7",
       "tilecast allocate jobs.json --pool 8xH100,32xL4 --arrivals trace.csv -o cluster.svg"});
  allocate.run = [](const Command& command, const Given& given) {
    check_file_view(command, given);
    const TableStyle style = style_of(given, kRows, "jobs");
    show(ask(command, command.name, given), given, style);
  };
  return allocate;
}

/// A page shows measured kernels too, as many as have room beside the errors.
void run_evaluate(const Command& command, const Given& given) {
  constexpr const char* kPointsOfPage = "1500";
  Given asked = given;
  if (format_of(given) == "html" && !has(given, "points"))
    asked["points"] = {.texts = {kPointsOfPage}, .model = {}, .gpus = {}, .by_default = true};
  run_question(command, asked);
}

Command evaluate_command() {
  Command evaluate = simple_command(
      "evaluate", {format_option({"table", "json", "html", "csv", "svg"})}, {"PATH [options]"},
      {"tilecast evaluate neusight/scripts/asplos/label",
       "tilecast evaluate mine.csv -o scoreboard.html",
       "tilecast evaluate gavel.csv.xz --jobs jobs.json --series motivation "
       "--how mps,k80=time-slice"});
  evaluate.run = run_evaluate;
  return evaluate;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      forecast_command(),
      compare_command(),
      kernel_command(),
      collective_command(),
      plan_command(),
      shard_command(),
      share_command(),
      trace_command(),
      allocate_command(),
      evaluate_command(),
      train_command(),
      calibrate_command(),
      tune_command(),
      sweep_command(),
      explore_command(),
      serve_command(),
      mcp_command(),
      list_command("gpus", "H100"),
      list_command("clusters", "dgx-h100"),
      list_command("models", "llama"),
      list_command("ops", "linear"),
      simple_command("doctor", {format_option({"table", "json", "html"})}, {"[options]"},
                     {"tilecast doctor"}),
      help_command(),
      completion_command()};
  return all;
}

}  // namespace tilecast
