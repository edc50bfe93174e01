#include "tilecast/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <optional>

#include "base/text.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "report/text_table.h"

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

std::string error_table(const std::string& title, const std::vector<TrainError>& errors,
                        const TableStyle& style) {
  if (errors.empty()) return "";
  TextTable table;
  table.header = {"gpu", "op", "dtype", "software", "rows", "mean %", "median %", "roofline %"};
  table.right = {false, false, false, false, true, true, true, true};
  table.fit = {Fit::kMiddle, Fit::kMiddle};
  for (const TrainError& e : errors)
    table.rows.push_back(
        {e.gpu, e.op, e.dtype, e.software, format_integer(static_cast<int64_t>(e.count)),
         fmt::format("{:.1f}", e.mape_percent), fmt::format("{:.1f}", e.median_percent),
         fmt::format("{:.1f}", e.roofline_mape_percent)});
  return title_lines(title, style) + "\n" + format_text_table(table, style, 2) + "\n";
}

std::string collective_errors(const std::vector<CollectiveError>& errors, const TableStyle& style) {
  TextTable table;
  table.header = {"rows of", "gpu", "collective", "rows", "mean %", "median %", "p90 %"};
  table.right = {false, false, false, true, true, true, true};
  table.fit = {Fit::kWhole, Fit::kMiddle, Fit::kWhole};
  for (const CollectiveError& e : errors)
    table.rows.push_back(
        {e.split, e.gpu, e.op.empty() ? "all of NCCL" : e.op,
         format_integer(static_cast<int64_t>(e.count)), fmt::format("{:.1f}", e.mape_percent),
         fmt::format("{:.1f}", e.median_percent), fmt::format("{:.1f}", e.p90_percent)});
  return format_text_table(table, style) + "\n";
}

TrainOptions train_options(const Given& given) {
  TrainOptions options;
  const auto integer = [&](const std::string& key, auto& value, int64_t min, int64_t max) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(
        integer_of(given, key, static_cast<int64_t>(value), min, max));
  };
  for (const std::string& path : texts_of(given, "data")) options.data.emplace_back(path);
  options.output = text_of(given, "output-file");
  options.exclude_gpus = texts_of(given, "exclude-gpu");
  integer("trees", options.trees, 1, 10000);
  integer("seed", options.seed, 0, std::numeric_limits<int64_t>::max());
  integer("threads", options.threads, 1, 256);
  options.leave_one_out = text_of(given, "intervals", "leave-one-out") == "leave-one-out";
  options.command =
      fmt::format("tilecast train --seed {} --trees {}{}{}", options.seed, options.trees,
                  options.leave_one_out ? "" : " --intervals held-out",
                  options.exclude_gpus.empty()
                      ? ""
                      : " --exclude-gpu " + join(options.exclude_gpus, " --exclude-gpu "));
  return options;
}

void run_train(const Given& given) {
  TrainOptions options = train_options(given);
  if (given.contains("collectives")) {
    options.command = "tilecast train --collectives";
    const CollectiveTrainResult collectives = train_collectives(options);
    return emit(collective_errors(collectives.errors, output_style("")) +
                    fmt::format("weights: {}\n", (options.output / "collectives.json").string()),
                "", collectives.report);
  }
  TrainResult result;
  {
    Bar bar;
    result = train_weights(options, [&](const TrainProgress& p) { bar.show(p); });
  }
  const TableStyle style = output_style("");
  emit(error_table("Held-out rows of GPUs that were trained on", result.held_out, style) +
           error_table("Left-out GPUs", result.left_out, style) +
           error_table("Left-out architectures", result.left_out_architecture, style) +
           fmt::format("weights: {}\n", options.output.string()),
       "", result.report);
}

/// An option with a number, whose default is shown in help.
template <typename T>
CommandOption number(const std::string& names, T defaults, const std::string& help) {
  return {.names = names, .value = "N", .default_value = fmt::format("{}", defaults), .help = help};
}

}  // namespace

Command train_command() {
  const TrainOptions defaults;
  return {
      .name = "train",
      .help = "New weights from measurements",
      .usage = {"--data PATH... -o FOLDER [options]"},
      .groups = {{"Options",
                  {{.names = "--data",
                    .value = "PATH",
                    .help = "measurement files or folders",
                    .kind = ValueKind::kFile,
                    .required = true,
                    .repeated = true},
                   {.names = "-o,--output-file",
                    .value = "FOLDER",
                    .help = "folder to write; an interrupted run goes on from the checkpoints "
                            "in it",
                    .kind = ValueKind::kFolder,
                    .required = true,
                    .old_names = {"--output"}},
                   {.names = "--collectives",
                    .help = "fit the curves of collectives only: collectives.json"},
                   {.names = "--exclude-gpu",
                    .value = "GPU",
                    .help = "leave out all rows of this GPU",
                    .kind = ValueKind::kGpu,
                    .repeated = true},
                   number("--trees", defaults.trees, "trees of each forest, at most"),
                   number("--seed", defaults.seed,
                          "random seed; the same seed gives the same bytes"),
                   number("--threads", defaults.threads, "threads"),
                   {.names = "--intervals",
                    .default_value = "leave-one-out",
                    .help = "source of the 80 % intervals: GPUs left out in turn, or held-out rows",
                    .choices = {"leave-one-out", "held-out"}}}}},
      .examples = {"tilecast train --data neusight/scripts/asplos/data --exclude-gpu V100 -o "
                   "weights"},
      .run = run_train};
}

}  // namespace tilecast
