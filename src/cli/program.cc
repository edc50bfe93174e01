#include "cli/program.h"

#include <csignal>
#include <exception>
#include <new>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "tilecast/error.h"

namespace tilecast {

int run_program(int argc, char** argv) {
  // With these signals ignored, a closed pipe or a file that exceeds its size limit is a write
  // error, which is handled.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  remove_unfinished_files_on_signals();
  try {
    run_command_line(argc, argv);
  } catch (const UsageError& error) {
    print_error(error.what());
    return 2;
  } catch (const Error& error) {
    print_error(options_as_flags(error.what()));
    return 1;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return 1;
  } catch (const std::exception& error) {
    print_error(std::string("this is a bug: ") + error.what());
    return 1;
  }
  return 0;
}

}  // namespace tilecast
