#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/number.h"
#include "base/shell.h"
#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int kPipeWidth = 80;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// https://no-color.org and https://bixense.com/clicolors
bool has_colors(int descriptor) {
  if (!environment("NO_COLOR").empty()) return false;
  const std::string forced = environment("CLICOLOR_FORCE");
  if (!forced.empty() && forced != "0") return true;
  return isatty(descriptor) && environment("CLICOLOR") != "0" && environment("TERM") != "dumb";
}

int terminal_width() {
  const int width = parse_number<int>(environment("COLUMNS")).value_or(0);
  if (width > 0) return width;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kPipeWidth;
}

bool is_standard_output(const std::string& path) {
  return path.empty() || path == "-" || path == "/dev/stdout";
}

std::string& command_line() {
  static std::string line;
  return line;
}

void print_line(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
}

}  // namespace

void keep_command_line(int argc, char** argv) {
  command_line() = "tilecast";
  for (int i = 1; i < argc; ++i) command_line() += " " + shell_word(argv[i]);
}

TableStyle output_style(const std::string& path) {
  TableStyle style;
  style.command = command_line();
  style.width = terminal_width();
  style.color = is_standard_output(path) && has_colors(STDOUT_FILENO);
  if (!is_standard_output(path) && environment("COLUMNS").empty()) style.width = kPipeWidth;
  return style;
}

void emit(const std::string& text, const std::string& path,
          const std::vector<std::string>& warnings) {
  bool reader_has_gone = false;
  if (!is_standard_output(path)) {
    write_file(path, text);
  } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
             std::fflush(stdout) != 0) {
    const int error = errno;
    if (error != EPIPE)
      throw Error(ErrorKind::kIo,
                  std::string("standard output: cannot write: ") + std::strerror(error));
    reader_has_gone = true;
  }
  TableStyle style;
  style.color = has_colors(STDERR_FILENO);
  for (const std::string& warning : warnings)
    print_line("tilecast: " + paint("warning:", Color::kYellow, style) + " " +
               printable_lines(warning));
  if (reader_has_gone) std::_Exit(0);
}

void print_error(const std::string& message) {
  TableStyle style;
  style.color = has_colors(STDERR_FILENO);
  print_line(paint("tilecast:", Color::kRed, style) + " " + printable_lines(message));
}

}  // namespace tilecast
