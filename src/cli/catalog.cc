#include <memory>

#include "cli/commands.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

void add_catalog(CLI::App& app, const std::string& name, const std::string& help,
                 Catalog (*catalog)()) {
  CLI::App* command = app.add_subcommand(name, help);
  auto format = std::make_shared<std::string>("table");
  command->add_option("--format", *format, "table or json [table]")
      ->check(CLI::IsMember(std::vector<std::string>{"table", "json"}));
  command->footer("Example:\n  tilecast " + name + " --format json");
  command->callback([format, catalog] {
    emit(*format == "json" ? catalog_json(catalog()) : catalog_table(catalog()), "");
  });
}

}  // namespace

void add_catalog_commands(CLI::App& app) {
  add_catalog(app, "gpus", "GPUs that Tilecast knows", gpu_catalog);
  add_catalog(app, "models", "Bundled models", model_catalog);
  add_catalog(app, "ops", "Operators that Tilecast knows", op_catalog);
}

}  // namespace tilecast
