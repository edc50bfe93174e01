#include "cli/values.h"

#include <fmt/format.h>

#include <charconv>

namespace tilecast {

CommandOption gpu_option() {
  return {.names = "--gpu",
          .value = "GPU",
          .help = "id or alias ('tilecast gpus'), or a device file (.json)",
          .kind = ValueKind::kGpu,
          .required = true};
}

CommandOption format_option(const std::vector<std::string>& choices) {
  return {.names = "--format", .initial = "table", .help = "of the output", .choices = choices};
}

CommandOption command_option(const OptionDef& option) {
  std::vector<std::string> old_names;
  for (const std::string& old : option.old_names) old_names.push_back("--" + old);
  const bool file = option.access.type == OptionType::kFile;
  return {.names = "--" + option.name,
          .value = option.value,
          .initial = option.initial,
          .help = option.help,
          .choices = option.choices,
          .kind = file ? ValueKind::kFile : ValueKind::kText,
          .old_names = old_names};
}

CommandOption pass_option(const std::string& name) {
  return command_option(*find_option(name, RequestKind::kPass));
}

CommandOption output_option() {
  return {.names = "-o,--output-file",
          .value = "FILE",
          .help = "write to a file",
          .kind = ValueKind::kFile,
          .old_names = {"--output"}};
}

CommandOption weights_option() {
  return {.names = "--weights",
          .value = "FOLDER",
          .help = "other weights ('tilecast train')",
          .kind = ValueKind::kFolder};
}

CommandOption calibration_option() {
  return {.names = "--calibration",
          .value = "FILE",
          .help = "of 'tilecast calibrate'",
          .kind = ValueKind::kFile};
}

std::vector<std::string> texts_of(const Given& given, const std::string& key) {
  const auto found = given.find(key);
  return found == given.end() ? std::vector<std::string>{} : found->second;
}

std::string text_of(const Given& given, const std::string& key, const std::string& initial) {
  const auto found = given.find(key);
  return found == given.end() ? initial : found->second.back();
}

int64_t integer_of(const Given& given, const std::string& key, int64_t initial, int64_t least,
                   int64_t most) {
  const auto found = given.find(key);
  if (found == given.end()) return initial;
  const std::string& text = found->second.back();
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw UsageError(fmt::format("{}: expected a whole number from {} to {}, found '{}'",
                                 key.size() == 1 ? "-" + key : "--" + key, least, most, text));
  return value;
}

}  // namespace tilecast
