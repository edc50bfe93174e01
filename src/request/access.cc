#include "request/access.h"

namespace tilecast {

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

OptionAccess clocks() {
  OptionAccess access;
  access.set = [](Request& request, const OptionDef& option, const std::string& text) {
    if (text != "boost" && text != "base" && text != "sustained") clock_value(option, text);
    request.execution.clocks = text;
  };
  access.get = [](const Request& request, const OptionDef&) { return request.execution.clocks; };
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
