#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

/// A command that lists what Tilecast knows.
template <typename Entry>
Command list_command(const std::string& name, const std::string& help,
                     std::vector<Entry> (*catalog)(),
                     std::string (*table)(const std::vector<Entry>&, const TableStyle&),
                     std::string (*json)(const std::vector<Entry>&)) {
  return {.name = name,
          .help = help,
          .usage = {"[options]"},
          .groups = {{"Options", {format_option({"table", "json"}), output_option()}}},
          .examples = {"tilecast " + name + " --format json"},
          .run = [=](const Given& given) {
            const std::string output = text_of(given, "output-file");
            emit(text_of(given, "format") == "json" ? json(catalog())
                                                    : table(catalog(), output_style(output)),
                 output);
          }};
}

}  // namespace

Command gpus_command() {
  return list_command("gpus", "GPUs that Tilecast knows", gpu_catalog, gpus_table, gpus_json);
}

Command clusters_command() {
  return list_command("clusters", "Clusters that Tilecast knows", cluster_catalog, clusters_table,
                      clusters_json);
}

Command models_command() {
  return list_command("models", "Bundled models", model_catalog, models_table, models_json);
}

Command ops_command() {
  return list_command("ops", "Operators that Tilecast knows", op_catalog, ops_table, ops_json);
}

}  // namespace tilecast
