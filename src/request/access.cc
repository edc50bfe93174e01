#include "request/access.h"

#include "graph/software.h"

namespace tilecast {

template <>
const std::vector<std::string>& choice_names<Mode>() {
  static const std::vector<std::string> names = {"inference", "training"};
  return names;
}

template <>
const std::vector<std::string>& choice_names<Optimizer>() {
  static const std::vector<std::string> names = {"none", "sgd", "adam", "adamw"};
  return names;
}

template <>
const std::vector<std::string>& choice_names<AttentionKind>() {
  static const std::vector<std::string> names = {"eager", "flash"};
  return names;
}

template <>
const std::vector<std::string>& choice_names<Fusion>() {
  static const std::vector<std::string> names = {"none", "pointwise"};
  return names;
}

template <>
const std::vector<std::string>& choice_names<PredictorKind>() {
  static const std::vector<std::string> names = {"learned", "roofline"};
  return names;
}

template <>
const std::vector<std::string>& choice_names<Software>() {
  return software_names();
}

OptionAccess schedule() {
  OptionAccess access;
  access.set = [](Request& request, const OptionDef&, const std::string& text) {
    request.kind = text == "continuous" ? RequestKind::kServe : RequestKind::kGenerate;
  };
  access.get = [](const Request& request, const OptionDef&) -> std::string {
    return request.kind == RequestKind::kServe ? "continuous" : "static";
  };
  return access;
}

OptionAccess trace_file() {
  OptionAccess access{.type = OptionType::kFile};
  access.set = [](Request& request, const OptionDef&, const std::string& text) {
    request.load.trace = read_trace(text);
  };
  access.get = [](const Request& request, const OptionDef&) -> std::string {
    const size_t count = request.load.trace.size();
    return count == 0 ? "" : std::to_string(count) + " requests";
  };
  return access;
}

}  // namespace tilecast
