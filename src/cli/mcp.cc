// 'tilecast mcp': the questions as tools of the Model Context Protocol, over standard input and
// output.

#include "server/mcp.h"

#include <iostream>
#include <string>

#include "cli/command.h"
#include "cli/show.h"
#include "command/shared_options.h"

namespace tilecast {
namespace {

struct Mcp {
  ForecasterSource forecaster;
};

std::vector<OptionGroup> mcp_groups() { return {{"Options", forecaster_options<Mcp>()}}; }

void run_mcp(const Command& command, const Given& given) {
  Mcp asked;
  OptionIndex(command.groups()).read(given, &asked);
  const server::Api api(server::ApiOptions{}, asked.forecaster.load());
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    const std::string answer = server::mcp_answer(api, line);
    if (!answer.empty()) std::cout << answer << std::endl;  // the client waits for it
  }
}

}  // namespace

Command mcp_command() {
  return {.name = "mcp",
          .help = "The questions as tools of an assistant (Model Context Protocol, stdio)",
          .usage = {"[options]"},
          .groups = mcp_groups,
          .examples = {"tilecast mcp"},
          .run = run_mcp};
}

}  // namespace tilecast
