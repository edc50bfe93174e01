#include <cstdio>

#include "cli/commands.h"
#include "tilecast/error.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Forecasts how long a deep-learning model takes and how much memory it needs on a GPU, "
      "from the model's description and the device's data sheet.",
      "tilecast"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TILECAST_VERSION);
  tilecast::add_forecast_command(app);
  tilecast::add_kernel_command(app);
  tilecast::add_evaluate_command(app);
  tilecast::add_train_command(app);
  tilecast::add_calibrate_command(app);
  tilecast::add_catalog_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const tilecast::Error& error) {
    std::fprintf(stderr, "tilecast: %s\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tilecast: this is a bug: %s\n", error.what());
    return 1;
  }
  return 0;
}
