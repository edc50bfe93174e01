#include "command/shared_options.h"

namespace tilecast {

CommandOption gpu_option(SetValue set) {
  return {.names = "--gpu",
          .value = "GPU",
          .help = "id or alias ('tilecast gpus'), or a device file (.json)",
          .kind = ValueKind::kGpu,
          .required = true,
          .set = set};
}

CommandOption cluster_option(SetValue set) {
  return {.names = "--cluster",
          .value = "CLUSTER",
          .help = "id or alias ('tilecast clusters'), or a cluster file (.json)",
          .kind = ValueKind::kFile,
          .required = true,
          .set = set};
}

CommandOption output_option(SetValue set) {
  return {.names = "-o,--output-file",
          .value = "FILE",
          .help = "write to a file",
          .kind = ValueKind::kFile,
          .old_names = {"--output"},
          .set = set};
}

CommandOption weights_option(SetValue set) {
  return {.names = "--weights",
          .value = "FOLDER",
          .help = "folder of other weights ('tilecast train')",
          .kind = ValueKind::kFolder,
          .set = set};
}

CommandOption calibration_option(SetValue set) {
  return {.names = "--calibration",
          .value = "FILE",
          .help = "of 'tilecast calibrate'",
          .kind = ValueKind::kFile,
          .set = set};
}

CommandOption list_option(const std::string& name, const std::string& default_value,
                          const std::string& help, SetValue set, ValueType type) {
  return {.names = "--" + name,
          .value = "LIST",
          .default_value = default_value,
          .help = help,
          .type = type,
          .repeated = true,
          .list = true,
          .set = set};
}

CommandOption whole_option(const std::string& names, const std::string& default_value,
                           const std::string& help, SetValue set, int64_t min, int64_t max) {
  return {.names = names,
          .value = "N",
          .default_value = default_value,
          .help = help,
          .type = ValueType::kWhole,
          .min = min,
          .max = max,
          .set = set};
}

CommandOption switch_option(const std::string& name, const std::string& help, SetValue set) {
  return {.names = "--" + name, .value = "", .help = help, .type = ValueType::kSwitch, .set = set};
}

CommandOption command_option(const OptionDef& option, SetValue set) {
  std::vector<std::string> old_names;
  for (const std::string& old : option.old_names) old_names.push_back("--" + old);
  CommandOption made = {.names = "--" + option.name,
                        .value = option.value,
                        .default_value = option.default_value,
                        .help = option.help,
                        .choices = option.choices,
                        .repeated = option.repeated,
                        .old_names = old_names,
                        .min = static_cast<int64_t>(option.min),
                        .max = static_cast<int64_t>(option.max),
                        .set = set};
  switch (option.access.type) {
    case OptionType::kFile:
      made.kind = ValueKind::kFile;
      break;
    case OptionType::kWhole:
      made.type = ValueType::kWhole;
      break;
    case OptionType::kNumber:
      // "W|best": a number or a word.
      if (option.value.find('|') == std::string::npos) made.type = ValueType::kNumber;
      break;
    case OptionType::kText:
      break;
  }
  if (made.is_switch()) made.type = ValueType::kSwitch;
  return made;
}

CommandOption request_option(const std::string& name, RequestKind kind, SetValue set) {
  return command_option(*find_option(name, kind), set);
}

std::vector<OptionGroup> request_groups(std::vector<CommandOption> first, SetValue set,
                                        const std::vector<CommandOption>& last) {
  OptionGroup common{"Options", std::move(first)};
  OptionGroup pass{"One pass or training step (without --prompt)", {}};
  OptionGroup tokens{"Text generation (with --prompt)", {}};
  for (const OptionDef& option : request_options()) {
    OptionGroup& group = option.kinds == kAllKinds ? common
                         : option.kinds == kPasses ? pass
                                                   : tokens;
    group.options.push_back(command_option(option, set));
  }
  common.options.insert(common.options.end(), last.begin(), last.end());
  return {common, pass, tokens};
}

}  // namespace tilecast
