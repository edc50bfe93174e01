// 'tilecast tune': its files for MIOpen.

#include <fmt/format.h>

#include "base/file.h"
#include "cli/show.h"
#include "cli/terminal.h"

namespace tilecast {
namespace {

constexpr std::string_view kPerfSuffix = ".udb.txt", kFindSuffix = ".ufdb.txt";

std::vector<OptionGroup> tune_groups() {
  CommandOption file = file_option();
  file.help +=
      "; a name that ends in .udb.txt: MIOpen's user databases, the parameters there and "
      "the solvers in .ufdb.txt beside it";
  return with_options(question("tune").groups(), {format_option({"table", "json", "html"}), file});
}

/// X.udb.txt for the parameters, X.ufdb.txt beside it for the solvers.
void write_databases(const std::vector<TuneForecast>& forecasts, const std::string& perf_path) {
  const std::string start = perf_path.substr(0, perf_path.size() - kPerfSuffix.size());
  write_file(perf_path, perf_database(forecasts));
  write_file(start + std::string(kFindSuffix), find_database(forecasts));
  emit(fmt::format("{} and {}: {} convolutions\n", perf_path, start + std::string(kFindSuffix),
                   forecasts.size()),
       "");
}

void run_tune(const Command& command, const Given& given) {
  const std::string output = text_of(given, "output-file");
  const bool databases = output.ends_with(kPerfSuffix);
  if (databases && is_product_problem(text_of(given, "PROBLEM|MODEL")))
    throw UsageError("MIOpen's user databases hold convolutions, no products");
  check_file_view(command, given);
  Reply reply = ask(command, "tune", given);
  if (!databases) return show(reply, given, output_style(output));
  write_databases(std::get<TuneAnswer>(reply.answer).forecasts, output);
  reply.warnings.push_back(
      "no MIOpen has read these files yet: their form is assumed (docs/explanation/tuning.md); "
      "check with "
      "MIOPEN_LOG_LEVEL=6 that yours finds the records");
  emit("", "", reply.warnings);
}

}  // namespace

Command tune_command() {
  return {.name = "tune",
          .help = std::string(question("tune").help),
          .usage = {"PROBLEM --gpu GPU [options]", "MODEL --gpu GPU [options]",
                    "--from-log FILE --gpu GPU [options]"},
          .groups = tune_groups,
          .examples =
              {"tilecast tune \"conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F\" --gpu "
               "gfx906_60",
               "tilecast tune \"gemm m=4096 n=512 k=1024 trans_a=T dtype=fp16\" --gpu MI250X",
               "tilecast tune resnet50.onnx --gpu MI210 -o user.udb.txt"},
          .run = run_tune};
}

}  // namespace tilecast
