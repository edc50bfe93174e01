// Commands whose answer is a file: training, calibration, sweeps.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "cli/show.h"
#include "cli/terminal.h"
#include "command/views.h"

namespace tilecast {
namespace {

/// A progress bar with the last forest's error and the estimated remaining time; one line for each
/// tenth if standard error is not a terminal.
class Bar {
 public:
  void show(const TrainProgress& p) {
    const double share =
        static_cast<double>(p.finished_forests) / static_cast<double>(p.total_forests);
    const auto now = std::chrono::steady_clock::now();
    // The time before the first forest was spent reading, so it is not part of the estimate.
    if (!first_) first_ = {now, share};
    const double elapsed = std::chrono::duration<double>(now - first_->at).count();
    const double done = share - first_->share;
    const std::string rest =
        done > 0 ? fmt::format("{:.0f} s left", elapsed / done * (1 - share)) : "";
    const std::string line =
        fmt::format("{:3.0f} %  forest {}/{}  {}  held out {:.1f} %  {}", 100 * share,
                    p.finished_forests, p.total_forests, p.last, 100 * p.held_out_error, rest);
    if (isatty(STDERR_FILENO)) {
      const int full = static_cast<int>(20 * share);
      fmt::print(stderr, "\r\x1b[K[{:=<{}}{: <{}}] {}", "", full, "", 20 - full, line);
    } else if (static_cast<int>(10 * share) > tenths_) {
      tenths_ = static_cast<int>(10 * share);
      fmt::print(stderr, "{}\n", line);
    }
  }
  ~Bar() {
    if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  struct First {
    std::chrono::steady_clock::time_point at;
    double share;
  };
  std::optional<First> first_;
  int tenths_ = -1;
};

void run_train(const Command& command, const Given& given) {
  Reply reply;
  {
    Bar bar;
    reply = ask(command, "train", given,
                {.show_progress = [&](const TrainProgress& p) { bar.show(p); }});
  }
  std::string weights = text_of(given, "output-file");
  if (std::holds_alternative<CollectiveTrainResult>(reply.answer))
    weights = (std::filesystem::path(weights) / "collectives.json").string();
  emit(*view(reply.answer, "table", output_style("")) + fmt::format("weights: {}\n", weights), "",
       reply.warnings);
}

void run_calibrate(const Command& command, const Given& given) {
  const bool suggest = has(given, "suggest"), measured = has(given, "measurements");
  if (suggest && measured)
    throw UsageError("calibrate: --suggest and --measurements are mutually exclusive");
  if (!suggest && has(given, "candidates"))
    throw UsageError("calibrate: --candidates needs --suggest N");
  const std::string output = text_of(given, "output-file");
  if (!suggest && (!measured || output.empty()))
    throw UsageError("calibrate: give --measurements FILE and -o FILE, or --suggest N");
  if (suggest) return show(ask(command, "suggest_kernels", given), given, output_style(output));
  const Reply reply = ask(command, "calibrate", given);
  emit(*view(reply.answer, "table", output_style("")) +
           fmt::format("\nforecast with --calibration {}\n", output),
       "", reply.warnings);
}

/// The options of both of its questions, in the order of the help.
std::vector<OptionGroup> calibrate_groups() {
  std::vector<OptionGroup> groups = question("calibrate").groups();
  std::vector<CommandOption>& options = groups.front().options;
  const std::vector<OptionGroup> others = question("suggest_kernels").groups();
  for (const CommandOption& option : others.front().options) {
    const auto same = [&](const CommandOption& other) { return other.names == option.names; };
    if (std::none_of(options.begin(), options.end(), same))
      options.insert(options.end() - 2, option);
  }
  return groups;
}

void run_sweep(const Command& command, const Given& given) {
  const Reply reply = ask(command, "sweep", given);
  emit(*view(reply.answer, "table"), "", reply.warnings);
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .help = std::string(question("train").help),
          .usage = {"--data PATH... -o FOLDER [options]"},
          .groups = question("train").groups,
          .examples = {"tilecast train --data neusight/scripts/asplos/data --exclude-gpu V100 -o "
                       "weights"},
          .run = run_train};
}

Command calibrate_command() {
  return {.name = "calibrate",
          .help = std::string(question("calibrate").help),
          .usage = {"--gpu GPU --suggest N [--candidates FILE] [-o FILE]",
                    "--gpu GPU --measurements FILE... -o FILE"},
          .groups = calibrate_groups,
          .examples = {"tilecast calibrate --gpu L40S --suggest 20 -o few.csv   # add latency_s",
                       "tilecast calibrate --gpu L40S --measurements few.csv -o l40s.json",
                       "tilecast forecast gpt2_large --gpu L40S --calibration l40s.json"},
          .run = run_calibrate};
}

Command sweep_command() {
  return {.name = "sweep",
          .help = std::string(question("sweep").help),
          .usage = {"SPEC -o FILE [options]"},
          .groups = question("sweep").groups,
          .examples = {"tilecast sweep designs.json -o designs.csv"},
          .run = run_sweep};
}

}  // namespace tilecast
