#pragma once

// From a command to its question, and from the answer to the terminal or a file.

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "command/question.h"
#include "tilecast/view.h"

namespace tilecast {

/// Options of how answers are shown.
CommandOption format_option(const std::vector<std::string>& views);
CommandOption file_option();
CommandOption rows_option(const std::string& default_value, const std::string& help);
/// The option of commands that show progress.
CommandOption quiet_option();
/// The options of a question, with the options for showing its answer before the weights.
std::vector<OptionGroup> with_options(std::vector<OptionGroup> groups,
                                      const std::vector<CommandOption>& shown);

/// "; see 'tilecast plan --help'".
std::string see_help(const Command& command);

/// Asks a question with the given options that it has. Throws UsageError for what the options alone
/// show.
Reply ask(const Command& command, std::string_view name, const Given& given,
          const Asking& asking = {});

/// The essential options of a question, and those of how the command shows its answer.
std::vector<std::string> essential_of(std::string_view question,
                                      const std::vector<std::string>& shown);

/// Asks the question that has the name of the command, with its progress on standard error; with
/// --quiet, without.
Reply ask_with_progress(const Command& command, const Given& given);

/// The view that --format names, else the one by the end of the output file's name, else "table".
std::string format_of(const Given& given);
/// Throws UsageError if the name of the output file asks for a view that the command lacks.
void check_file_view(const Command& command, const Given& given);

/// The style of tables with `rows` rows, or as many as --rows says. Throws UsageError for --rows
/// with another view.
TableStyle style_of(const Given& given, int64_t rows, std::string_view of_what);

/// Writes the answer to the file of the options or to standard output, its warnings beside it if
/// the view does not hold them, and fails if it is not what was asked for.
void show(const Reply& reply, const Given& given, const TableStyle& style);
/// Fails if the answer is not what was asked for.
void check_answer(const Reply& reply);

}  // namespace tilecast
