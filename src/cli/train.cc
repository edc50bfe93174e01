#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/commands.h"
#include "report/text_table.h"
#include "train/training.h"

namespace tilecast {
namespace {

struct Request {
  TrainOptions options;
  std::vector<std::string> data;
  std::string output, intervals = "leave-one-out";
};

/// A bar with the epoch's errors and an estimate of the rest; a line per tenth where standard error
/// is no terminal.
class Bar {
 public:
  void show(const TrainProgress& p) {
    const double share = static_cast<double>(p.finished_epochs) / p.total_epochs;
    const auto now = std::chrono::steady_clock::now();
    // Reading took its time before the first epoch and says nothing of the rest.
    if (!first_) first_ = {now, share};
    const double elapsed = std::chrono::duration<double>(now - first_->at).count();
    const double done = share - first_->share;
    const std::string rest =
        done > 0 ? fmt::format("{:.0f} s left", elapsed / done * (1 - share)) : "";
    const std::string line =
        fmt::format("{:3.0f} %  {} epoch {}/{}  error {:.1f} %  held out {:.1f} %  {}", 100 * share,
                    p.last.task, p.last.epoch, p.last.epochs, 100 * p.last.train_error,
                    100 * p.last.held_out_error, rest);
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

std::string error_table(const std::string& title, const std::vector<TrainError>& errors) {
  if (errors.empty()) return "";
  TextTable table;
  table.header = {"gpu", "op", "dtype", "software", "rows", "mean %", "median %", "roofline %"};
  table.right = {false, false, false, false, true, true, true, true};
  for (const TrainError& e : errors)
    table.rows.push_back({e.gpu, e.op, e.dtype, e.software, std::to_string(e.count),
                          fmt::format("{:.1f}", e.mape_percent),
                          fmt::format("{:.1f}", e.median_percent),
                          fmt::format("{:.1f}", e.roofline_mape_percent)});
  return title + "\n\n" + format_text_table(table, 2) + "\n";
}

void run(Request& request) {
  TrainOptions& options = request.options;
  for (const std::string& path : request.data) options.data.emplace_back(path);
  options.output = request.output;
  options.leave_one_out = request.intervals == "leave-one-out";
  options.command =
      fmt::format("tilecast train --seed {} --epochs {} --members {} --hidden {}{}{}", options.seed,
                  options.epochs, options.members, options.hidden,
                  options.leave_one_out ? "" : " --intervals held-out",
                  options.exclude_gpus.empty()
                      ? ""
                      : " --exclude-gpu " + join(options.exclude_gpus, " --exclude-gpu "));
  TrainResult result;
  {
    Bar bar;
    result = train_weights(options, [&](const TrainProgress& p) { bar.show(p); });
  }
  std::string out = error_table("Held-out rows of GPUs that were trained on", result.held_out) +
                    error_table("Left-out GPUs", result.left_out);
  for (const std::string& line : result.report) out += line + "\n";
  emit(out + fmt::format("weights: {}\n", request.output), "");
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "New weights from measurements");
  auto request = std::make_shared<Request>();
  TrainOptions& o = request->options;
  command->add_option("--data", request->data, "measurement files or folders")->required();
  command
      ->add_option("-o,--output", request->output,
                   "folder to write; an interrupted run goes on from the checkpoints in it")
      ->required();
  command->add_option("--exclude-gpu", o.exclude_gpus, "leave out all rows of this GPU")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--epochs", o.epochs, fmt::format("passes over the rows [{}]", o.epochs))
      ->check(CLI::Range(1, 100000));
  command->add_option("--members", o.members, fmt::format("networks an ensemble [{}]", o.members))
      ->check(CLI::Range(1, 32));
  command->add_option("--hidden", o.hidden, fmt::format("units of a hidden layer [{}]", o.hidden))
      ->check(CLI::Range(4, 1024));
  command->add_option("--seed", o.seed,
                      fmt::format("seed; the same one gives the same bytes [{}]", o.seed));
  command->add_option("--threads", o.threads, fmt::format("threads [{}]", o.threads))
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--intervals", request->intervals,
                   "where the 80 % intervals come from: leave-one-out (GPUs left out in turn) or "
                   "held-out rows [leave-one-out]")
      ->check(CLI::IsMember(std::vector<std::string>{"leave-one-out", "held-out"}));
  command->footer(
      "Example:\n  tilecast train --data neusight/scripts/asplos/data --exclude-gpu V100 -o "
      "weights-v100");
  command->callback([request] { run(*request); });
}

}  // namespace tilecast
