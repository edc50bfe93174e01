#include "cli/values.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text.h"

namespace tilecast {

CommandOption gpu_option() {
  return {.names = "--gpu",
          .value = "GPU",
          .help = "id or alias ('tilecast gpus'), or a device file (.json)",
          .kind = ValueKind::kGpu,
          .required = true};
}

CommandOption cluster_option() {
  return {.names = "--cluster",
          .value = "CLUSTER",
          .help = "id or alias ('tilecast clusters'), or a cluster file (.json)",
          .kind = ValueKind::kFile,
          .required = true};
}

CommandOption format_option(const std::vector<std::string>& choices) {
  return {
      .names = "--format", .default_value = "table", .help = "of the output", .choices = choices};
}

CommandOption command_option(const OptionDef& option) {
  std::vector<std::string> old_names;
  for (const std::string& old : option.old_names) old_names.push_back("--" + old);
  const bool file = option.access.type == OptionType::kFile;
  return {.names = "--" + option.name,
          .value = option.value,
          .default_value = option.default_value,
          .help = option.help,
          .choices = option.choices,
          .kind = file ? ValueKind::kFile : ValueKind::kText,
          .repeated = option.repeated,
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
          .help = "folder of other weights ('tilecast train')",
          .kind = ValueKind::kFolder};
}

CommandOption calibration_option() {
  return {.names = "--calibration",
          .value = "FILE",
          .help = "of 'tilecast calibrate'",
          .kind = ValueKind::kFile};
}

CommandOption list_option(const std::string& name, const std::string& default_value,
                          const std::string& help) {
  return {.names = "--" + name,
          .value = "LIST",
          .default_value = default_value,
          .help = help,
          .repeated = true};
}

std::vector<std::string> texts_of(const Given& given, const std::string& key) {
  const auto found = given.find(key);
  return found == given.end() ? std::vector<std::string>{} : found->second;
}

std::string text_of(const Given& given, const std::string& key, const std::string& default_value) {
  const auto found = given.find(key);
  return found == given.end() ? default_value : found->second.back();
}

int64_t integer_of(const Given& given, const std::string& key, int64_t default_value, int64_t min,
                   int64_t max) {
  const auto found = given.find(key);
  if (found == given.end()) return default_value;
  const std::string& text = found->second.back();
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < min || value > max)
    throw UsageError(fmt::format("{}: expected a whole number from {} to {}, found '{}'",
                                 key.size() == 1 ? "-" + key : "--" + key, min, max, text));
  return value;
}

std::vector<std::string> list_of(const Given& given, const std::string& key) {
  std::vector<std::string> all;
  for (const std::string& text : texts_of(given, key)) {
    for (const std::string& part : split(text, ',')) all.push_back(part);
  }
  return all;
}

std::vector<int64_t> numbers_of(const Given& given, const std::string& key) {
  std::vector<int64_t> numbers;
  for (const std::string& text : list_of(given, key))
    numbers.push_back(integer_of({{key, {text}}}, key, 1, 1, int64_t{1} << 24));
  return numbers;
}

}  // namespace tilecast
