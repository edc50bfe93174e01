#include "cli/show.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "command/member.h"
#include "command/shared_options.h"
#include "command/views.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Views that the name of a file asks for: "-o plan.json".
constexpr const char* kFileViews[] = {"json", "csv", "svg", "html"};

}  // namespace

CommandOption format_option(const std::vector<std::string>& views) {
  return {.names = "--format",
          .default_value = "by the file's name, else table",
          .help = "of the output",
          .choices = views};
}

CommandOption file_option() { return output_option(nullptr); }

CommandOption rows_option(const std::string& default_value, const std::string& help) {
  constexpr int64_t kMaxRows = 1000000;
  return whole_option("--rows", default_value, help, nullptr, 0, kMaxRows);
}

CommandOption quiet_option() {
  return switch_option("quiet", "no progress on standard error", nullptr);
}

std::vector<OptionGroup> with_options(std::vector<OptionGroup> groups,
                                      const std::vector<CommandOption>& shown) {
  for (OptionGroup& group : groups) {
    if (group.title != "Options") continue;
    std::vector<CommandOption>& options = group.options;
    const auto weights =
        std::find_if(options.begin(), options.end(),
                     [](const CommandOption& option) { return option.names == "--weights"; });
    options.insert(weights, shown.begin(), shown.end());
  }
  return groups;
}

std::string see_help(const Command& command) {
  return fmt::format("; see 'tilecast {} --help'", command.name);
}

std::vector<std::string> essential_of(std::string_view name,
                                      const std::vector<std::string>& shown) {
  std::vector<std::string> keys = question(name).essential;
  keys.insert(keys.end(), shown.begin(), shown.end());
  return keys;
}

Reply ask(const Command& command, std::string_view name, const Given& given, const Asking& asking) {
  const Question& asked = question(name);
  Given options;
  for (const auto& [key, value] : given) {
    if (asked.index().find(key) != nullptr) options.emplace(key, value);
  }
  try {
    return asked.ask(options, asking);
  } catch (const MissingOption& missing) {
    throw UsageError(fmt::format("{}: {} is required{}", command.name,
                                 options_as_flags(missing.options()), see_help(command)));
  } catch (const OptionError& error) {
    throw UsageError(options_as_flags(error.what()));
  }
}

Reply ask_with_progress(const Command& command, const Given& given) {
  if (has(given, "quiet")) return ask(command, command.name, given);
  ProgressLine line;
  return ask(command, command.name, given,
             {.show_progress = [&](const Progress& progress) { line.show(progress); }});
}

std::string format_of(const Given& given) {
  std::string format = text_of(given, "format");
  if (!format.empty()) return format;
  const std::string file = text_of(given, "output-file");
  for (const char* view : kFileViews)
    if (file.ends_with(std::string(".") + view)) return view;
  return "table";
}

void check_file_view(const Command& command, const Given& given) {
  const std::string format = format_of(given);
  if (has(given, "format") || format == "table") return;
  for (const CommandOption& option : distinct_options(command.groups())) {
    if (option.names != "--format") continue;
    const std::vector<std::string>& known = option.choices;
    if (std::find(known.begin(), known.end(), format) != known.end()) return;
    throw UsageError(fmt::format(
        "-o {}: 'tilecast {}' writes {}, no {}; choose another name, or --format",
        shown_name(text_of(given, "output-file")), command.name, join(known, ", "), format));
  }
}

TableStyle style_of(const Given& given, int64_t rows, std::string_view of_what) {
  TableStyle style = output_style(text_of(given, "output-file"));
  style.rows = static_cast<size_t>(rows);
  if (!has(given, "rows")) return style;
  try {
    style.rows = static_cast<size_t>(whole_of(rows_option("", ""), text_of(given, "rows")));
  } catch (const OptionError& error) {
    throw UsageError(options_as_flags(error.what()));
  }
  if (format_of(given) != "table")
    throw UsageError(fmt::format(
        "--rows applies to tables; other formats contain all {}: omit --rows", of_what));
  return style;
}

void show(const Reply& reply, const Given& given, const TableStyle& style) {
  const std::string format = format_of(given);
  const std::optional<std::string> text = view(reply.answer, format, style);
  if (!text)
    throw UsageError(has(given, "format")
                         ? "--format " + format + " shows no answers of this kind: omit it"
                         : fmt::format("-o {}: there is no {} of this answer; choose another name, "
                                       "or --format table",
                                       shown_name(text_of(given, "output-file")), format));
  const bool has_warnings = format == "json" || format == "html";
  emit(*text, text_of(given, "output-file"),
       has_warnings ? std::vector<std::string>() : reply.warnings);
  if (has(given, "stats")) print_error(reply.speed);
  check_answer(reply);
}

void check_answer(const Reply& reply) {
  if (!reply.shortfall.empty()) throw Error(ErrorKind::kUnsupported, reply.shortfall);
}

}  // namespace tilecast
